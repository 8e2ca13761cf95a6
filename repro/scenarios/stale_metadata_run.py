"""The program of scenario `stale_metadata`; its declaration is in `stale_metadata.py`.

Departures from vLLM, stated in docs/faults/stale-draft-metadata.md: next draft and embedding are
the host's, so the serving loop captures one step, never the whole loop; and the rotation of keys is
left out in the loop, since no variant has a stale position.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..ops import EVERYBODY, NOBODY, Ops, Owners, Tensor, Timeline
from ..records import Finding, Kind, Outcome, Scalar, Service
from . import toy_model as model
from .acceptance import AcceptanceLog
from .draft_loop import DraftedStep, DraftLoop
from .serving import Layer, Pages, Request, Span
from .stale_course import batch_order, prompt, reach
from .stale_metadata import runs
from .target_step import target_step

SHOWN_STEP = 1  # the engine step of the table: the first that verifies drafts
DERIVED = {
    "once": "before the loop",
    "snapshot": "before the loop, and the slots with it",
    "never": "one engine step before, or at warm-up",
    "rebuild_new": "before the loop: later ones went to tensors the graph does not read",
    "rebuild_in_place": "from lengths that the graph does not advance",
}


class Engine:
    """A serving loop with a windowed target and a windowed draft layer."""

    def __init__(
        self,
        ops: Ops,
        timeline: Timeline,
        point: Mapping[str, Scalar],
        settings: Mapping[str, Scalar],
        owners: Mapping[str, str],
    ) -> None:
        self.ops, self.timeline = ops, timeline
        self.point, self.settings = point, settings
        self.k = int(point["num_speculative_tokens"])
        self.window = int(point["window"])
        self.block_size = int(point["block_size"])
        self.log = AcceptanceLog()
        self.stale: dict[int, Finding] = {}
        self.who = self.foreign = ""
        self.rounds = 0
        self.by_position = [0] * self.k
        self.shown: list[list[Any]] = []
        reaches = [reach(point, number) for number in range(int(point["requests"]))]
        longest = max(room for _, _, room in reaches)
        columns = -(-longest // self.block_size)
        self.pages = Pages(ops, block_size=self.block_size, columns=columns, owners=owners)
        self.requests = []
        for number, (_, end, room) in enumerate(reaches):
            self.requests.append(Request(number, prompt(point, number), end))
            self.pages.give(number, 0, room)
        self.wanted = {
            r.number: model.continuation(r.tokens, r.end, self.window) for r in self.requests
        }
        slots = len(self.pages.owner) * self.block_size
        self.target, self.draft_layer = (
            Layer(ops, prefix, self.pages, slots=slots, positions=longest, window=self.window)
            for prefix in ("target_", "")
        )
        self.loop = DraftLoop(ops, timeline, self.draft_layer, self._tables(), point, settings)

    def _tables(self) -> NDArray[np.int32]:
        return np.stack([self.pages.rows[r.number] for r in self.requests])

    def _table(self, batch: Sequence[int]) -> Tensor:
        rows = np.stack([self.pages.rows[number] for number in batch])
        owners = None
        if self.pages.declared.get("block_table") == "row":
            owners = Owners(rows.shape[1], np.asarray(batch, np.int32))
        return self.timeline.tensor("block_table", rows, owners=owners)

    def _give_back(self, request: int, first: int) -> None:
        """Blocks wholly before position `first` leave the request: its table has the null block."""
        row = self.pages.rows[request]
        gone = row[: first // self.block_size]
        for block in gone[gone > 0]:
            self.pages.owner[block] = NOBODY
        for tensor in (self.draft_layer.key_cache, self.draft_layer.value_cache):
            if tensor.owners is not None:
                tensor.owners.of[gone[gone > 0]] = NOBODY
        gone[:] = 0

    def serve(self) -> None:
        """Step until every request is done."""
        engine_step = 0
        while running := [r for r in self.requests if not r.finished]:
            self._target_step(running, engine_step)
            unfinished = [r.number for r in running if not r.finished]
            self._draft(batch_order(unfinished, engine_step, self.point["reorder"]), engine_step)
            engine_step += 1

    def _target_step(self, running: Sequence[Request], engine_step: int) -> None:
        if engine_step:
            for request in running:
                self._give_back(request.number, max(0, request.length - self.window))
        table = self._table([r.number for r in running])
        for done in target_step(self.ops, self.target, table, running, self.log):
            if done.drafted:
                self.rounds += 1
                self.by_position = [n + (i < done.accepted) for i, n in enumerate(self.by_position)]
            if done.request.finished:
                row = self.pages.rows[done.request.number]
                self._give_back(done.request.number, len(row) * self.block_size)

    def _draft(self, batch: Sequence[int], engine_step: int) -> None:
        """The first draft on the pass over the new tokens, then the loop."""
        if not batch:
            return
        self.ops.step = 0
        requests = [self.requests[number] for number in batch]
        spans = [Span(r.number, r.draft_done, r.tokens[r.draft_done :], 1) for r in requests]
        first = self.draft_layer.extend(self._table(batch), spans)
        for request in requests:
            request.draft_done = request.length
        self.loop.gather(batch, self._tables())
        lengths = [r.length for r in requests]
        drafts, steps = self.loop.run(lengths, [row[0] for row in first])
        for row, request in enumerate(requests):
            request.drafts = drafts[row]
        for used in steps:
            for row, request in sorted(enumerate(requests), key=lambda pair: pair[1].number):
                self._compare(row, request, used, engine_step == SHOWN_STEP)

    def _compare(self, row: int, request: Request, used: DraftedStep, shown: bool) -> None:
        """Hold what a draft step used against what the request's own table says it needs."""
        last = request.length + used.step - 1
        positions = np.arange(max(0, last + 1 - self.window), last + 1)
        table = self.pages.rows[request.number]
        needed = table[positions // self.block_size] * self.block_size + positions % self.block_size
        got = used.index[row, : used.lengths[row]]
        if request.number not in self.stale and not np.array_equal(needed, got):
            self.stale[request.number] = Finding(
                Kind.WRONG_VALUE,
                launch=used.attention,
                op="paged_attention",
                tensor="index",
                elements=(row * self.window, row * self.window + max(len(needed), len(got)) - 1),
                request=request.number,
                step=used.step,
                expected=f"slots {spans_of(needed)}",
                got=f"slots {spans_of(got)}",
            )
        foreign = self._foreign(request.number, got)
        if (foreign and not self.foreign) or (request.number in self.stale and not self.who):
            self.foreign = foreign
            self.who = (
                f"request {request.number}, draft step {used.step} of {self.k - 1}, length "
                f"{last + 1}: attention over slots {spans_of(got)}{foreign}, needed "
                f"{spans_of(needed)}; derived {DERIVED[str(self.settings['build'])]}"
            )
        if shown and request is self.requests[0]:
            self.shown.append(
                [
                    used.step,
                    *(len(needed), len(got)),
                    *(int(needed[-1]), int(used.slots[row])),
                    *(spans_of(needed), spans_of(got)),
                ]
            )

    def _foreign(self, request: int, slots: NDArray[Any]) -> str:
        """Whose slots among these a request may not touch, in brackets; "" if it may all."""
        owners = {self.pages.owner[block] for block in (slots // self.block_size).tolist()}
        others = sorted(owners - {request, EVERYBODY})
        said = ["free" if owner == NOBODY else f"request {owner}'s" for owner in others]
        return f" ({', '.join(said)})" if said else ""


def spans_of(slots: NDArray[Any]) -> str:
    """Slots in their order, neighbours joined: "9-14,20"."""
    return ",".join(f"{a}-{b}" if a != b else f"{a}" for a, b in runs(slots.tolist()))


COLUMNS = ["draft", "length", "used", "slot", "used", "index", "used", "column", "used", "accepted"]


def play(
    ops: Ops,
    point: Mapping[str, Scalar],
    settings: Mapping[str, Scalar],
    owners: Mapping[str, str],
) -> Outcome:
    """Serve the requests of a point; under random sampling, test the distribution as well."""
    timeline = Timeline(ops.device)
    timed = Ops(timeline)
    engine = Engine(timed, timeline, point, settings, owners)
    engine.serve()
    log = engine.log
    accepted = [f"{n}/{engine.rounds}" for n in engine.by_position]
    metrics: dict[str, Any] = {
        "rounds": engine.rounds,
        "accepted_by_position": engine.by_position,
    }
    findings = [*(f for _, f in sorted(engine.stale.items())), *log.losses()]
    right = all(r.tokens == engine.wanted[r.number] for r in engine.requests)
    notes = []
    if log.accepted < log.drafted:
        notes.append(
            f"{log.accepted} of {log.drafted} drafts accepted, by position "
            f"{', '.join(accepted)}; final tokens {'right' if right else 'wrong'}"
        )
    who, columns = engine.who, ["–"] * engine.k
    sampling = settings["column"] != "none"
    if sampling:
        from .draft_sampling import experiment

        sampled, wrong = experiment(timed, timeline, point, settings)
        metrics["random_sampling"] = sampled
        columns = sampled["columns_used"]
        findings += wrong
        if wrong:
            who = who or sampled["who"]
            notes.append(sampled["effect"])
    timeline.synchronize()
    rows = [[0, *["–"] * 6], *engine.shown] if engine.shown else []
    metrics["table"] = {
        "columns": COLUMNS,
        "rows": [
            [*row, row[0] if sampling else "–", columns[row[0]], accepted[row[0]]] for row in rows
        ],
    }
    return Outcome(
        service=Service(
            finished=all(r.finished for r in engine.requests),
            tokens_right=right,
            drafted=log.drafted,
            accepted=log.accepted,
            speculated=log.drafted > 0,
        ),
        findings=tuple(findings),
        metrics=metrics,
        notes=tuple(notes),
        who=who,
    )
