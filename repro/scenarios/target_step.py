"""One step of the target over a batch: its drafts verified, what it says instead taken.

vLLM schedules a running request with its last token and its drafts (`Scheduler.schedule`), and
keeps what rejection sampling emits up to the request's end (`update_from_output`). Every scenario
that serves the toy model does this; they differ in what is drafted, and when.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ops import Ops, Tensor
from .acceptance import AcceptanceLog
from .serving import Layer, Request, Span, verify


@dataclass(frozen=True, slots=True)
class Verified:
    """What a step made of one request. length: its tokens before the step."""

    request: Request
    length: int
    drafted: int
    accepted: int


def target_step(
    ops: Ops, target: Layer, table: Tensor, running: Sequence[Request], log: AcceptanceLog
) -> list[Verified]:
    """Compute and verify the drafts of `running`, in that order; they are used up.

    A draft of -1 is a placeholder: it has no embedding, and vLLM computes token 0 in its place.
    """
    ops.step = None
    spans = []
    for request in running:
        tokens = request.tokens[request.target_done :] + [max(t, 0) for t in request.drafts]
        spans.append(Span(request.number, request.target_done, tokens, len(request.drafts) + 1))
    said = target.extend(table, spans)
    emitted = verify(ops, [r.number for r in running], [r.drafts for r in running], said)
    accepted = log.record(running, emitted, ops.launches - 1)
    verified = []
    for request, tokens, count in zip(running, emitted, accepted, strict=True):
        verified.append(Verified(request, request.length, len(request.drafts), count))
        request.target_done = request.length + len(tokens) - 1
        new = tokens[: request.end - request.length]
        request.tokens += new
        request.grown.append(len(new))
        request.drafts = []
    return verified
