"""Whether the recurrent kernel checks the accepted count that it indexes states with."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ..probing.lift import lift, parameters
from ..probing.probe import Answer, Function, NotFoundError, Probe, Sources
from ..probing.stubs import Ghost, Ghosts
from ..probing.triton_stub import Language, OutOfBoundsError, Pointer, integer_range

FILES = ("ops/fused_sigmoid_gating.py", "ops/fused_recurrent.py")
WIDTH = 4
ON = ("USE_INITIAL_STATE", "IS_VARLEN", "IS_CONTINUOUS_BATCHING", "IS_SPEC_DECODING")


def answer(sources: Sources) -> Answer:
    """Run the kernel with a count of 0 and one past the table of two requests of width 4."""
    path, name, node = _kernel(sources)
    seen = [_access(path, node, count) for count in (0, 2 * WIDTH + 1)]
    said = ", ".join(
        f"count {count}: {access or 'no access outside'}"
        for count, access in zip((0, 2 * WIDTH + 1), seen, strict=True)
    )
    value = "unchecked" if all(seen) else "checked"
    return Answer(value, path, node.lineno, True, f"{name}: {said}")


def _kernel(sources: Sources) -> tuple[str, str, Function]:
    for path in sources.paths(*FILES):
        for name, node in sources.functions(path).items():
            if name.endswith("_kernel") and "num_accepted_tokens" in parameters(node):
                return path, name, node
    raise NotFoundError("no kernel that takes num_accepted_tokens")


class _Language(Language):
    """Floats do not matter: what this language does not know is a ghost."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Ghost([], name)


def _access(path: str, node: Function, count: int) -> str:
    """The access outside the table of state indices, "" if it was not made."""
    table = list(range(1, 2 * WIDTH + 1))
    language = _Language()
    calls: list[str] = []
    scope = Ghosts(calls, tl=language, range=integer_range, exp=language.exp)
    kernel: Callable[..., Any] = lift(node, path, scope)
    given = {n: _argument(n, table, count) for n in inspect.signature(kernel).parameters}
    try:
        kernel(**given)
    except OutOfBoundsError as error:
        if error.size != len(table):
            raise NotFoundError(f"{error} in another table than that of states") from error
        return str(error)
    except (TypeError, ValueError, AttributeError) as error:
        raise NotFoundError(f"the kernel cannot be followed: {error}") from error
    return ""


def _argument(name: str, table: list[int], count: int) -> Any:
    known = {
        "cu_seqlens": Pointer([0, 1, 2]),
        "ssm_state_indices": Pointer(table),
        "num_accepted_tokens": Pointer([count, 1]),
        "stride_indices_seq": WIDTH,
        "stride_indices_tok": 1,
        "INPLACE_FINAL_STATE": True,
        **dict.fromkeys(("B", "H", "HV", "N", "T", "scale", "threshold"), 1),
        **dict.fromkeys(("K", "V", "BK", "BV"), 4),
        **dict.fromkeys(ON, True),
    }
    if name in known:
        return known[name]
    if name.startswith("stride"):
        return 16
    return False if name.isupper() else Pointer([0.0] * 4096)


PROBE = Probe(
    "accepted_count",
    "does the recurrent kernel check the accepted count before it indexes states with it?",
    FILES,
    {"checked": "yes", "unchecked": "no: 0 and counts past the width read outside the row"},
    answer,
)
