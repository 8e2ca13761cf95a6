"""The page of a fault class as Markdown, from its rules: docs/classes and `--explain`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .levers import changed
from .match import LIKELY, POSSIBLE
from .rules import Clue, Experiment, FaultClass, Knowledge, Need, Releases
from .vocabulary import KINDS

REPOSITORIES = {
    "vllm": "vllm-project/vllm",
    "flashinfer": "flashinfer-ai/flashinfer",
    "sglang": "sgl-project/sglang",
}
NOTE = "<!-- made from repro/diagnose/classes/{id}.yaml: python -m {module} docs/classes -->"
MODULE = "specrepro.repro.diagnose.compilation"
COLUMNS = 100


def markdown(one: FaultClass, known: Knowledge) -> str:
    """The whole page."""
    return "\n".join(_lines(one, known)) + "\n"


def index(known: Knowledge) -> str:
    """The table of all classes, for docs/diagnose.md."""
    rows = [f"| {c.number} | [`{c.id}`](classes/{c.id}.md) | {c.title} |" for c in known.classes]
    return "\n".join(["| | class | what happens |", "| --- | --- | --- |", *rows]) + "\n"


def source(name: str) -> str:
    """`vllm#40756` with its address."""
    engine, _, number = name.partition("#")
    repository = REPOSITORIES.get(engine)
    if repository is None:
        return name
    return f"[{name}](https://github.com/{repository}/issues/{number})"


def _lines(one: FaultClass, known: Knowledge) -> Iterator[str]:
    yield f"# {one.id}"
    yield ""
    yield NOTE.format(id=one.id, module=MODULE)
    yield ""
    yield f"{one.number}: {one.title}."
    yield ""
    yield from _folded(one.about)
    yield ""
    yield f"Cause upstream: {one.cause}. Explains: {', '.join(map(_words, one.explains))}."
    if one.case:
        yield f"Case: `specrepro run {one.case}`, `specrepro check {one.case}`."
    yield ""
    yield from _section("What must hold", [_need(need) for need in one.must])
    yield "## What is weighed"
    yield ""
    bounds = f"Likely from {LIKELY:+.1f}, possible from {POSSIBLE:+.1f}"
    yield f"Before any clue: {one.prior:+.1f}. {bounds}"
    yield "([how evidence adds up](../diagnose.md#how-evidence-adds-up))."
    yield ""
    yield "| weight | clue | when |"
    yield "| --- | --- | --- |"
    yield from (_clue(clue) for clue in sorted(one.clues, key=lambda clue: -clue.weight))
    yield ""
    yield from _section("Releases", [_releases(one) for one in one.versions])
    yield from _section("What misleads", [*_ignored(one), *one.misread])
    yield from _section("What to ask for", _asks(one, known))
    yield from _experiments(one, known)
    yield from _section("Ways out", [_fix(fix.of, fix.first, fix.says) for fix in one.fixes])
    yield from _section("Sources", [source(name) for name in one.sources])


def _section(title: str, entries: Iterable[str]) -> Iterator[str]:
    given = list(entries)
    if not given:
        return
    yield f"## {title}"
    yield ""
    for entry in given:
        yield from _folded(entry, "- ", "  ")
    yield ""


def _folded(text: str, first: str = "", later: str = "") -> Iterator[str]:
    line = first
    for word in text.split():
        if len(line) + len(word) > COLUMNS and line.strip() not in ("", "-"):
            yield line.rstrip()
            line = later
        line += word + " "
    yield line.rstrip()


def _words(name: str) -> str:
    return name.replace("_", " ")


def condition(when: Mapping[str, Any]) -> str:
    """A condition as a reader sees it: `access read · running >=4`."""
    return " · ".join(f"{name} {_test(test)}" for name, test in when.items())


def _test(test: Any) -> str:
    if isinstance(test, list):
        return " or ".join(map(_test, test))
    text = str(test)
    return f"matches {text[1:]}" if text.startswith("~") else text


def _code(text: str) -> str:
    return "`" + text.replace("|", "\\|").replace("`", "'") + "`"


def _need(need: Need) -> str:
    said = f"{need.says}: {' or '.join(_code(condition(when)) for when in need.whens)}"
    return said + (f", unless {_code(condition(need.unless))}" if need.unless else "")


def _clue(clue: Clue) -> str:
    says = re.sub(r"\{(\w+)\}", lambda match: f"*{_words(match[1])}*", clue.says)
    says = says.replace("|", "\\|")
    return f"| {clue.weight:+.1f} | {says} | {_code(condition(clue.when))} |"


def _releases(releases: Releases) -> str:
    span = f"from {releases.first} " if releases.first else ""
    span += f"to before {releases.fixed}" if releases.fixed else "with no release without it"
    read = f"read in {releases.read}" if releases.read else "not read"
    said = f"{releases.of}, {span} ({read}): {releases.says}. A release without it "
    if releases.part:
        return f"{said}excludes nothing: one defect of several."
    if releases.beneath:
        return f"{said}excludes nothing: {releases.beneath} beneath it has a copy of its own."
    return f"{said}excludes {'the class' if releases.read else 'nothing'}."


def _ignored(one: FaultClass) -> list[str]:
    known = KINDS["false_clue"]["name"]
    return [f"`{name}` is read and counts nothing." for name in one.ignores if name in known]


def _asks(one: FaultClass, known: Knowledge) -> list[str]:
    questions = {question.id: question for question in known.questions}
    return [f"{q.ask}: `{q.how.replace('`', '')}`" for n in one.asks if (q := questions.get(n))]


def _experiments(one: FaultClass, known: Knowledge) -> Iterator[str]:
    if not one.experiments:
        return
    yield "## Experiments"
    yield ""
    yield "| experiment | what it changes | expected here |"
    yield "| --- | --- | --- |"
    for name, outcomes in one.experiments.items():
        experiment = known.experiments[name]
        again = outcomes.get("again")
        word = next(iter(outcomes))
        expected = f"{again:.0%} again" if again is not None else word
        yield f"| {experiment.title} | {_code(_lever(experiment))} | {expected} |"
    yield ""


def _lever(experiment: Experiment) -> str:
    parts = [*(experiment.set or {}), *(experiment.drop if not experiment.set else ())]
    if parts or experiment.env or experiment.spec or experiment.wrap or experiment.command:
        return changed(None, experiment)
    return experiment.ask


def _fix(of: str | None, first: str | None, says: str) -> str:
    return f"{of} {first}: {says}" if first else says
