"""The fault classes as records, and where they are kept.

One YAML file a class under `classes/`, what they share under `knowledge/`. They are checked and
compiled into one JSON file (`compilation.py`), because parsing YAML would take longer than reading
a log. The JSON holds a checksum of the files it was made of; where a file was edited since, the
files themselves are read.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from .conditions import When

FOLDER = Path(__file__).parent
COMPILED = FOLDER / "compiled.json"
# outcome of an experiment → probability, in one class
Outcomes = Mapping[str, float]


class Need(NamedTuple):
    """What must hold for a class: one of `whens`. `unless`: where this need is waived."""

    whens: tuple[When, ...]
    says: str
    unless: When | None = None


class Clue(NamedTuple):
    """What speaks for a class or against it. weight: natural logarithm of the odds it is worth."""

    when: When
    weight: float
    says: str


class Releases(NamedTuple):
    """Releases with a defect of the class: `first` has it, `fixed` is the first without (None:
    always, never). `part`: one defect of several, so it excludes nothing. `beneath`: a library that
    carries its own copy, so the engine's version excludes nothing. read: the releases whose code
    was read, None for none. until: from there on the version excludes nothing any more."""

    of: str
    says: str
    first: str | None = None
    fixed: str | None = None
    until: str | None = None
    read: str | None = None
    part: bool = False
    beneath: str | None = None
    unless: When | None = None


class Fix(NamedTuple):
    """A way out. `first`: the first release that has it, None where none is known."""

    says: str
    of: str | None = None
    first: str | None = None


class FaultClass(NamedTuple):
    """One class of faults; docs/diagnose.md says how its evidence adds up."""

    id: str
    number: str
    title: str
    cause: str
    about: str
    explains: tuple[str, ...]
    prior: float
    must: tuple[Need, ...]
    clues: tuple[Clue, ...]
    versions: tuple[Releases, ...]
    ignores: tuple[str, ...]
    misread: tuple[str, ...]
    asks: tuple[str, ...]
    experiments: Mapping[str, Outcomes]
    fixes: tuple[Fix, ...]
    sources: tuple[str, ...]
    case: str | None


class Experiment(NamedTuple):
    """Something to try. `set`, `drop`, `env` and `spec` change a start command in one lever;
    `command` stands for itself; `wrap` precedes the command. minutes: of one trial. unless, needs:
    where it makes no sense, and where only it does."""

    id: str
    title: str
    minutes: int
    restart: bool
    root: bool = False
    set: Mapping[str, Any] | None = None
    drop: tuple[str, ...] = ()
    env: Mapping[str, str] | None = None
    spec: Mapping[str, Any] | None = None
    command: str | None = None
    wrap: str | None = None
    ask: str = ""
    question: str | None = None
    reads: str | None = None
    unless: When | None = None
    needs: When | None = None
    tried: When | None = None


class Question(NamedTuple):
    """Something to ask for: which names it settles, and how to get it.

    engine: the one that has it, None for all. unless: where it is no question.
    """

    id: str
    ask: str
    names: tuple[str, ...]
    how: str
    engine: str | None = None
    unless: When | None = None


class Knowledge(NamedTuple):
    """Everything the rules say."""

    classes: tuple[FaultClass, ...]
    experiments: Mapping[str, Experiment]
    questions: tuple[Question, ...]
    engines: Mapping[str, Any]
    claims: Mapping[str, str]
    errors: Mapping[str, Mapping[str, Any]]

    def of(self, name: str) -> FaultClass | None:
        """A class by its id or number."""
        wanted = name.casefold()
        return next((c for c in self.classes if wanted in (c.id, c.number.casefold())), None)


def files() -> list[Path]:
    """The files that hold the rules, by name."""
    return sorted((*FOLDER.glob("classes/*.yaml"), *FOLDER.glob("knowledge/*.yaml")))


def checksum(paths: Sequence[Path]) -> int:
    """CRC-32 of the names and contents of files. It tells an edit, which is all it is for, and
    hashlib would load OpenSSL."""
    found = 0
    for path in paths:
        found = zlib.crc32(path.name.encode() + b"\0" + path.read_bytes() + b"\0", found)
    return found


@cache
def load() -> Knowledge:
    """The rules; compiled ones if they are of these files, else the files themselves."""
    try:
        data = json.loads(COMPILED.read_bytes())
    except (OSError, ValueError):
        data = {}
    if data.get("crc32") != checksum(files()):
        from .compilation import compiled

        data = compiled()
    return knowledge(data)


def knowledge(data: Mapping[str, Any]) -> Knowledge:
    """The records of compiled data."""
    return Knowledge(
        tuple(_class(one) for one in data["classes"]),
        {name: _experiment(name, one) for name, one in data["experiments"].items()},
        tuple(
            Question(**{**one, "id": name, "names": tuple(one["names"])})
            for name, one in data["questions"].items()
        ),
        data["engines"],
        data["claims"],
        data["errors"],
    )


def _class(one: Mapping[str, Any]) -> FaultClass:
    return FaultClass(
        id=one["id"],
        number=one["number"],
        title=one["title"],
        cause=one["cause"],
        about=one["about"],
        explains=tuple(one["explains"]),
        prior=float(one["prior"]),
        must=tuple(_need(need) for need in one["must"]),
        clues=tuple(
            Clue(clue["when"], float(clue["weight"]), clue["says"])
            for clue in (*one["for"], *one["against"])
        ),
        versions=tuple(Releases(**releases) for releases in one["versions"]),
        ignores=tuple(one["ignores"]),
        misread=tuple(one.get("misread", ())),
        asks=tuple(one["asks"]),
        experiments={name: outcomes(value) for name, value in one["experiments"].items()},
        fixes=tuple(Fix(**fix) for fix in one["fixes"]),
        sources=tuple(one["sources"]),
        case=one.get("case"),
    )


def _need(need: Mapping[str, Any]) -> Need:
    whens = need["any"] if "any" in need else [need["when"]]
    return Need(tuple(whens), need["says"], need.get("unless"))


def _experiment(name: str, one: Mapping[str, Any]) -> Experiment:
    return Experiment(**{**one, "id": name, "drop": tuple(one.get("drop", ()))})


# What is left for other outcomes where a class names the one it expects.
OTHERWISE = 0.2


def outcomes(value: float | str) -> Outcomes:
    """Outcomes of an experiment in a class, as its file gives them.

    A number is the probability that the fault comes again; a word the outcome that is expected,
    with OTHERWISE left for any other.
    """
    if isinstance(value, str):
        return {value: 1 - OTHERWISE, "other": OTHERWISE}
    return {"again": float(value), "clean": 1 - float(value)}
