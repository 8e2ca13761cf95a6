"""A case file to start from: the scenario of a class, with what the log shows.

The shipped case of the class is taken as the pattern: its scenario, variants and kinds of expected
findings. Numbers of the log replace its parameters where the scenario allows them; the exact
elements that the shipped case expects belong to its own numbers and are left out. What is printed
is loaded by our own schema first, so it is valid.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..case import load_case, shipped_cases
from ..case.model import Case
from ..errors import CaseError, UntestableError, UsageError
from ..escape import printable, quoted
from ..scenarios.declare import Declaration
from ..scenarios.registry import declaration
from .match import Standing
from .rules import FaultClass, load
from .session import Diagnosis, diagnose, main_incident
from .situation import Situation
from .survey import read_all

REPORT = "https://github.com/OWNER/REPOSITORY/issues/1"
CASE_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
# name of the situation → parameters of scenarios that mean the same and hold it as it is
SAME: Mapping[str, tuple[str, ...]] = {"k": ("num_speculative_tokens",), "running": ("requests",)}


def skeleton(log: str, wanted: str | None, case_id: str) -> str:
    """The text of a case file. UsageError for a log or class that cannot be used; UntestableError
    where no class is in question, or no scenario replays it yet."""
    if not CASE_ID.fullmatch(case_id):
        raise UsageError(
            f"{quoted(case_id)} is no name of a case", hint="words of a-z and 0-9 joined by -"
        )
    found = main_incident(diagnose(read_all([Path(log)])))
    one = _class(found, wanted)
    pattern = _pattern(one)
    situation = found.situation if found else Situation()
    # a number of the log may not go with the other points of the pattern: then the pattern's stays
    for numbers in (_numbers(pattern, situation), {}):
        text = "\n".join(_lines(pattern, one, situation, log, case_id, numbers)) + "\n"
        refused = _refused(text)
        if refused is None:
            return text
    raise RuntimeError(f"the pattern itself is not valid: {refused}")


def _class(found: Diagnosis | None, wanted: str | None) -> FaultClass:
    known = load()
    if wanted is not None:
        named = known.of(wanted)
        if named is None:
            raise UsageError(f"no fault class is called {quoted(wanted)}")
        return named
    left = [r for r in found.left if r.fault_class.case] if found else []
    likely = [r for r in left if r.standing is Standing.LIKELY]
    if not left:
        raise UntestableError(
            "the log fits no class that a scenario can replay",
            hint="--class CLASS takes one all the same: " + ", ".join(_replayed()),
        )
    return (likely or left)[0].fault_class


def _replayed() -> list[str]:
    return [one.id for one in load().classes if one.case]


def _pattern(one: FaultClass) -> Case:
    for path in shipped_cases():
        if path.stem == one.case:
            return load_case(path).case
    raise UntestableError(
        f"no scenario replays {one.id} yet", hint="those that can be: " + ", ".join(_replayed())
    )


def _lines(
    pattern: Case,
    one: FaultClass,
    situation: Situation,
    log: str,
    case_id: str,
    numbers: Mapping[str, int],
) -> Iterator[str]:
    yield f"# Begun from {printable(Path(log).name)} by `specrepro new`. What the log shows:"
    for name in ("engine", "release", "runner", "spec", "method", "k", "async", "prefix_caching"):
        seen = situation.get(name)
        if seen:
            yield f"#   {name}: {printable(str(seen.values[0]))} ({seen.how})"
    yield "# Replace report and claim; narrow what is expected once a run has shown it."
    yield "schema: 1"
    yield f"id: {case_id}"
    yield f"title: {_quoted(pattern.title)}"
    yield f"report: {REPORT}"
    yield f"claim: {_quoted(one.title)}"
    yield "cause: unknown"
    yield f"class: {one.id}"
    yield f"scenario: {pattern.scenario}"
    yield f"params: {_flow({**pattern.params, **numbers})}"
    yield "variants:"
    for name, settings in pattern.variants.items():
        yield f"  {name}: {_flow(settings)}"
    yield "expect:"
    for row in _expected(pattern):
        yield f"  - {_flow(row)}"
    yield f"lanes: [{', '.join(map(str, pattern.lanes))}]"
    if pattern.owners:
        yield f"owners: {_flow(pattern.owners)}"
    yield from _hypotheses(pattern)


def _numbers(pattern: Case, situation: Situation) -> dict[str, int]:
    """Parameters of the scenario that the log gives, where the scenario allows them."""
    declared: Declaration = declaration(pattern.scenario)
    values: dict[str, int] = {}
    for name, parameters in SAME.items():
        seen = situation.value(name)
        for parameter in parameters:
            if parameter in declared.PARAMETERS and isinstance(seen, (int, float)):
                number = int(seen)
                if declared.PARAMETERS[parameter].refusal(number) is None:
                    values[parameter] = number
    return values


def _expected(pattern: Case) -> Iterator[dict[str, Any]]:
    """The expectations without the elements and steps of the shipped case's own numbers."""
    told: list[dict[str, Any]] = []
    for expectation in pattern.expect:
        row: dict[str, Any] = {"variant": expectation.variant}
        if expectation.when:
            row["when"] = dict(expectation.when)
        if expectation.clean:
            row["clean"] = True
        elif expectation.finding is not None:
            row["finding"] = {"kind": str(expectation.finding.kind)}
        if row not in told:
            told.append(row)
            yield row


def _hypotheses(pattern: Case) -> Iterator[str]:
    if not pattern.hypotheses:
        return
    yield "hypotheses:"
    for hypothesis in pattern.hypotheses:
        row: dict[str, Any] = {"variant": hypothesis.variant, "title": hypothesis.title}
        yield f"  - {_flow(row)}"
    yield "# the outcomes are those of another report: replace them by what your experiments gave"
    yield "controls:"
    for control in pattern.controls:
        if control.sets is None:
            continue
        row = {"id": control.id, "title": control.title, "sets": dict(control.sets)}
        if control.reported is not None:
            row["reported"] = {"outcome": control.reported.outcome}
        if control.command:
            row["command"] = control.command
        yield f"  - {_flow(row)}"


def _flow(value: Any) -> str:
    """A value in YAML's flow style, every text quoted as JSON quotes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_flow(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _quoted(value) if isinstance(value, str) else _plain(value)


def _plain(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def _refused(text: str) -> CaseError | None:
    """Why our own schema refuses what was made; None where it does not."""
    import tempfile

    with tempfile.TemporaryDirectory(prefix="specrepro-new-") as folder:
        path = Path(folder) / "case.yaml"
        path.write_text(text, encoding="utf-8")
        try:
            load_case(path)
        except CaseError as error:
            return error
    return None
