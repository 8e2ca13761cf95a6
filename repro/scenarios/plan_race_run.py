"""The program of scenario `plan_race`; declaration in `plan_race.py`, closed form in
`plan_forecast.py`.

The token that a draft pass computes on is the one a healthy pass before it would have drafted: a
device would hand its own on, and the host must not wait for it. Acceptance ends at the first wrong
draft, so what the later ones of its step would have been shows nowhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..ops import Ops, Schedule, Tensor, Timeline
from ..records import Outcome, Scalar, Service
from . import toy_model as model
from .acceptance import AcceptanceLog
from .plan_arrival import ENGINE_BUFFERS, LIBRARY_BUFFER
from .plan_buffers import PlanBuffers
from .plan_race import growth, pace, paging, prompts, sizes
from .plan_witness import PlanWitness, Sighting
from .serving import Layer, Pages, Request, Span
from .split_plan import SplitPlan, make_plan
from .target_step import target_step

IGNORE_LIMIT = 0  # draft_step, as kernels/draft_step defines it: every position has its slot


class Engine:
    """A serving loop whose draft passes plan their attention and do not wait for the device."""

    def __init__(
        self,
        ops: Ops,
        point: Mapping[str, Scalar],
        settings: Mapping[str, Scalar],
        owners: Mapping[str, str],
    ) -> None:
        self.ops = ops
        self.point = point
        self.fence = str(settings["fence"])
        self.k = int(point["num_speculative_tokens"])
        self.turns = 0
        self.log = AcceptanceLog()
        self.right_drafts = [0] * self.k  # by draft position, all requests
        self.rounds_drafted = 0
        self.requests = [
            Request(number, start, len(start) + growth(point))
            for number, start in enumerate(prompts(point))
        ]
        self.batch = [r.number for r in self.requests]
        self.healthy = [model.continuation(r.tokens, r.end + self.k, 0) for r in self.requests]
        size, columns = paging(point, settings)
        self.pages = Pages(ops, block_size=size, columns=columns, owners=owners)
        for number in self.batch:
            self.pages.give(number, 0, columns * size)
        slots = len(self.pages.owner) * size
        positions = columns * size
        self.target = Layer(ops, "target_", self.pages, slots=slots, positions=positions)
        self.draft_layer = Layer(ops, "", self.pages, slots=slots, positions=positions)
        self.buffers = PlanBuffers(ops, sizes(point, columns), settings)
        self.sightings: list[Sighting] = []

    def serve(self) -> None:
        """Step until every request is done; the first `rounds` steps speculate."""
        while running := [r for r in self.requests if not r.finished]:
            table = self.pages.table([r.number for r in running])
            target_step(self.ops, self.target, table, running, self.log)
            if self.turns < int(self.point["rounds"]):
                self._draft()
                self.turns += 1

    def _draft(self) -> None:
        """k drafts for every request: one from a pass over its new tokens, the rest by the loop."""
        self.ops.step = 0
        table = self.pages.table(self.batch)
        spans = [Span(r.number, r.draft_done, r.tokens[r.draft_done :], 1) for r in self.requests]
        drafts = [list(row) for row in self.draft_layer.extend(table, spans)]
        for request in self.requests:
            request.draft_done = request.length
        outs, lengths = self._loop(table)
        for out, visible in zip(outs, lengths, strict=True):
            for row, token in zip(drafts, model.decode(out, visible), strict=True):
                row.append(token)
        for request, row in zip(self.requests, drafts, strict=True):
            request.drafts = row
            right = self.healthy[request.number][request.length :]
            for position, token in enumerate(row):
                self.right_drafts[position] += token == right[position]
        self.rounds_drafted += 1

    def _loop(self, table: Tensor) -> tuple[list[NDArray[np.float32]], list[list[int]]]:
        """The k - 1 passes, on a schedule of their own; the host reads nothing before the end."""
        speed = pace(self.point, self.turns)
        witness = PlanWitness(self.ops.device)
        timeline = Timeline(
            witness, Schedule(host_ahead=speed.host_ahead, seed=speed.seed, exactly=speed.steady)
        )
        before = np.asarray([r.length - 1 for r in self.requests])
        device, self.ops.device = self.ops.device, timeline
        try:
            positions = timeline.tensor("positions", before.astype(np.int64))
            seq_lens = timeline.tensor("seq_lens", (before + 1).astype(np.int32))
            slots = timeline.tensor("slots", np.full(len(before), -1, np.int64))
            outs, lengths, plans = [], [], []
            for number in range(self.k - 1):
                self.ops.step = number + 1
                lengths.append([r.length + number + 1 for r in self.requests])
                plans.append(self._plan(lengths[-1]))
                if self.fence == "before_plan":
                    timeline.synchronize()
                outs.append(
                    self._pass(timeline, number, plans[-1], table, positions, seq_lens, slots)
                )
            timeline.synchronize()
        finally:
            self.ops.device = device
        self.sightings += witness.sightings(plans)
        return [device.read(out) for out in outs], lengths

    def _plan(self, lengths: Sequence[int]) -> SplitPlan:
        return make_plan(
            lengths,
            [self.pages.rows[number].tolist() for number in self.batch],
            block_size=self.pages.block_size,
            max_chunks=int(self.point["max_chunks"]),
        )

    def _pass(
        self,
        timeline: Timeline,
        number: int,
        plan: SplitPlan,
        table: Tensor,
        positions: Tensor,
        seq_lens: Tensor,
        slots: Tensor,
    ) -> Tensor:
        """Queue one draft pass; its attention output, to be read when all are done."""
        ops, layer, batch = self.ops, self.draft_layer, self.batch
        ops.draft_step(
            positions,
            seq_lens,
            table,
            slots,
            block_size=self.pages.block_size,
            limit=len(layer.rope_table.data),
            at_limit=IGNORE_LIMIT,
            requests=batch,
        )
        self.buffers.send(timeline, plan, ENGINE_BUFFERS)
        self.buffers.send(timeline, plan, (LIBRARY_BUFFER,))
        if self.fence == "after_copies":
            timeline.synchronize()
        tokens = [self.healthy[r.number][r.length + number] for r in self.requests]
        query, key, value = (
            timeline.tensor(name, array)
            for name, array in zip(("query", "key", "value"), model.embed(tokens), strict=True)
        )
        ops.rope(key, positions, layer.rope_table, requests=batch)
        ops.rope(query, positions, layer.rope_table, requests=batch)
        ops.kv_write(key, value, layer.key_cache, layer.value_cache, slots, requests=batch)
        partial_out = timeline.tensor(
            "partial_out", np.zeros((plan.chunks, model.HEADS, model.HEAD_DIM), np.float32)
        )
        partial_lse = timeline.tensor(
            "partial_lse", np.zeros((plan.chunks, model.HEADS), np.float32)
        )
        out = timeline.tensor("out", np.zeros(query.shape, np.float32))
        at = self.buffers.device
        ops.planned_attention(
            query,
            layer.key_cache,
            layer.value_cache,
            at["page_indptr"],
            at["page_indices"],
            at["last_page_len"],
            at[LIBRARY_BUFFER],
            partial_out,
            partial_lse,
            chunks=plan.chunks,
            pages_in_chunk=plan.pages_in_chunk,
            request_at=plan.request_at,
            tile_at=plan.tile_at,
            block_size=self.pages.block_size,
            scale=1.0,
            requests=plan.requests,
        )
        ops.merge_states(
            partial_out,
            partial_lse,
            at[LIBRARY_BUFFER],
            out,
            indptr_at=plan.indptr_at,
            requests=batch,
        )
        if self.fence == "after_attention":
            timeline.synchronize()
        return out


def play(
    ops: Ops,
    point: Mapping[str, Scalar],
    settings: Mapping[str, Scalar],
    owners: Mapping[str, str],
) -> Outcome:
    """Serve the requests of a point and say what became of them."""
    engine = Engine(ops, point, settings, owners)
    engine.serve()
    log = engine.log
    right = all(r.tokens == engine.healthy[r.number][: r.end] for r in engine.requests)
    return Outcome(
        service=Service(
            finished=all(r.finished for r in engine.requests),
            tokens_right=right,
            drafted=log.drafted,
            accepted=log.accepted,
            speculated=log.drafted > 0,
        ),
        findings=tuple(log.losses()),
        metrics={
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
            "passes": [
                {
                    "pass": s.number + 1,
                    "chunks": s.plan.chunks,
                    "engine_plan": [n + 1 for n in s.engine],
                    "library_plan": [n + 1 for n in s.library],
                    "own": s.own,
                }
                for s in engine.sightings
            ],
            "right_drafts": engine.right_drafts,
            "table": _table(engine),
        },
        notes=tuple(_notes(engine, right)),
    )


def _table(engine: Engine) -> dict[str, list[list[str]] | list[str]]:
    """A row a draft position of the first round, with the drafts of all rounds counted."""
    of = engine.rounds_drafted * len(engine.requests)
    rows = [["0", "–", "–", "–", "–", f"{engine.right_drafts[0]} of {of}"]]
    for s in engine.sightings[: engine.k - 1]:
        rows.append(
            [
                str(s.number + 1),
                str(s.number + 1),
                " and ".join(str(n + 1) for n in s.engine),
                " and ".join(str(n + 1) for n in s.library),
                f"{s.found_chunks} (launched: {s.plan.chunks})",
                f"{engine.right_drafts[s.number + 1]} of {of}",
            ]
        )
    columns = ["draft", "launched with plan", "found: engine", "library", "its chunks", "right"]
    return {"columns": columns, "rows": rows}


def _notes(engine: Engine, right: bool) -> list[str]:
    notes = []
    stale = [s for s in engine.sightings if not s.own]
    for s in stale[:1]:
        found = sorted({*s.engine, *s.library} - {s.number})
        chunks = " and ".join(str(s.plans[n].chunks) for n in found)
        notes.append(
            f"draft pass {s.number + 1} of {engine.k - 1}, launched with plan {s.number + 1} "
            f"({s.plan.chunks} chunks), found plan {' and '.join(str(n + 1) for n in found)} "
            f"({chunks} chunks) in {_whose(s)}"
        )
    if stale:
        lost = [r for r in engine.requests if r.accepted < r.drafted]
        notes.append(
            f"{len(stale)} of {len(engine.sightings)} passes ran with another plan; acceptance "
            f"fell for {len(lost)} of {len(engine.requests)} requests, final tokens "
            + ("right" if right else "wrong")
        )
    if engine.fence != "none":
        notes.append(
            "host buffers are still overwritten by every plan: the fence in each pass masks the "
            "race, it does not remove it"
        )
    return notes


def _whose(sighting: Sighting) -> str:
    whose = []
    if sighting.engine != (sighting.number,):
        whose.append("the engine's buffers")
    if sighting.library != (sighting.number,):
        whose.append("the library's work space")
    return " and ".join(whose)
