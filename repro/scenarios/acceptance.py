"""Draft tokens verified and accepted, and the finding where acceptance is lost.

Target and draft of the toy model agree on every token, so under greedy sampling each rejected draft
is a loss: it was computed from damaged state, or nobody computed it at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..records import Finding, Kind
from .serving import Request

PLACEHOLDER = -1  # the token of a slot that was scheduled and got no draft


class AcceptanceLog:
    """What verification made of the drafts of each request, in order of the steps."""

    def __init__(self) -> None:
        self.drafted = 0
        self.accepted = 0
        self._first: dict[int, Finding] = {}
        self._requests: dict[int, Request] = {}

    def record(
        self, batch: Sequence[Request], emitted: Sequence[Sequence[int]], launch: int
    ) -> list[int]:
        """Count one verification (launch number `launch`); accepted drafts by request.

        The drafts of a request lie in `draft_tokens` behind those of the requests before it.
        """
        at, counts = 0, []
        for request, tokens in zip(batch, emitted, strict=True):
            if PLACEHOLDER in request.drafts:  # slots without a draft: verified, never drafted
                at += len(request.drafts)
                counts.append(0)
                continue
            accepted = len(tokens) - 1 if request.drafts else 0
            request.drafted += len(request.drafts)
            request.accepted += accepted
            self.drafted += len(request.drafts)
            self.accepted += accepted
            if accepted < len(request.drafts) and request.number not in self._first:
                self._requests[request.number] = request
                self._first[request.number] = Finding(
                    Kind.ACCEPTANCE_LOSS,
                    launch=launch,
                    op="rejection_sample",
                    tensor="draft_tokens",
                    elements=(at + accepted, at + len(request.drafts) - 1),
                    request=request.number,
                )
            at += len(request.drafts)
            counts.append(accepted)
        return counts

    def losses(self) -> list[Finding]:
        """One finding a request that lost acceptance: the first place, and the whole count."""
        return [
            replace(
                finding,
                count=self._requests[number].drafted - self._requests[number].accepted,
                expected=self._requests[number].drafted,
                got=self._requests[number].accepted,
            )
            for number, finding in sorted(self._first.items())
        ]
