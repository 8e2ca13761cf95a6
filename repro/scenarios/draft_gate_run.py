"""The program of scenario `draft_gate`; its declaration and closed form are in `draft_gate.py`.

Two departures from vLLM, both stated in docs/faults/draft-length-gate.md: the draft layer catches
up the tokens it skipped while the gate was shut (vLLM leaves holes in the draft's KV cache), and
the serving loop is greedy; random sampling is a separate experiment on the rejection sampler.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..ops import Ops
from ..records import Outcome, Scalar, Service
from . import toy_model as model
from .acceptance import PLACEHOLDER, AcceptanceLog
from .draft_gate import draft_length, first_position, gate_open, proposes_zeros, slots_ahead
from .serving import Layer, Pages, Request, Span
from .target_step import target_step

AT_LIMIT_IGNORE = 0  # no guard of the draft kernel takes part in this fault
LONG, SHORT = 0, 1
NAMES = {LONG: "long", SHORT: "short"}
DUMMY = 0  # the token a shut gate proposes for everyone


class Engine:
    """A serving loop with one length gate in front of the draft layer."""

    def __init__(
        self,
        ops: Ops,
        point: Mapping[str, Scalar],
        settings: Mapping[str, Scalar],
        owners: Mapping[str, str],
    ) -> None:
        self.ops = ops
        self.gated = settings["gate"] == "batch"
        self.zeros = proposes_zeros(point, settings)
        self.asynchronous = point["scheduling"] == "async"
        self.k = int(point["num_speculative_tokens"])
        self.window = int(point["window"])
        self.length = draft_length(point, settings)
        self.target_len = int(point["target_len"])
        self.log = AcceptanceLog()
        self.steps: list[dict[str, Any]] = []
        self.requests = []
        for number, name in NAMES.items():
            if size := int(point[f"{name}_prompt"]):
                tokens = model.prompt(size, int(point["seed"]) + number)
                self.requests.append(Request(number, tokens, size + int(point[f"{name}_new"])))
        self.wanted = {
            r.number: model.continuation(r.tokens, r.end, self.window) for r in self.requests
        }
        block = int(point["block_size"])
        self.pages = Pages(ops, block_size=block, columns=self.target_len // block, owners=owners)
        for request in self.requests:
            first = first_position(point, NAMES[request.number])
            request.target_done = request.draft_done = first
            self.pages.give(request.number, first, request.end + 2 * self.k)
        slots = len(self.pages.owner) * block
        self.target = Layer(
            ops, "target_", self.pages, slots=slots, positions=self.target_len, window=self.window
        )
        self.draft_layer = Layer(
            ops, "", self.pages, slots=slots, positions=self.length, window=self.window
        )

    def serve(self) -> None:
        """Step until every request is done."""
        slots, had_drafts, step = 0, False, 0
        while running := [r for r in self.requests if not r.finished]:
            longest = max(r.length + slots for r in running)
            self._target_step(running, slots)
            open_ = not self.gated or gate_open(longest, self.k, self.length)
            still = [r for r in running if not r.finished]
            proposed = "nothing"
            if open_:
                proposed = "drafts"
                self._propose(still)
            elif self.zeros:
                proposed = "zeros"
                for request in still:
                    request.drafts = [DUMMY] * self.k
            self.steps[-1].update(longest=longest, gate="open" if open_ else "shut")
            has_drafts = proposed != "nothing"
            slots = slots_ahead(self.k, step, had_drafts, has_drafts, self.asynchronous)
            had_drafts = has_drafts
            step += 1

    def _target_step(self, running: list[Request], slots: int) -> None:
        for request in running:
            request.drafts = (request.drafts or [PLACEHOLDER] * slots)[:slots]
        table = self.pages.table([r.number for r in running])
        row: dict[str, Any] = {"lengths": {}, "slots": {}, "accepted": {}}
        for done in target_step(self.ops, self.target, table, running, self.log):
            name = NAMES[done.request.number]
            row["lengths"][name] = done.length
            row["slots"][name] = done.drafted + 1
            row["accepted"][name] = done.accepted
        self.steps.append(row)

    def _propose(self, batch: list[Request]) -> None:
        """The draft layer over the new tokens, then k - 1 steps over its own drafts."""
        if not batch:
            return
        self.ops.step = 0
        numbers = [r.number for r in batch]
        table = self.pages.table(numbers)
        device = self.ops.device
        spans = [Span(r.number, r.draft_done, r.tokens[r.draft_done :], 1) for r in batch]
        first = self.draft_layer.extend(table, spans)
        for request, row in zip(batch, first, strict=True):
            request.drafts = list(row)
            request.draft_done = request.length
        if self.k == 1:
            return
        at = np.asarray([r.length - 1 for r in batch])
        positions = device.tensor("positions", at.astype(np.int64))
        seq_lens = device.tensor("seq_lens", (at + 1).astype(np.int32))
        slots = device.tensor("slots", np.full(len(batch), -1, np.int64))
        for step in range(1, self.k):
            self.ops.step = step
            self.ops.draft_step(
                positions,
                seq_lens,
                table,
                slots,
                block_size=self.pages.block_size,
                limit=self.target_len,
                at_limit=AT_LIMIT_IGNORE,
                requests=numbers,
            )
            tokens = [r.drafts[-1] for r in batch]
            said = self.draft_layer.step(table, numbers, tokens, positions, slots, seq_lens)
            for request, token in zip(batch, said, strict=True):
                request.drafts.append(token)


def play(
    ops: Ops,
    point: Mapping[str, Scalar],
    settings: Mapping[str, Scalar],
    owners: Mapping[str, str],
) -> Outcome:
    """Serve both requests, then test the sampler's distribution under the same proposals."""
    from .dummy_sampling import experiment

    engine = Engine(ops, point, settings, owners)
    engine.serve()
    findings = list(engine.log.losses())
    metrics: dict[str, Any] = {
        "draft_len": engine.length,
        "steps": engine.steps,
        "tokens_by_step": {NAMES[r.number]: r.grown for r in engine.requests},
        "shut": _cost(engine),
        "table": _table(engine),
    }
    if samples := int(point["samples"]):
        drafts = "zeros" if engine.zeros else "none"
        if not engine.gated or settings["override"] == "inherited":
            drafts = "honest"
        sampled, wrong = experiment(ops, drafts, engine.k, samples, int(point["seed"]))
        metrics["random_sampling"] = sampled
        findings += wrong
    shut = metrics["shut"]
    who = ""
    if shut["steps"]:
        who = (
            f"gate shut in {shut['steps']} steps: longest request + {engine.k} > "
            f"{engine.length}; {shut['slots_a_step']:g} slots verified a step for "
            f"{shut['tokens_a_step']:g} tokens"
        )
    notes = []
    for request in engine.requests:
        if request.accepted < request.drafted:
            notes.append(
                f"{NAMES[request.number]} request: {request.accepted} of {request.drafted} "
                "drafts accepted, final tokens "
                + ("right" if request.tokens == engine.wanted[request.number] else "wrong")
            )
    return Outcome(
        service=Service(
            finished=all(r.finished for r in engine.requests),
            tokens_right=all(r.tokens == engine.wanted[r.number] for r in engine.requests),
            drafted=engine.log.drafted,
            accepted=engine.log.accepted,
            speculated=_speculated(engine),
        ),
        findings=tuple(findings),
        metrics=metrics,
        notes=tuple(notes),
        who=who,
    )


