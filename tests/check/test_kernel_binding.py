"""Parameters get what a probe gives them by name and role, wherever they stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.check.kernel.probes import PROBES, load
from specrepro.repro.check.kernel.subject import (
    Nothing,
    Parameter,
    Pointer,
    Scalar,
    SignatureChangedError,
    Subject,
    bind,
)

SUBJECT = Subject(
    files=("x.py",),
    names=("k",),
    roles={
        "positions": Pointer("i64", also=("pos",)),
        "table": Pointer("i32"),
        "stride": Scalar(4),
        "count": Scalar(7, "i64"),
        "flag": Scalar(True),
        "cache": Nothing(),
    },
)
PARAMETERS = [
    Parameter("positions_ptr", "", False),
    Parameter("table_ptr", "", False),
    Parameter("stride", "", False),
    Parameter("count", "tl.int32", False),
    Parameter("flag", "", False),
    Parameter("cache_ptr", "", False),
    Parameter("BLOCK", "tl.constexpr", True, 64),
]
TYPES = {
    "positions_ptr": "*i64",
    "table_ptr": "*i32",
    "stride": "i32",
    "count": "i32",
    "flag": "constexpr",
    "cache_ptr": "constexpr",
    "BLOCK": "constexpr",
}


@given(st.permutations(PARAMETERS))
def test_the_order_of_parameters_does_not_matter(parameters: list[Parameter]) -> None:
    bound = bind(SUBJECT, parameters)
    assert bound.types == TYPES
    assert list(bound.types) == [p.name for p in parameters]
    assert bound.constants == {"flag": True, "cache_ptr": None, "BLOCK": 64}
    left = [p.name.removesuffix("_ptr") for p in parameters if TYPES[p.name] != "constexpr"]
    assert list(bound.order) == left


def test_an_annotation_without_a_width_leaves_the_type_to_the_role() -> None:
    assert bind(SUBJECT, [Parameter("count", "int", False)]).types == {"count": "i64"}


def test_another_name_of_a_role_is_known() -> None:
    bound = bind(SUBJECT, [Parameter("pos", "", False)])
    assert (bound.types, bound.order) == ({"pos": "*i64"}, ("positions",))


def test_a_number_that_the_kernel_wants_compiled_in_is_a_constant() -> None:
    bound = bind(SUBJECT, [Parameter("stride", "tl.constexpr", False)])
    assert (bound.types, bound.constants, bound.order) == (
        {"stride": "constexpr"},
        {"stride": 4},
        (),
    )


@pytest.mark.parametrize(
    ("parameter", "words"),
    [
        (Parameter("fresh_ptr", "", False), "fresh_ptr is not known"),
        (Parameter("FRESH", "tl.constexpr", True, None), "FRESH is not known"),
        (Parameter("table", "tl.constexpr", False), "table is a constant"),
    ],
)
def test_a_parameter_without_a_role_is_a_changed_signature(
    parameter: Parameter, words: str
) -> None:
    with pytest.raises(SignatureChangedError, match=f"signature changed: {words}"):
        bind(SUBJECT, [*PARAMETERS, parameter])


@pytest.mark.parametrize("name", PROBES)
def test_every_probe_can_say_each_of_its_values_and_names_its_subject(name: str) -> None:
    probe = load(name)
    assert probe.id == name
    assert len(probe.values) >= 2
    assert probe.question.endswith("?")
    names = [n for key, role in probe.subject.roles.items() for n in (key, *role.also)]
    assert len(names) == len(set(names))
