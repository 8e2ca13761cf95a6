"""What the probes of the recurrent kernels share: two requests, a table of states, a bad count."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..probe import Bench, Outcome, Owned, UnclearError
from ..subject import Pointer, Role, Scalar

WIDTH = 4  # states of a request: one for each token that may be accepted
SIZE = 4  # of K and V
STATE = SIZE * SIZE
VALUES = {
    "checked": "yes",
    "unchecked": "no: 0 and counts past the width read outside the request's row",
}
ROLES: Mapping[str, Role] = {
    "q": Pointer("fp32"),
    "k": Pointer("fp32"),
    "v": Pointer("fp32"),
    "o": Pointer("fp32"),
    "h0": Pointer("fp32"),
    "ht": Pointer("fp32"),
    "cu_seqlens": Pointer("i32"),
    "ssm_state_indices": Pointer("i32"),
    "num_accepted_tokens": Pointer("i32"),
    "scale": Scalar(1.0, "fp32"),
    "N": Scalar(2, "i64"),
    "T": Scalar(2, "i64"),
    **dict.fromkeys(("B", "H", "HV"), Scalar(1)),
    **dict.fromkeys(("K", "V", "BK", "BV"), Scalar(SIZE)),
    "stride_init_state_token": Scalar(STATE),
    "stride_final_state_token": Scalar(STATE),
    "stride_indices_seq": Scalar(WIDTH),
    "stride_indices_tok": Scalar(1),
    **dict.fromkeys(
        (
            "USE_INITIAL_STATE",
            "INPLACE_FINAL_STATE",
            "IS_VARLEN",
            "IS_CONTINUOUS_BATCHING",
            "IS_SPEC_DECODING",
        ),
        Scalar(True),
    ),
    "USE_QK_L2NORM_IN_KERNEL": Scalar(False),
    "IS_KDA": Scalar(False),
    "IS_BETA_HEADWISE": Scalar(False),
}


def run(bench: Bench) -> Outcome:
    """Request 0 with every count that is right, which must be clean, then 0, and one past the
    width, and past the table."""
    for count in range(1, WIDTH + 1):
        right, started = _step(bench, count)
        if right:
            one = right[0]
            raise UnclearError(f"count {count} of {WIDTH}: {one['kind']} of {one['tensor']}")
        if started != count:
            raise UnclearError(f"count {count} of {WIDTH}: it starts from state {started}")
    found, said, outside = [], [], 0
    for count in (0, WIDTH + 1, 2 * WIDTH + 1):
        seen = [f for f in _step(bench, count)[0] if f["tensor"] == "ssm_state_indices"]
        found += seen
        outside += bool(seen)
        read = f"{seen[0]['kind']} at element {seen[0]['elements'][0]}" if seen else "no access"
        said.append(f"count {count}: {read}")
    return Outcome("unchecked" if outside else "checked", ", ".join(said), found)


def _step(bench: Bench, count: int) -> tuple[list[Mapping[str, Any]], int | None]:
    """One launch of the program of request 0, which has states 1 to WIDTH: the findings, and the
    state it started from. Keys, values and gates are zero, so a state is written as it was read;
    state n holds n."""
    table = bench.tensor(
        "ssm_state_indices", "i32", list(range(1, 2 * WIDTH + 1)), Owned(WIDTH, [0, 1])
    )
    owners = [-1, *[0] * WIDTH, *[1] * WIDTH]
    contents = [float(number) for number in range(len(owners)) for _ in range(STATE)]
    state = bench.tensor("state", "fp32", contents, Owned(STATE, owners))
    found = bench.launch(
        (1, 1, 1),
        {
            "cu_seqlens": bench.tensor("cu_seqlens", "i32", [0, 1, 2]),
            "ssm_state_indices": table,
            "num_accepted_tokens": bench.tensor("num_accepted_tokens", "i32", [count, 1]),
            "h0": state,
            "ht": state,
        },
        request=[0],
    )
    written = set(state.values[STATE : 2 * STATE])
    return found, round(written.pop()) if len(written) == 1 else None
