"""The program of scenario `mtp_tail`; its declaration and closed form are in `mtp_tail.py`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..ops import Ops, Tensor
from ..records import Finding, Kind, Outcome, Scalar, Service
from . import toy_model as model
from .acceptance import AcceptanceLog
from .bounds import SequenceBounds
from .mtp_tail import GARBAGE_BLOCK, WIDTH, columns
from .serving import Layer, Pages, Request, Span
from .target_step import target_step

AT_LIMIT = {"ignore": 0, "pad": 1, "clamp": 2}  # as kernels/draft_step defines them
LONG, OTHER = 0, 1  # request numbers
SPECULATIVE_STEPS = 2  # of the long request: one that fits, then the one in question
ARENA = 64  # int32 words of stale memory behind the block table
SLOT_BYTES = 2 * WIDTH * 2  # key and value, fp16


class OutOfMemory(Exception):
    """The engine asked for more than the device has."""


class Engine:
    """A serving loop that admits, drafts and verifies as the settings say."""

    def __init__(
        self,
        ops: Ops,
        point: Mapping[str, Scalar],
        settings: Mapping[str, Scalar],
        owners: Mapping[str, str],
    ) -> None:
        self.ops = ops
        self.settings = settings
        self.limit = int(point["max_model_len"])
        self.k = int(point["num_speculative_tokens"])
        self.bounds = SequenceBounds(self.limit, self.k)
        self.placement = str(point["placement"])
        self.own_step = point["first_draft"] == "own_step"
        self.cap = int(point["device_gib"]) << 30
        self.log = AcceptanceLog()
        self.findings: list[Finding] = []
        self.who = ""
        self.notes: list[str] = []
        self.missed = 0  # speculative steps that would have fitted and did not happen
        self.speculative_steps = {LONG: 0, OTHER: 0}
        seed = int(point["seed"])
        seq_len = int(point["seq_len"])
        # The step that fits makes k + 1 tokens, prefill one more: then seq_len is reached.
        start = model.prompt(seq_len - self.k - 2, seed)
        self.requests = [Request(LONG, start, self.limit)]
        if self.placement == "neighbour":
            other = self._unlike(start, model.prompt(int(point["neighbour_len"]), seed + 1))
            end = len(other) + int(point["neighbour_new"])
            self.requests.append(Request(OTHER, other, end))
        self.wanted = {r.number: model.continuation(r.tokens, r.end, 0) for r in self.requests}
        self.pages, slots = self._place(ops, point, owners)
        self.target = Layer(ops, "target_", self.pages, slots=slots, positions=self.limit)
        # The rotation table is longer than any overrun, so that only slots are in question.
        rotations = self.limit + self.k + 1
        self.draft_layer = Layer(ops, "", self.pages, slots=slots, positions=rotations)
        self.pool_slots = slots
        self.routing: tuple[Tensor, Tensor] | None = None
        if settings["routed"]:
            # expert ids and weights of every token, kept by slot as RL post-training asks for them
            shape = (slots, model.HEADS, model.HEAD_DIM)
            blocks = -(-slots // self.pages.block_size)
            experts, weights = (
                ops.device.tensor(
                    name,
                    np.zeros(shape, np.float16),
                    owners=self.pages.block_owners(name, blocks, WIDTH),
                )
                for name in ("routed_experts", "routed_weights")
            )
            self.routing = experts, weights

    def _unlike(self, start: Sequence[int], prompt: list[int]) -> list[int]:
        """A prompt that differs from what an overrun would write over it, token by token."""
        beyond = model.continuation(start, self.limit + self.k, 0)[self.limit :]
        for at, token in enumerate(beyond[: len(prompt)]):
            if prompt[at] == token:
                prompt[at] = 1 + token % (model.VOCAB - 1)
        return prompt

    def _place(
        self, ops: Ops, point: Mapping[str, Scalar], owners: Mapping[str, str]
    ) -> tuple[Pages, int]:
        if self.placement == "unmapped":
            page = self.limit + self.k + 1
            pages = Pages(ops, block_size=page, columns=1, owners={})
            pages.one_page(LONG)
            return pages, self.limit
        size = int(point["block_size"])
        pages = Pages(ops, block_size=size, columns=columns(point), owners=owners)
        for request in self.requests:
            room = self.limit if request.number == LONG else request.end + self.k
            pages.give(request.number, 0, room)
        return pages, len(pages.owner) * size

    def table(self, batch: Sequence[int]) -> Tensor:
        behind = None
        if self.placement == "garbage_size":
            behind = np.full(ARENA, GARBAGE_BLOCK, np.int32)
        return self.pages.table(batch, behind)

    def serve(self) -> bool:
        """Step until every request is done; False where the engine died on the way."""
        try:
            while running := [r for r in self.requests if not r.finished]:
                self._target_step(running)
                self._draft(
                    [r for r in running if not r.finished and self._admitted(r)],
                )
        except OutOfMemory:
            return False
        return True

    def _target_step(self, running: list[Request]) -> None:
        for request in running:
            # The scheduler leaves room for the bonus token: at most L - 1 computed tokens.
            request.drafts = request.drafts[: self.limit - request.length - 1]
        table = self.table([r.number for r in running])
        target_step(self.ops, self.target, table, running, self.log)

    def _admitted(self, request: Request) -> bool:
        """Whether the scheduler lets this request take a speculative step now."""
        turn = self.speculative_steps[request.number]
        if request.number == LONG and turn >= SPECULATIVE_STEPS:
            return False
        fits_all = self.bounds.can_generate(request.length)
        if self.settings["admit"] == "all_drafts":
            admitted = fits_all
        else:
            admitted = request.length + 1 <= self.limit
        self.speculative_steps[request.number] += 1
        if fits_all and not admitted:
            self.missed += 1
        return admitted

    def _draft_count(self, request: Request) -> int:
        if self.settings["drafts"] == "clamp_to_remaining":
            return self.bounds.draft_length(request.length)
        return self.k

    def _draft(self, batch: list[Request]) -> None:
        if not batch:
            return
        self.ops.step = 0
        counts = {r.number: self._draft_count(r) for r in batch}
        if self.settings["admit"] == "all_drafts":
            for request in batch:  # the draft entry asks the scheduler's own object again
                self.bounds.check_position(request.length, counts[request.number])
                if self.routing:
                    self.bounds.check_position(request.length, counts[request.number], "routing")
        spans = [Span(r.number, r.draft_done, r.tokens[r.draft_done :], 1) for r in batch]
        first = self.draft_layer.extend(self.table([r.number for r in batch]), spans)
        for request, row in zip(batch, first, strict=True):
            request.draft_done = request.length
            request.drafts = list(row)
        passes = {n: count if self.own_step else count - 1 for n, count in counts.items()}
        live: list[Request] = []
        for step in range(1, max(passes.values(), default=0) + 1):
            still = [r for r in batch if passes[r.number] >= step]
            if still != live:
                live = still
                positions, seq_lens, slots = self._live_tensors(live, step)
            self._draft_pass(live, step, positions, seq_lens, slots)
        for request in batch:
            request.drafts = request.drafts[: counts[request.number]]

    def _live_tensors(self, live: list[Request], step: int) -> tuple[Tensor, Tensor, Tensor]:
        """Positions, lengths and slots as they stand before draft pass `step`."""
        device = self.ops.device
        before = np.asarray([r.length + step - 2 for r in live])
        return (
            device.tensor("positions", before.astype(np.int64)),
            device.tensor("seq_lens", (before + 1).astype(np.int32)),
            device.tensor("slots", np.full(len(live), -1, np.int64)),
        )

    def _draft_pass(
        self, live: list[Request], step: int, positions: Tensor, seq_lens: Tensor, slots: Tensor
    ) -> None:
        """One pass of the draft layer: advance, then compute the draft made last."""
        self.ops.step = step
        batch = [r.number for r in live]
        table = self.table(batch)
        self.ops.draft_step(
            positions,
            seq_lens,
            table,
            slots,
            block_size=self.pages.block_size,
            limit=self.limit,
            at_limit=AT_LIMIT[str(self.settings["at_limit"])],
            requests=batch,
        )
        self._name_overrun(live, step, positions)
        if self.placement == "garbage_size":
            self._grow_pool(live, slots)
        tokens = [r.drafts[step - 1] for r in live]
        predicted = self.draft_layer.step(table, batch, tokens, positions, slots, seq_lens)
        if self.routing:
            experts, weights, _ = model.embed(tokens)
            device = self.ops.device
            self.ops.kv_write(
                device.tensor("experts", experts),
                device.tensor("weights", weights),
                *self.routing,
                slots,
                requests=batch,
            )
        for request, token in zip(live, predicted, strict=True):
            request.drafts.append(token)

    def _name_overrun(self, live: list[Request], step: int, positions: Tensor) -> None:
        if self.who or self.settings["at_limit"] != "ignore":
            return
        for request, position in zip(live, self.ops.device.read(positions), strict=True):
            if position >= self.limit:
                self.who = (
                    f"request {request.number}, draft {step} of {self.k}, position {position}; "
                    f"admitted at length {request.length} because "
                    f"{request.length} + 1 ≤ {self.limit}"
                )
                return

    def _grow_pool(self, live: list[Request], slots: Tensor) -> None:
        """The third face as reported: the pool grows to hold the highest slot asked for."""
        highest = int(self.ops.device.read(slots).max(initial=-1))
        if highest < self.pool_slots:
            return
        size = (highest + 1) * SLOT_BYTES
        if not self.ops.device.allocate("kv_pool", size):
            self.findings.append(
                Finding(
                    Kind.OVERSIZED_ALLOCATION,
                    launch=self.ops.launches - 1,
                    op="draft_step",
                    tensor="block_table",
                    request=live[0].number,
                    step=self.ops.step,
                    expected=self.cap,
                    got=size,
                )
            )
            raise OutOfMemory
        self.pool_slots = highest + 1


def play(
    ops: Ops,
    point: Mapping[str, Scalar],
    settings: Mapping[str, Scalar],
    owners: Mapping[str, str],
) -> Outcome:
    """Serve the requests of a point and say what became of them."""
    engine = Engine(ops, point, settings, owners)
    alive = engine.serve()
    log = engine.log
    metrics = {
        "requests": [
            {
                "request": r.number,
                "length": r.length,
                "drafted": r.drafted,
                "accepted": r.accepted,
                "tokens_by_step": r.grown,
            }
            for r in engine.requests
        ],
    }
    for request in engine.requests:
        if request.accepted < request.drafted:
            engine.notes.append(
                f"request {request.number}: {request.accepted} of {request.drafted} drafts "
                f"accepted, final tokens "
                + ("right" if request.tokens == engine.wanted[request.number] else "wrong")
            )
    return Outcome(
        service=Service(
            finished=alive and all(r.finished for r in engine.requests),
            tokens_right=all(r.tokens == engine.wanted[r.number] for r in engine.requests),
            drafted=log.drafted,
            accepted=log.accepted,
            speculated=engine.missed == 0 and log.drafted > 0,
        ),
        findings=(*engine.findings, *log.losses()),
        metrics=metrics,
        notes=tuple(engine.notes),
        who=engine.who,
    )
