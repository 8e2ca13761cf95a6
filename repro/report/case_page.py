"""What `list` and `show` say of a case, for a person and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..case import Case, Control, Expectation, Hypothesis, LoadedCase, named_point
from ..escape import printable
from ..records import Scalar
from ..scenarios.declare import Declaration, Parameter
from .upstream import shorthand


def case_table(cases: Iterable[LoadedCase], *, claims: bool = False) -> Table:
    """One row a case: id and title, report, cause, variants, lanes; with `claims` the claim too."""
    table = Table(box=None, pad_edge=False, show_edge=False, header_style="bold")
    table.add_column("case", ratio=5, overflow="fold")
    for name, ratio in (("report", 2), ("cause", 2), ("variants", 2), ("lanes", 2)):
        table.add_column(name, ratio=ratio, overflow="fold")
    for loaded in cases:
        case = loaded.case
        about = Text.assemble((case.id, "bold"), "\n", printable(case.title))
        if claims:
            about.append("\n" + printable(case.claim), "dim")
        table.add_row(
            about,
            shorthand(case.report),
            str(case.cause),
            "\n".join(case.variants),
            "\n".join(case.lanes),
        )
    return table


def case_page(loaded: LoadedCase, declaration: Declaration) -> Group:
    """Everything a case says, its parameters with what is allowed and what they mean."""
    case = loaded.case
    sections: Sequence[tuple[str, RenderableType | None]] = (
        ("parameters", _parameters(case, declaration)),
        ("settings of variants", _settings(case, declaration.SETTINGS)),
        ("variants", _lines(_variant(*variant) for variant in case.variants.items())),
        ("expected", _lines(map(_expectation, case.expect))),
        ("hypotheses", _lines(map(_hypothesis, case.hypotheses))),
        ("controls", _lines(map(_control, case.controls))),
        ("protocol", _lines(case.protocol)),
        ("sweep", _lines(f"{name}: {_values(spec)}" for name, spec in case.sweep.items())),
        ("lanes", Text(", ".join(case.lanes))),
        ("defects, for check", _lines(_defects(case))),
        ("owners", _lines(f"{tensor}, by {unit}" for tensor, unit in case.owners.items())),
    )
    parts: list[RenderableType] = [
        Text.assemble((case.id, "bold"), f"   cause {case.cause} · class {case.fault_class}"),
        Text(printable(case.title)),
        Text(case.report, "cyan", overflow="fold"),
        Text(printable(case.claim), "dim"),
    ]
    for name, body in sections:
        if body is not None:
            parts += [Text(), Text(name, "bold"), body]
    return Group(*parts)


def _lines(lines: Iterable[str]) -> Text | None:
    return Text("\n".join(printable(line) for line in lines)) or None


def _grid(columns: int) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    for _ in range(columns - 1):
        table.add_column(overflow="fold")
    table.add_column(ratio=1, overflow="fold")
    return table


def _parameters(case: Case, declaration: Declaration) -> Table:
    table = _grid(3)
    for name, value in named_point(case, declaration).items():
        table.add_row(name, _value(value), _meaning(declaration.PARAMETERS[name]))
    return table


def _settings(case: Case, known: Mapping[str, Parameter]) -> Table:
    """The settings that the case's variants set, and what they mean."""
    table = _grid(2)
    for name in dict.fromkeys(name for given in case.variants.values() for name in given):
        table.add_row(name, _meaning(known[name]))
    return table


def _variant(name: str, settings: Mapping[str, Scalar]) -> str:
    given = ", ".join(f"{key} {_value(value)}" for key, value in settings.items())
    return f"{name}: {given or 'every setting as the scenario has it'}"


def _meaning(parameter: Parameter) -> Text:
    return Text.assemble(parameter.doc, (f"  {parameter.allowed()}", "dim"))


def _hypothesis(hypothesis: Hypothesis) -> str:
    needs = f"; needs {hypothesis.needs}" if hypothesis.needs else ""
    return f"{hypothesis.variant}: {hypothesis.title}{needs}"


def _control(control: Control) -> str:
    said = "not tried yet"
    if control.reported:
        stage = "" if control.reported.stage is None else f", stage {control.reported.stage} first"
        said = control.reported.outcome.replace("_", " ") + stage
    return f"{control.id}: {control.title}: {'of the report' if control.facts else said}"


def _defects(case: Case) -> Iterator[str]:
    for name, part in case.check.defects.items() if case.check else ():
        yield f"{name}: {part.says}" + (" (latent)" if part.latent else "")


def _expectation(expectation: Expectation) -> str:
    finding = expectation.finding
    words = ["clean"]
    if finding is not None:
        words = [str(finding.kind)]
        words += [f"of {finding.tensor}"] if finding.tensor else []
        words += [f"by {finding.op}"] if finding.op else []
        for name in ("first_element", "request", "step"):
            value = getattr(finding, name)
            words[-1] += "" if value is None else f", {name.replace('_', ' ')} {value}"
    where = ", ".join(f"{name} {_values(value)}" for name, value in expectation.when.items())
    return f"{expectation.variant}: {' '.join(words)}" + (f", where {where}" if where else "")


def _value(value: Scalar) -> str:
    return printable(str(value).lower() if isinstance(value, bool) else str(value))


def _values(values: Scalar | tuple[Scalar, ...]) -> str:
    return ", ".join(map(_value, values)) if isinstance(values, tuple) else _value(values)


def list_json(cases: Iterable[LoadedCase]) -> dict[str, Any]:
    """`specrepro/list@1`: what the table shows."""
    return {
        "schema": "specrepro/list@1",
        "cases": [
            {
                "id": loaded.case.id,
                "title": loaded.case.title,
                "report": loaded.case.report,
                "cause": str(loaded.case.cause),
                "variants": list(loaded.case.variants),
                "lanes": list(loaded.case.lanes),
                "path": str(loaded.path),
                "sha256": loaded.sha256,
            }
            for loaded in cases
        ],
    }


def case_json(loaded: LoadedCase, declaration: Declaration) -> dict[str, Any]:
    """`specrepro/show@1`: the case as its file has it, and what its scenario declares."""
    return {
        "schema": "specrepro/show@1",
        "path": str(loaded.path),
        "sha256": loaded.sha256,
        "case": loaded.case.model_dump(mode="json", by_alias=True, exclude_none=True),
        "point": named_point(loaded.case, declaration),
        "parameters": dict(_declared(declaration.PARAMETERS)),
        "settings": dict(_declared(declaration.SETTINGS)),
    }


def _declared(parameters: Mapping[str, Parameter]) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, parameter in parameters.items():
        yield (
            name,
            {
                "type": parameter.kind.__name__,
                "default": parameter.default,
                "low": parameter.low,
                "high": parameter.high,
                "choices": None if parameter.choices is None else list(parameter.choices),
                "doc": parameter.doc,
            },
        )
