"""The program of scenario `gdn_pipeline`: hosts, wires and stages, tick by tick."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any

import numpy as np

from ..ops import Event, Ops, Tensor, Timeline
from ..records import Finding, Kind, Outcome, Scalar, Service
from . import gdn_tokens as model
from .gdn_layers import whole
from .gdn_partition import misplaced, sizes
from .gdn_requests import Request, Scheduler, Setup, Step
from .gdn_stage import Stage

SHORT = 2  # tokens of a short prompt


@dataclass(slots=True)
class Hop:
    """A step on one stage: what it receives, from whom, and how far that has come.

    sent: hidden states of the stage before, once it has computed them. arrived: the tick in which
    they travelled. start: what the stage's stream waits for.
    """

    source: Tensor | None
    received: Tensor | None
    start: Event
    out: Tensor | None = None
    done: bool = False
    arrived: int | None = None
    started: bool = False


class Pipeline:
    """An engine with one host and one stream a stage."""

    def __init__(self, ops: Ops, setup: Setup, requests: list[Request], owners: bool) -> None:
        self.ops, self.setup = ops, setup
        self.timeline = Timeline(ops.device)
        ops.device = self.timeline
        self.wanted = [model.continuation(r.tokens, r.end, setup.layers) for r in requests]
        self.scheduler = Scheduler(setup, requests, self.wanted)
        self.stages = [
            Stage(ops, self.timeline, setup, number, requests, owners)
            for number in range(len(setup.counts))
        ]
        self.flying: list[tuple[Step, list[Hop]]] = []
        self.ranges: list[list[int]] = []  # first and last launch, stage
        self.most_flying = 0
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
            self._start()
            self._complete()
            self.tick += 1
        self.timeline.synchronize()

    def _issue(self, step: Step) -> None:
        """Every host takes the step; with blocking launches each waits for the one before it."""
        self.ops.step = step.number
        hops: list[Hop] = []
        self.flying.append((step, hops))
        for stage in self.stages:
            source = hops[-1].out if hops else None
            hop = Hop(source, self._buffer(stage, source), Event())
            hops.append(hop)
            if source is None:
                hop.started = True
            elif self.setup.blocking:
                self._carry(hop)
                self._fire(hop)
            with self._launches(stage.number):
                hop.out = stage.issue(step, hop.received, None if hop.started else hop.start)
            with self.timeline.on(stage.stream):
                self.timeline.call(partial(setattr, hop, "done", True))

    def _buffer(self, stage: Stage, source: Tensor | None) -> Tensor | None:
        """Where a stage receives: a buffer a step, or the only one it has."""
        if source is None:
            return None
        if self.setup.fault == "receive_reused" and stage.receive is not None:
            return stage.receive
        stage.receive = self.timeline.tensor("received", np.zeros(source.shape, np.float32))
        return stage.receive

    def _launches(self, stage: int) -> _Range:
        return _Range(self.ops, self.ranges, stage)

    def _travel(self) -> None:
        """Hidden states that were sent arrive in the buffers of the next stage."""
        for _, hops in self.flying:
            for before, hop in zip(hops, hops[1:], strict=False):
                if before.done and hop.arrived is None and not hop.started:
                    self._carry(hop)

    def _carry(self, hop: Hop) -> None:
        device, source, target = self.timeline.device, hop.source, hop.received
        assert source is not None and target is not None  # noqa: PT018 - a hop has both
        with self.timeline.on("wire"):
            self.timeline.call(lambda: device.write(target, device.read(source)))
        hop.arrived = self.tick

    def _start(self) -> None:
        """Stages start on what arrived in an earlier tick."""
        for _, hops in self.flying:
            for hop in hops:
                if not hop.started and hop.arrived is not None and hop.arrived < self.tick:
                    self._fire(hop)

    def _fire(self, hop: Hop) -> None:
        hop.started = True
        with self.timeline.on("wire"):
            self.timeline.record(hop.start)

    def _complete(self) -> None:
        while self.flying and self.flying[0][1][-1].done:
            step, hops = self.flying.pop(0)
            out = hops[-1].out
            assert out is not None  # the last stage was issued
            hidden = whole(self.timeline.device.read(out))
            for first, last in zip(step.starts, step.starts[1:], strict=False):
                said = [model.next_token(int(c), int(t)) for c, t in hidden[first:last]]
                step.said.append(said)
            commits = self.scheduler.complete(step)
            self.ops.step = step.number
            for stage in self.stages:
                with self._launches(stage.number):
                    stage.commit(step, commits, stage is self.stages[-1])


@dataclass(slots=True)
class _Range:
    """Notes which launches a stage issued while it is entered."""

    ops: Ops
    ranges: list[list[int]]
    stage: int
    first: int = 0

    def __enter__(self) -> None:
        self.first = self.ops.launches

    def __exit__(self, *error: object) -> None:
        if self.ops.launches > self.first:
            self.ranges.append([self.first, self.ops.launches - 1, self.stage])


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
    prompts = [
        model.prompt(int(point["prompt"]), seed + n) for n in range(int(point["requests"]))
    ]
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
        metrics={
            "launch_stages": pipeline.ranges,
            "partition": list(setup.counts),
            "steps": pipeline.scheduler.steps,
            "most_in_flight": pipeline.most_flying,
            "served": [list(r.tokens[r.prompt :]) for r in requests],
            "protocol": protocol(point, requests, pipeline.wanted, setup.layers),
        },
    )


def protocol(
    point: Mapping[str, Scalar], requests: list[Request], wanted: list[list[int]], layers: int
) -> dict[str, Any]:
    """The report's verification protocol, as far as tokens and places can say it.

    recalls: a record planted in the first chunk, exchanged, changes what a right run answers, so a
    right answer has recalled it.
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
        "recalls": other != wanted[-1][long.prompt :],
        "misplaced": {
            name: misplaced(sizes(name, layers)) for name in ("cut", "keep", "default")
        },
    }
