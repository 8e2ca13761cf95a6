"""Whether a GDN batch whose rows drafted nothing keeps the offset of accepted tokens."""

from __future__ import annotations

import ast
from typing import Any

from ..probing.lift import run
from ..probing.probe import Answer, NotFoundError, Probe, Sources, assigned, names
from ..probing.stubs import Record
from ..probing.triton_stub import Block

FILES = ("v1/attention/backends/gdn_attn.py",)
DRAFTS, MASKS = "num_decode_draft_tokens_cpu", "spec_sequence_masks"


class _Tensor(Block):
    """A one-dimensional tensor, as far as the choice of the path needs one."""

    def __getitem__(self, mask: Any) -> _Tensor:
        return _Tensor([v for v, wanted in zip(self.items, mask.items, strict=True) if wanted])

    def __ge__(self, other: Any) -> _Tensor:
        return _Tensor([v >= other for v in self.items])

    def sum(self) -> Record:
        total = sum(self.items)
        return Record(item=lambda: total)


def answer(sources: Sources) -> Answer:
    """Execute the statement that chooses the path, for two rows with drafts and two without. Only
    the speculative path, the one with masks, applies the offset."""
    path, _, node = sources.function(FILES, "GDNAttentionMetadataBuilder.build")
    for statement in node.body:
        if (
            isinstance(statement, ast.If)
            and DRAFTS in names(statement.test)
            and assigned(statement, MASKS)
        ):
            some, none = (_speculative(path, statement, drafts) for drafts in ([2, 1], [0, 0]))
            if not some:
                raise NotFoundError("rows with drafts do not take the speculative path either")
            said = f"drafts [0, 0]: the {'' if none else 'non-'}speculative path"
            value = "kept" if none else "lost"
            return Answer(value, path, _line(statement), True, said)
    raise NotFoundError(f"no choice by {DRAFTS}")


def _speculative(path: str, statement: ast.If, drafts: list[int]) -> bool:
    scope: dict[str, Any] = {
        "self": Record(use_spec_decode=True),
        DRAFTS: _Tensor(drafts),
        "query_start_loc": Record(device="none"),
        "async_tensor_h2d": lambda tensor, **_options: tensor,
    }
    run([statement], path, scope)
    return scope[MASKS] is not None


def _line(statement: ast.If) -> int:
    """The line of the comparison that gives the offset up, else of the choice."""
    for inner in ast.walk(statement):
        if isinstance(inner, ast.Compare) and {DRAFTS, "sum", "item"} <= names(inner.left):
            return inner.lineno
    return statement.lineno


PROBE = Probe(
    "zero_draft_rows",
    "does a batch whose rows all drafted nothing keep the offset of accepted tokens?",
    FILES,
    {"kept": "yes", "lost": "no: it leaves the only path that applies the offset"},
    answer,
)