def _table(engine: Engine) -> dict[str, Any]:
    """Acceptance against length, a row an engine step, for the page of the run."""
    names = [NAMES[r.number] for r in engine.requests]
    columns = ["step", "longest", "gate before"]
    for name in names:
        columns += [f"{name}: length", "slots", "accepted"]
    rows = []
    for number, row in enumerate(engine.steps):
        gate = engine.steps[number - 1]["gate"] if number else ""
        cells = [number, row["longest"], gate]
        for name in names:
            cells += [row[key].get(name, "") for key in ("lengths", "slots", "accepted")]
        rows.append(cells)
    return {"columns": columns, "rows": rows}


def _cost(engine: Engine) -> dict[str, Any]:
    """What a step costs that verifies what a shut gate proposed: slots, and tokens for them."""
    after_shut = [
        (now, step)
        for step, (before, now) in enumerate(
            zip(engine.steps, engine.steps[1:], strict=False), start=1
        )
        if before["gate"] == "shut"
    ]
    rows = [
        (now["slots"][name], now["accepted"][name] + 1)
        for now, _ in after_shut
        for name in now["slots"]
    ]
    return {
        "steps": len(after_shut),
        "slots_a_step": sum(s for s, _ in rows) / len(rows) if rows else 0.0,
        "tokens_a_step": sum(t for _, t in rows) / len(rows) if rows else 0.0,
    }


def _speculated(engine: Engine) -> bool:
    """Whether a step behind an open gate verified drafts (one step later under async)."""
    opened = [step for step, row in enumerate(engine.steps[:-1]) if row["gate"] == "open"]
    return not opened or engine.log.drafted > 0
