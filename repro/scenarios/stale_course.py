"""The course of scenario `stale_metadata` in integers: which drafts come out wrong, and why.

Follows positions, slots and tokens by arithmetic, without any op. The KV cache of the draft layer
is a mapping from slot to token here, and attention over an index is the sum of what it names.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..records import Scalar
from .toy_tokens import VOCAB, continuation, next_token


@dataclass(frozen=True, slots=True)
class Course:
    """What a run comes to.

    lost, stale: requests with a refused draft, and those that a draft step served by another index
    than it needed. foreign: slots that a request read and did not own. accepted: how often each
    draft position was accepted, in `rounds` verifications.
    """

    lost: tuple[int, ...]
    stale: tuple[int, ...]
    foreign: frozenset[int]
    accepted: tuple[int, ...]
    rounds: int


@dataclass(slots=True)
class Track:
    """One request: its true tokens to beyond its end, and how far it is."""

    number: int
    tokens: Sequence[int]
    length: int
    end: int
    first_block: int
    last_block: int
    drafted_to: int = 0  # positions whose KV the draft layer holds
    held_from: int = 0  # blocks before that of this position are given back
    drafts: list[int] = field(default_factory=list)

    def slot(self, position: int, size: int) -> int:
        return (self.first_block + position // size) * size + position % size


def reach(point: Mapping[str, Scalar], number: int) -> tuple[int, int, int]:
    """Of request `number`: prompt, length at its end, and positions that need blocks."""
    prompt = int(point["prompt"]) + number
    end = prompt + int(point["new_tokens"])
    # k drafts beyond the last token, and the advance behind the last draft step
    return prompt, end, end + 2 * int(point["num_speculative_tokens"]) + 2


def prompt(point: Mapping[str, Scalar], number: int) -> list[int]:
    """The prompt of request `number`, drawn without numpy: planning a run does not load it."""
    drawn = random.Random(int(point["seed"]) + number)  # noqa: S311 - a prompt, not a secret
    return drawn.choices(range(1, VOCAB), k=reach(point, number)[0])


def batch_order(running: Sequence[int], engine_step: int, reorder: Scalar) -> list[int]:
    """Requests by row of the batch: rotated by one from step to step, or always the same."""
    by = engine_step % len(running) if running and reorder == "rotate" else 0
    return [*running[by:], *running[:by]]


def walk(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> Course:
    """Follow a run by arithmetic alone; the oracle of the scenario."""
    k, size, window = (
        int(point[name]) for name in ("num_speculative_tokens", "block_size", "window")
    )
    tracks: list[Track] = []
    block = 1
    for number in range(int(point["requests"])):
        start, end, room = reach(point, number)
        true = continuation(prompt(point, number), room, window)
        blocks = -(-room // size)
        tracks.append(Track(number, true, start, end, block, block + blocks))
        block += blocks
    loop = _Loop(point, settings, tracks)
    lost: set[int] = set()
    accepted, rounds, engine_step = [0] * k, 0, 0
    while running := [t for t in tracks if t.length < t.end]:
        for track in running:
            if engine_step:
                track.held_from = max(0, track.length - window)
            good, rest = 0, track.tokens[track.length :]
            while good < len(track.drafts) and track.drafts[good] == rest[good]:
                good += 1
            if track.drafts:
                rounds += 1
                accepted = [n + (i < good) for i, n in enumerate(accepted)]
                if good < k:
                    lost.add(track.number)
            track.length = min(track.end, track.length + good + 1)
        order = batch_order(
            [t.number for t in running if t.length < t.end], engine_step, point["reorder"]
        )
        loop.draft([tracks[number] for number in order])
        engine_step += 1
    return Course(
        tuple(sorted(lost)),
        tuple(sorted(loop.stale)),
        frozenset(loop.foreign),
        tuple(accepted),
        rounds,
    )


class _Loop:
    """The draft layer: what its cache holds, and what its captured index holds, row by row."""

    def __init__(
        self,
        point: Mapping[str, Scalar],
        settings: Mapping[str, Scalar],
        tracks: Sequence[Track],
    ) -> None:
        self.k = int(point["num_speculative_tokens"])
        self.size = int(point["block_size"])
        self.window = int(point["window"])
        self.tracks = tracks
        captured = point["mode"] == "captured"
        build = settings["build"]
        self.late = captured and build == "never"
        self.rebuilt = build == "rebuild_in_place" or (build == "rebuild_new" and not captured)
        self.old_slots = build == "snapshot"
        self.stuck = captured and settings["last_update"] == "skipped"
        self.cells: dict[int, int] = {}
        self.index = [[0] for _ in tracks]  # as a warm-up on the null block left it
        self.stale: set[int] = set()
        self.foreign: set[int] = set()

    def _window(self, track: Track, last: int) -> list[int]:
        first = max(0, last + 1 - self.window)
        return [track.slot(p, self.size) for p in range(first, last + 1)]

    def draft(self, batch: Sequence[Track]) -> None:
        """k drafts for each request, by row."""
        for track in batch:
            for position in range(track.drafted_to, track.length):
                self.cells[track.slot(position, self.size)] = track.tokens[position]
            track.drafted_to = track.length
            track.drafts = [track.tokens[track.length]]
        first = [self._window(track, track.length) for track in batch]
        if not self.late:
            self.index[: len(batch)] = first
        for step in range(1, self.k):
            reached = [t.length if self.stuck else t.length + step - 1 for t in batch]
            for track, position in zip(batch, reached, strict=True):
                at = track.length if self.old_slots else position
                self.cells[track.slot(at, self.size)] = track.drafts[-1]
            for row, (track, position) in enumerate(zip(batch, reached, strict=True)):
                used = self._window(track, position) if self.rebuilt else self.index[row]
                if used != self._window(track, track.length + step - 1):
                    self.stale.add(track.number)
                self.foreign |= {slot for slot in used if not self._may(track, slot)}
                total = sum(self.cells.get(slot, 0) for slot in used)
                track.drafts.append(next_token(total, track.drafts[-1]))
        # a request that is done leaves its row to the null block
        self.index = [*first, *([0] for _ in self.tracks[len(batch) :])]

    def _may(self, track: Track, slot: int) -> bool:
        block = slot // self.size
        held = track.first_block + track.held_from // self.size
        return block == 0 or held <= block < track.last_block
