"""Whether the scheduler trims a step's tokens to max_model_len."""

from __future__ import annotations

import ast
from typing import Any

from ..probing.lift import run
from ..probing.probe import Answer, NotFoundError, Probe, Sources, names
from ..probing.stubs import Record

FILES = ("v1/core/sched/scheduler.py",)
LENGTH, COMPUTED, WANTED = 100, 97, 10
# the statements end where other subjects begin
ENDS = {"has_encoder_inputs", "need_mamba_block_aligned_split"}


def answer(sources: Sources) -> Answer:
    """Execute the statements that find `num_new_tokens` of a running request, 3 below the limit."""
    path, _, node = sources.function(FILES, "Scheduler.schedule")
    loops = [inner.body for inner in ast.walk(node) if isinstance(inner, ast.While)]
    for body in loops:
        for index, statement in enumerate(body):
            if _first(statement):
                return _trimmed(path, body[index:])
    raise NotFoundError("no `num_new_tokens = … num_tokens_with_spec …` in schedule()")


def _first(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Assign)
        and getattr(statement.targets[0], "id", "") == "num_new_tokens"
        and "num_tokens_with_spec" in names(statement.value)
    )


def _trimmed(path: str, statements: list[ast.stmt]) -> Answer:
    request = Record(
        num_tokens_with_spec=COMPUTED + WANTED,
        num_output_placeholders=0,
        num_computed_tokens=COMPUTED,
        num_prompt_tokens=10,
        max_tokens=10**6,
    )
    scheduler = Record(
        max_model_len=LENGTH,
        num_sampled_tokens_per_step=1,
        scheduler_config=Record(long_prefill_token_threshold=0),
    )
    scope: dict[str, Any] = {
        "self": scheduler,
        "request": request,
        "token_budget": 999,
        "input_budget": 999,
        "draft_slots": 0,
        "long_prefill_token_threshold": 0,
    }
    line = 0
    for statement in statements:
        if not isinstance(statement, ast.Assign | ast.If):
            break
        if isinstance(statement, ast.If) and names(statement.test) & ENDS:
            break
        try:
            run([statement], path, scope)
        except (NameError, AttributeError, TypeError):
            break  # the next subject begins: what it needs is not here
        if "max_model_len" in names(statement):
            line = statement.lineno
    count = int(scope["num_new_tokens"])
    last = COMPUTED + count - 1
    said = f"computed {COMPUTED}, wanted {WANTED} more: last position {last} of 0..{LENGTH - 1}"
    value = "trimmed" if last < LENGTH else "not trimmed"
    if value == "not trimmed" and line == 0:
        raise NotFoundError("the statements that trim were not reached")
    return Answer(value, path, line or statements[0].lineno, True, said)


PROBE = Probe(
    "schedule_trim",
    "does the scheduler keep a step's tokens below max_model_len?",
    FILES,
    {"trimmed": "yes", "not trimmed": "no"},
    answer,
)
