"""The rule files, checked and compiled into one JSON file; the pages of the classes.

    python -m specrepro.repro.diagnose.compilation [DOCS]

writes `compiled.json`, and a page a class into the folder DOCS where it is given.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import UsageError
from .names import NAMES
from .rules import COMPILED, FOLDER, checksum, files, knowledge
from .vocabulary import FAULTS, KINDS

KEYS = {
    "id", "number", "title", "cause", "about", "explains", "prior", "must", "for", "against",
    "versions", "ignores", "asks", "experiments", "fixes", "sources",
}  # fmt: skip
OPTIONAL = {"misread", "case"}
SYMPTOMS = {
    *FAULTS, "hang", "garbage", "acceptance_loss", "hardware", "start_failure", "exception",
    "consequence",
}  # fmt: skip
CAUSES = ("confirmed", "contested", "unknown")
# Weights are logarithms of odds: 3.5 is 33 to 1, and no single line of a log is worth much more.
HEAVIEST = 4.5
FIELD = re.compile(r"\{(\w+)\}")
# Clues that a class without them could not win on are in KINDS["false_clue"]; see vocabulary.
MISLEADING = re.compile(r"\w+(?=[,:]|$)")


def compiled() -> dict[str, Any]:
    """The contents of all rule files, checked. UsageError names the first that is wrong."""
    shared = {path.stem: _read(path) for path in sorted(FOLDER.glob("knowledge/*.yaml"))}
    classes = [_read(path) for path in sorted(FOLDER.glob("classes/*.yaml"))]
    wrong = next(_wrong_tests(shared), None)
    if wrong:
        raise UsageError(wrong, where="repro/diagnose/knowledge")
    for one in classes:
        wrong = next(_wrong(one, shared), None)
        if wrong:
            raise UsageError(wrong, where=f"repro/diagnose/classes/{one.get('id')}.yaml")
    classes.sort(key=lambda one: int(one["number"][1:]))
    return {"crc32": checksum(files()), "classes": classes, **shared}


def _read(path: Path) -> dict[str, Any]:
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        value = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)  # noqa: S506 - a safe one
    except yaml.YAMLError as error:
        where = getattr(error, "problem_mark", None)
        line = f":{where.line + 1}" if where else ""
        raise UsageError("is no YAML", where=f"{path.parent.name}/{path.name}{line}") from error
    if not isinstance(value, dict) or (path.parent.name == "classes" and "id" not in value):
        raise UsageError("is no mapping with an id", where=f"{path.parent.name}/{path.name}")
    return value


def _wrong(one: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with a class, the worst first."""
    if missing := KEYS - one.keys():
        yield f"lacks {', '.join(sorted(missing))}"
        return
    if unknown := one.keys() - KEYS - OPTIONAL:
        yield f"unknown keys {', '.join(sorted(unknown))}"
    if not re.fullmatch(r"C\d+", str(one["number"])):
        yield f"{one['number']} is no number of a class"
    if one["cause"] not in CAUSES:
        yield f"cause {one['cause']} is none of {', '.join(CAUSES)}"
    if unknown := set(one["explains"]) - SYMPTOMS:
        yield f"explains unknown symptoms {', '.join(sorted(unknown))}"
    yield from _conditions(one, shared)
    for name in one["experiments"].keys() - shared["experiments"].keys():
        yield f"unknown experiment {name}"
    for name in set(one["asks"]) - shared["questions"].keys():
        yield f"unknown question {name}"
    for name in set(one["ignores"]) - set(MISLEADING.findall(KINDS["false_clue"]["name"])):
        yield f"unknown false clue {name}"
    for value in one["experiments"].values():
        if not isinstance(value, str) and not 0 < value < 1:
            yield f"an experiment's chance of {value}; nothing is certain"


def _conditions(one: Mapping[str, Any], shared: Mapping[str, Any]) -> Iterator[str]:
    for part, sign in (("for", 1), ("against", -1)):
        for clue in one[part]:
            if not 0 < sign * clue["weight"] <= HEAVIEST:
                yield f"{part}: weight {clue['weight']} of {clue['says']!r}"
            yield from _names(clue["when"], clue["says"])
            yield from _claims(clue["when"], clue["says"], shared)
    for need in one["must"]:
        for when in need.get("any") or [need["when"]]:
            yield from _names(when, need["says"])
        yield from _names(need.get("unless") or {}, need["says"])
    for releases in one["versions"]:
        yield from _names(releases.get("unless") or {}, releases["says"])


def _wrong_tests(shared: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong with the conditions of experiments and questions."""
    for name, one in (*shared["experiments"].items(), *shared["questions"].items()):
        for key in ("unless", "needs", "tried"):
            yield from _names(one.get(key) or {}, name)
            yield from _claims(one.get(key) or {}, name, shared)


def _claims(when: Mapping[str, Any], says: str, shared: Mapping[str, Any]) -> Iterator[str]:
    given = when.get("claim", [])
    for claim in given if isinstance(given, list) else [given]:
        if claim not in shared["claims"]:
            yield f"unknown claim {claim} in the rule {says!r}"


def _names(when: Mapping[str, Any], says: str) -> Iterator[str]:
    for name in [*when, *FIELD.findall(says)]:
        if name not in NAMES:
            yield f"unknown name {name} in the rule {says!r}"
    for test in when.values():
        for value in test if isinstance(test, list) else [test]:
            if isinstance(value, str) and value.startswith("~"):
                try:
                    re.compile(value[1:])
                except re.error as error:
                    yield f"{value!r} is no pattern: {error}"


def main(arguments: list[str]) -> None:
    data = compiled()
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    COMPILED.write_text(text + "\n", encoding="utf-8")
    if arguments:
        from .class_page import markdown

        known = knowledge(data)
        for one in known.classes:
            path = Path(arguments[0]) / f"{one.id}.md"
            path.write_text(markdown(one, known), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
