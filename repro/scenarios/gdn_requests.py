"""Requests of the GDN pipeline, and the steps a scheduler cuts them into. No tensor here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .gdn_partition import sizes
from .gdn_tokens import PERIOD

ZERO_COLUMN = 0  # of a request's state table: the block that is always zero
FIRST_BLOCK = 2  # block 0 is the null block, block 1 the zero block


@dataclass(frozen=True, slots=True)
class Setup:
    """A point and the fault, as the program reads them; see `gdn_pipeline.PARAMETERS`."""

    layers: int
    partition: str
    chunk: int
    mamba_block: int
    block_size: int
    execution: str
    blocking: bool
    prefix_caching: bool
    in_flight: int
    num_speculative_tokens: int
    runner: str
    recycled: bool
    block_elements: int
    seed: int
    fault: str

    @property
    def counts(self) -> tuple[int, ...]:
        return sizes(self.partition, self.layers)

    @property
    def limit(self) -> int:
        """Steps in flight at most."""
        if self.blocking:
            return 1
        return self.in_flight or len(self.counts)

    def column(self, tokens: int) -> int:
        """Column of the state after `tokens` tokens."""
        if tokens == 0:
            return ZERO_COLUMN
        return 1 + (tokens - 1) // self.mamba_block if self.prefix_caching else 1


@dataclass(eq=False, slots=True)
class Request:
    """A request. `slot` numbers it; `shared` is the slot whose first `cached` tokens it reuses.

    base: column of its running state; accepted: 1 + how far behind it the state lies (MTP).
    """

    slot: int
    tokens: list[int]
    end: int
    arrival: int = 0
    after: tuple[int, ...] = ()  # slots that must have ended before
    cached: int = 0
    shared: int = -1
    computed: int = 0
    running: int = 0  # steps in flight
    base: int = ZERO_COLUMN
    accepted: int = 1
    last_chunk: int = 0
    drafted: int = 0
    taken: int = 0
    prompt: int = field(init=False)

    def __post_init__(self) -> None:
        self.prompt = len(self.tokens)
        self.computed = self.cached

    @property
    def finished(self) -> bool:
        return len(self.tokens) >= self.end


@dataclass(frozen=True, slots=True)
class Row:
    """One request's part of a step: `tokens` from position `start` on, the last `drafts` guessed.

    source, base: columns of the state it continues and of the one it writes. accepted: where in the
    columns behind `base` it starts (MTP). answers: whether its last token's successor is sampled.
    """

    slot: int
    start: int
    tokens: tuple[int, ...]
    drafts: int
    prefill: bool
    source: int
    base: int
    accepted: int
    answers: bool


@dataclass(slots=True)
class Step:
    """A batch. width: columns of state tables it gathers. said: next token by token, per row."""

    number: int
    rows: tuple[Row, ...]
    width: int
    said: list[list[int]] = field(default_factory=list)

    @property
    def decode(self) -> bool:
        return not any(row.prefill for row in self.rows)

    @property
    def starts(self) -> list[int]:
        """Where each row's tokens start in the batch, and the end."""
        at = [0]
        for row in self.rows:
            at.append(at[-1] + len(row.tokens))
        return at


