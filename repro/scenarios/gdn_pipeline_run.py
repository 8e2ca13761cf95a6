"""The program of scenario `gdn_pipeline`: hosts, wires and stages, tick by tick."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from ..ops import Event, Ops, Tensor, Timeline
from ..records import Finding, Kind, Outcome, Scalar, Service
from . import gdn_tokens as model
from .gdn_layers import whole
from .gdn_moves import MOST
from .gdn_partition import bindings, misplaced, named
from .gdn_pipeline import FAULTS
from .gdn_requests import Request, Scheduler, Setup, Step
from .gdn_stage import Stage
from .gdn_turns import MOST_TURNS, Hop, Range, Turn, Wire

SHORT = 2  # tokens of a short prompt


class Pipeline:
    """An engine with one host and one stream a stage."""

    def __init__(self, ops: Ops, setup: Setup, requests: list[Request], owners: bool) -> None:
        self.setup = setup
        self.timeline = Timeline(ops.device)
        self.ops = Ops(self.timeline)
        self.wanted = [model.continuation(r.tokens, r.end, setup.layers) for r in requests]
        self.scheduler = Scheduler(setup, requests, self.wanted)
        self.stages = [
            Stage(self.ops, self.timeline, setup, number, requests, owners)
            for number in range(len(setup.counts))
        ]
        self.flying: list[tuple[Step, list[Hop]]] = []
        self.ranges: list[list[int]] = []  # first and last launch, stage
        self.turns: list[Turn] = []
        self.most_flying = 0
        self.digest = hashlib.sha256()  # of what leaves the last stage, bit for bit
        self.tick = 0

    def serve(self) -> None:
        """Tick until every request has ended."""
        while not self.scheduler.ended():
            if len(self.flying) < self.setup.limit:
                step = self.scheduler.next(self.tick)
                if step is not None:
                    self._issue(step)
            self.most_flying = max(self.most_flying, len(self.flying))
            self._travel()
            self._complete()
            self.tick += 1
        self.timeline.synchronize()

    def strayed(self) -> list[dict[str, Any]]:
        """The copies of states that went elsewhere, the earliest step first."""
        requests, device = self.scheduler.requests, self.timeline.device
        found = [
            one for stage in self.stages
            for one in stage.moves.strayed(device, self.setup, requests)
        ]  # fmt: skip
        return sorted(found, key=lambda one: (one["step"], one["stage"]))[:MOST]

    def _issue(self, step: Step) -> None:
        """Every host takes the step; with blocking launches each waits for the one before it."""
        self.ops.step = step.number
        hops: list[Hop] = []
        self.flying.append((step, hops))
        for stage in self.stages:
            wire = self._wire(stage, hops[-1].out) if hops else None
            if wire and self.setup.blocking:
                self._carry(wire)
                self._start(wire)
            with self._launches(stage.number):
                received, start = (wire.target, wire.start) if wire else (None, None)
                hop = Hop(wire, stage.issue(step, received, start))
            hops.append(hop)
            first, last, _ = self.ranges[-1]
            self.turns.append(Turn(stage.number, step.number, self.tick, wire, (first, last)))
            with self.timeline.on(stage.stream):
                self.timeline.call(partial(setattr, hop, "done", True))

    def _wire(self, stage: Stage, source: Tensor) -> Wire:
        """To a receive buffer of its own, or to the only one the stage has."""
        if self.setup.fault != "receive_reused" or stage.receive is None:
            zeros = np.zeros(source.shape, np.float32)
            stage.receive = self.timeline.tensor("received", zeros)
        return Wire(source, stage.receive, Event())

    def _launches(self, stage: int) -> Range:
        return Range(self.ops, self.ranges, stage)

    def _travel(self) -> None:
        """Hidden states that were sent travel; stages start on those of an earlier tick."""
        late = []
        for _, hops in self.flying:
            for before, hop in pairwise(hops):
                wire = hop.wire
                if wire is None or wire.start.done:
                    continue
                if wire.arrived is not None:
                    late.append(wire)
                elif before.done:
                    self._carry(wire)
        for wire in late:
            self._start(wire)

    def _carry(self, wire: Wire) -> None:
        device = self.timeline.device
        with self.timeline.on("wire"):
            self.timeline.call(lambda: device.write(wire.target, device.read(wire.source)))
        wire.arrived = self.tick

    def _start(self, wire: Wire) -> None:
        wire.started = self.tick
        with self.timeline.on("wire"):
            self.timeline.record(wire.start)

    def _complete(self) -> None:
        while self.flying and self.flying[0][1][-1].done:
            step, hops = self.flying.pop(0)
            left = self.timeline.device.read(hops[-1].out)[: step.starts[-1]]
            self.digest.update(left.tobytes())
            hidden = whole(left)
            for first, last in pairwise(step.starts):
                said = [model.next_token(int(c), int(t)) for c, t in hidden[first:last]]
                step.said.append(said)
            commits = self.scheduler.complete(step)
            self.ops.step = step.number
            for stage in self.stages:
                with self._launches(stage.number):
                    stage.commit(step, commits, stage is self.stages[-1])


def setup_of(point: Mapping[str, Scalar], settings: Mapping[str, Scalar]) -> Setup:
    """The part of a point that the program reads."""
    known = {**point, **settings}
    values: dict[str, Any] = {f.name: known[f.name] for f in fields(Setup)}
    return Setup(**values)


def requests_of(point: Mapping[str, Scalar]) -> list[Request]:
    """Short prompts one after the other, a request that fills the cache, then those in question."""
    seed, new = int(point["seed"]), int(point["new_tokens"])
    requests: list[Request] = []
    for number in range(int(point["short_prompts"])):
        tokens = model.prompt(SHORT, seed + 100 + number)
        after = (number - 1,) if number else ()
        requests.append(Request(number, tokens, SHORT + new, after=after))
    before = tuple(r.slot for r in requests[-1:])
    cached = int(point["cached"])
    shared = -1
    prompts = [model.prompt(int(point["prompt"]), seed + n) for n in range(int(point["requests"]))]
    if cached:
        shared = len(requests)
        tokens = [*prompts[0][:cached], (prompts[0][cached] + 1) % model.VOCAB]
        requests.append(Request(shared, tokens, cached + 2, after=before))
        before = (shared,)
    for n, tokens in enumerate(prompts):
        hit = cached if n == 0 else 0
        requests.append(
            Request(
                len(requests),
                tokens,
                len(tokens) + new + 2 * n,  # the first one ends first, so that a batch shrinks
                arrival=n * int(point["gap"]),
                after=before,
                cached=hit,
                shared=shared if hit else -1,
            )
        )
    return requests


def play(
    ops: Ops,
    point: Mapping[str, Scalar],
    settings: Mapping[str, Scalar],
    owners: Mapping[str, str],
) -> Outcome:
    """Serve the requests of a point and say what became of them."""
    setup = setup_of(point, settings)
    requests = requests_of(point)
    pipeline = Pipeline(ops, setup, requests, owners.get("state") == "block")
    pipeline.serve()
    wrong = []
    for request, wanted in zip(requests, pipeline.wanted, strict=True):
        at = next((n for n, t in enumerate(request.tokens) if t != wanted[n]), None)
        if at is not None:
            wrong.append(
                Finding(
                    Kind.WRONG_VALUE,
                    tensor="tokens",
                    elements=(at, at),
                    count=1,
                    request=request.slot,
                    expected=wanted[at],
                    got=request.tokens[at],
                )
            )
    drafted = sum(r.drafted for r in requests)
    return Outcome(
        service=Service(
            finished=all(r.finished for r in requests),
            tokens_right=not wrong,
            drafted=drafted,
            accepted=sum(r.taken for r in requests),
            speculated=drafted > 0 or setup.num_speculative_tokens == 0,
        ),
        findings=tuple(wrong),
        who="" if setup.fault == "none" else FAULTS[setup.fault],
        notes=tuple(
            f"request {f.request}: token {f.elements[0] if f.elements else 0} is {f.got}, "
            f"a right run says {f.expected}"
            for f in wrong
        ),
        metrics={
            "launch_stages": pipeline.ranges,
            "turns": [turn.told() for turn in pipeline.turns[:MOST_TURNS]],
            "strayed": pipeline.strayed(),
            "state_blocks": [int(stage.caches.pool.shape[0]) for stage in pipeline.stages],
            "partition": list(setup.counts),
            "steps": pipeline.scheduler.steps,
            "most_in_flight": pipeline.most_flying,
            "hidden_sha256": pipeline.digest.hexdigest(),
            "served": [list(r.tokens[r.prompt :]) for r in requests],
            "protocol": {
                **protocol(point, requests, pipeline.wanted, setup.layers),
                "kv_tokens": pipeline.stages[0].caches.kv_tokens,
            },
        },
    )


def protocol(
    point: Mapping[str, Scalar], requests: list[Request], wanted: list[list[int]], layers: int
) -> dict[str, Any]:
    """The report's verification protocol, as far as tokens and places can say it.

    needs_kv_tokens: tokens of all requests, to be held against the KV cache of a stage. recalls: a
    record planted in the first chunk, exchanged, changes what a right run answers, so a right
    answer has recalled it.
    """
    short = int(point["short_prompts"])
    long = requests[-1]
    right = [r.tokens == w for r, w in zip(requests, wanted, strict=True)]
    planted = list(long.tokens[: long.prompt])
    planted[0] = (planted[0] + 1) % model.VOCAB
    other = model.continuation(planted, long.end, layers)[long.prompt :]
    return {
        "short_right": [sum(right[:short]), short],
        "long_right": right[-1],
        "needs_kv_tokens": sum(request.end for request in requests),
        "recalls": other != wanted[-1][long.prompt :],
        "misplaced": {name: misplaced(bindings(counts)) for name, counts in named(layers).items()},
    }
