"""Stamps of log lines: the forms of engines, kernels, containers and shells, to one record.

A stamp is parsed from groups that a prefix already matched; what makes no date is None, never a
guess. Months and days count in a leap year, so that stamps with and without a year compare.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate

from ..facts import Clock, Time
from .patterns import lazily

MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_BEFORE = tuple(accumulate((0, *_LENGTHS[:-1])))
_DAY = 86_400

# Patterns of stamps, to be put into the patterns of prefixes.
CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
ISO = rf"\d{{4}}-\d\d-\d\d[T ]{CLOCK}(?:Z|[+-]\d\d:?\d\d)?"
SYSLOG = rf"[A-Z][a-z][a-z] [ \d]\d {CLOCK}"

_ISO = lazily(r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?")
_MONTH_DAY = lazily(r"(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_NAMED = lazily(
    r"(?:[A-Z][a-z][a-z] )?([A-Z][a-z][a-z]) ([ \d]?\d) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?"
    r"(?: (\d{4}))?"
)
_AMERICAN = lazily(r"(\d\d)/(\d\d)/(\d{4})-(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_GLOG = lazily(r"(\d\d)(\d\d) (\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?")
_TIME = lazily(r"(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?$")
_BOOT = lazily(r"(\d{1,12})\.(\d{1,9})$")


@lru_cache(4096)
def read_time(text: str) -> Time | None:
    """The time that a stamp names; None for anything else. Never raises."""
    text = text.strip()
    if found := _ISO.match(text):
        year, month, day, *clock = found.groups()[:7]
        return _wall(text, int(month), int(day), clock, int(year), found[8])
    if found := _MONTH_DAY.match(text):
        month, day, *clock = found.groups()
        return _wall(text, int(month), int(day), clock)
    if found := _AMERICAN.match(text):
        month, day, year, *clock = found.groups()
        return _wall(text, int(month), int(day), clock, int(year))
    if (found := _NAMED.match(text)) and found[1] in MONTHS:
        name, day, *clock = found.groups()[:6]
        year_ = int(found[7]) if found[7] else None
        return _wall(text, MONTHS.index(name) + 1, int(day), clock, year_)
    if found := _GLOG.match(text):
        month, day, *clock = found.groups()
        return _wall(text, int(month), int(day), clock)
    if found := _TIME.match(text):
        seconds = _of_day(list(found.groups()))
        return None if seconds is None else Time(text, Clock.DAY, seconds)
    if found := _BOOT.match(text):
        return Time(text, Clock.BOOT, float(text))
    return None


def _wall(
    text: str,
    month: int,
    day: int,
    clock: list[str],
    year: int | None = None,
    zone: str | None = None,
) -> Time | None:
    seconds = _of_day(clock)
    if seconds is None or not 1 <= month <= 12 or not 1 <= day <= _LENGTHS[month - 1]:
        return None
    days = _BEFORE[month - 1] + day - 1
    return Time(text, Clock.WALL, days * _DAY + seconds, year, zone)


def _of_day(clock: list[str]) -> float | None:
    hours, minutes, seconds = (int(part) for part in clock[:3])
    if hours > 23 or minutes > 59 or seconds > 60:
        return None
    fraction = clock[3]
    return hours * 3600 + minutes * 60 + seconds + (float(f"0.{fraction}") if fraction else 0.0)
