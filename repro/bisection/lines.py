"""Events of a search as lines of JSON in ASCII, and back; what is no such line is refused."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

from .variation import Variation, Varied
from .verdicts import (
    Bad,
    Event,
    Exposure,
    Good,
    Infra,
    Mark,
    Marked,
    Observation,
    Opened,
    Other,
    Place,
    Undo,
    Untestable,
    Verdict,
)

LONGEST = 1 << 20  # characters of a line
KINDS: dict[str, type[Verdict]] = {
    "bad": Bad,
    "good": Good,
    "other": Other,
    "untestable": Untestable,
    "infra": Infra,
}
EVENTS: dict[str, type[Event]] = {
    "trial": Observation,
    "mark": Mark,
    "undo": Undo,
    "opened": Opened,
}


def to_line(event: Event) -> str:
    """An event as one line, without the line's end."""
    record = {"event": _name(EVENTS, event), **asdict(event)}
    if isinstance(event, Observation):
        record["verdict"] = {"kind": _name(KINDS, event.verdict), **asdict(event.verdict)}
    return json.dumps(record, allow_nan=False)


def from_line(line: str) -> Event:
    """Read what `to_line` wrote; ValueError on anything else."""
    if len(line) > LONGEST:
        raise ValueError(f"longer than {LONGEST} characters")
    try:
        fields = Fields(json.loads(line))
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    name = fields.text("event")
    event: Event
    if name == "trial":
        event = Observation(
            build=fields.text("build"),
            number=fields.count("number", least=1),
            verdict=_verdict(Fields(fields.take("verdict"))),
            seconds=fields.number("seconds"),
            log=fields.text("log"),
            setup=fields.number("setup"),
            # journals of before there were other machines have none
            place=_place(Fields(fields.take("place"))) if fields.has("place") else None,
            varied=_varied(Fields(fields.take("varied"))) if fields.has("varied") else None,
        )
        if event.varied is not None and event.varied.name != event.build:
            raise ValueError("a variation is called by what is varied")
    elif name == "mark":
        event = Mark(fields.text("build"), Marked(fields.text("verdict")))
    elif name in EVENTS:
        event = Undo() if name == "undo" else Opened()
    else:
        raise ValueError("no event of a search")
    fields.end()
    return event


def _verdict(fields: Fields) -> Verdict:
    kind = fields.text("kind")
    verdict: Verdict
    if kind == "bad":
        verdict = Bad(fields.text("signature"), _exposure(Fields(fields.take("exposure"))))
    elif kind == "good":
        verdict = Good(_exposure(Fields(fields.take("exposure"))))
    elif kind == "other":
        verdict = Other(fields.text("signature"))
    elif kind == "untestable":
        verdict = Untestable(fields.text("reason"), fields.text("fingerprint"))
    elif kind == "infra":
        verdict = Infra(fields.text("reason"))
    else:
        raise ValueError("no verdict of a trial")
    fields.end()
    return verdict


def _exposure(fields: Fields) -> Exposure:
    exposure = Exposure(
        requests=fields.count("requests") if fields.has("requests") else None,
        tokens=fields.count("tokens") if fields.has("tokens") else None,
        seconds=fields.number("seconds") if fields.has("seconds") else None,
    )
    fields.end()
    return exposure


def _place(fields: Fields) -> Place:
    place = Place(*(fields.text(key) for key in ("node", "machine", "gpu", "driver")))
    fields.end()
    return place


def _varied(fields: Fields) -> Variation:
    changes = fields.take("changes")
    if type(changes) is not list or not all(_change(one) for one in changes):
        raise ValueError("changes are a list of pairs of texts")
    variation = Variation(
        build=fields.text("build"),
        shows=fields.flag("shows"),
        varied=Varied(fields.text("varied")),
        changes=tuple((name, value) for name, value in changes),
    )
    fields.end()
    return variation


def _change(one: Any) -> bool:
    return type(one) is list and [type(part) for part in one] == [str, str]


class Fields:
    """The keys of a JSON object, taken one by one; ValueError for what is not as it should be."""

    def __init__(self, record: Any) -> None:
        if type(record) is not dict:
            raise ValueError("no JSON object")
        self.left = dict(record)

    def has(self, key: str) -> bool:
        """Whether a key has a value. One that is null is taken."""
        return self.left.get(key) is not None or bool(self.left.pop(key, None))

    def take(self, key: str) -> Any:
        if key not in self.left:
            raise ValueError(f"no {key}")
        return self.left.pop(key)

    def text(self, key: str) -> str:
        value = self.take(key)
        if type(value) is not str:
            raise ValueError(f"{key} is a text")
        return value

    def flag(self, key: str) -> bool:
        value = self.take(key)
        if type(value) is not bool:
            raise ValueError(f"{key} is true or false")
        return value

    def count(self, key: str, least: int = 0) -> int:
        value = self.take(key)
        if type(value) is not int or value < least:
            raise ValueError(f"{key} is a whole number from {least}")
        return value

    def number(self, key: str) -> float:
        value = self.take(key)
        # a whole number too large for a float would not compare
        if type(value) is int and value.bit_length() < 1000:
            value = float(value)
        if type(value) is not float or not math.isfinite(value) or value < 0:
            raise ValueError(f"{key} is a number from 0")
        return value

    def end(self) -> None:
        if self.left:
            raise ValueError(f"unknown keys: {', '.join(sorted(self.left))}")


def _name(table: dict[str, Any], one: object) -> str:
    return next(name for name, kind in table.items() if type(one) is kind)
