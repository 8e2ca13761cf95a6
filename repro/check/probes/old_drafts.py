"""Whether drafts that were proposed once can be scheduled a second time."""

from __future__ import annotations

import ast

from ..probing.probe import Answer, NotFoundError, Probe, Sources, assigned, names

FILES = ("v1/core/sched/scheduler.py",)


def answer(sources: Sources) -> Answer:
    path, _, node = sources.function(FILES, "Scheduler.schedule")
    for statement in assigned(node, "spec_token_ids"):
        if isinstance(statement.value, ast.List) and not statement.value.elts:
            return Answer("cleared", path, statement.lineno, False, ast.unparse(statement))
    if "scheduled_spec_decode_tokens" not in names(node) or "spec_token_ids" not in names(node):
        raise NotFoundError("schedule() does not take drafts from spec_token_ids")
    return Answer("kept", path, node.lineno, False, "no `spec_token_ids = []` in schedule()")


PROBE = Probe(
    "old_drafts",
    "does the scheduler forget a request's drafts once they are scheduled?",
    FILES,
    {"cleared": "yes", "kept": "no: a step without new drafts can schedule the old ones again"},
    answer,
)