class Scheduler:
    """Cuts requests into steps: a chunk of each prompt, or one decode of each that has its token.

    guesses: slot → the whole sequence a drafter proposes from.
    """

    def __init__(self, setup: Setup, requests: Sequence[Request], guesses: list[list[int]]) -> None:
        self.setup = setup
        self.requests = list(requests)
        self.guesses = guesses
        self.steps = 0

    def ended(self) -> bool:
        return all(request.finished for request in self.requests)

    def next(self, tick: int) -> Step | None:
        """The step of this tick; None if no request is ready."""
        ready = [r for r in self.requests if self._ready(r, tick)]
        prompts = [r for r in ready if r.computed < r.prompt]
        if prompts and self.setup.num_speculative_tokens:
            ready = prompts  # rows with drafts and chunks of prompts take launches of two kinds
        if not ready:
            return None
        rows = [self._chunk(r) if r in prompts else self._decode(r) for r in ready]
        extra = self.setup.num_speculative_tokens
        self.steps += 1
        return Step(self.steps - 1, tuple(rows), max(row.base for row in rows) + 1 + extra)

    def _ready(self, request: Request, tick: int) -> bool:
        if request.finished or tick < request.arrival:
            return False
        if any(not self.requests[slot].finished for slot in request.after):
            return False
        return request.computed < request.prompt or request.running == 0

    def _chunk(self, request: Request) -> Row:
        setup, start = self.setup, request.computed
        count = min(setup.chunk, request.prompt - start)
        past = (start + count) % setup.mamba_block
        if setup.prefix_caching and past < count:
            count -= past  # a chunk ends at a block border, so that the state there is kept
        first = start == request.cached
        source, base = setup.column(start), setup.column(start + count)
        if setup.fault == "wrong_block_unit" and first and start:
            source = 1 + (start - 1) // setup.block_size
        if setup.fault == "unmasked_state" and start == 0:
            source = base
        request.computed += count
        request.base, request.last_chunk = base, count
        request.running += 1
        tokens = tuple(request.tokens[start : start + count])
        answers = request.computed == request.prompt
        return Row(request.slot, start, tokens, 0, True, source, base, 1, answers)

    def _decode(self, request: Request) -> Row:
        setup, start = self.setup, request.computed
        k = setup.num_speculative_tokens
        source = base = request.base
        accepted = request.accepted
        drafts: tuple[int, ...] = ()
        if k:
            length = len(request.tokens)
            drafts = tuple(self.guesses[request.slot][length : min(length + k, request.end - 1)])
            if setup.fault == "accepted_lost" and not drafts:
                accepted = 1
            if setup.fault == "accepted_unbounded" and start == request.prompt:
                accepted = request.last_chunk
        else:
            base = request.base = setup.column(start + 1)
        request.running += 1
        tokens = (request.tokens[-1], *drafts)
        return Row(request.slot, start, tokens, len(drafts), False, source, base, accepted, True)

    def complete(self, step: Step) -> list[tuple[int, int, int]]:
        """Take what the last stage said; (row, source, target column) of states to commit."""
        commits = []
        for number, (row, said) in enumerate(zip(step.rows, step.said, strict=True)):
            request = self.requests[row.slot]
            request.running -= 1
            if not row.answers:
                continue
            kept = 1
            while kept <= row.drafts and said[-1 - row.drafts + kept - 1] == row.tokens[kept]:
                kept += 1
            emitted = said[-1 - row.drafts :][:kept]
            request.tokens += emitted[: request.end - len(request.tokens)]
            if row.prefill:
                continue
            request.drafted += row.drafts
            request.taken += kept - 1
            request.computed += kept
            if self.setup.num_speculative_tokens == 0:
                continue
            request.accepted = kept
            target = self.setup.column(request.computed)
            if target != request.base:
                commits.append((number, request.base + kept - 1, target))
                request.base, request.accepted = target, 1
        return commits


def block_number(setup: Setup, slots: int, slot: int, group: int, column: int) -> int:
    """The state block of a request's column (from 1) in a group; columns are given out in order."""
    return FIRST_BLOCK + ((column - 1) * slots + slot) * PERIOD + group


def right_block(setup: Setup, slots: int, request: Request, group: int, column: int) -> int:
    """The state block that a request's table has to name at `column`."""
    if column == ZERO_COLUMN:
        return FIRST_BLOCK - 1
    cached = request.shared >= 0 and column <= setup.column(request.cached)
    slot = request.shared if cached else request.slot
    return block_number(setup, slots, slot, group, column)


def wrapped(block: int, elements: int) -> int:
    """A block number whose element offset went through 32-bit arithmetic."""
    offset = (block * elements + (1 << 31)) % (1 << 32) - (1 << 31)
    return offset // elements
