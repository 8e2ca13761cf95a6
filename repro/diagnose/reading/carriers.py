"""What stands around a log line because of how it was carried: containers, journals, kernels.

Forms: docker's and containerd's JSON and `-t` stamps, the CRI (`<stamp> stderr F`), compose and
kubectl prefixes, journald and syslog, dmesg in all its time formats, /dev/kmsg, JSON records.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from .line import Prefix
from .patterns import lazily
from .times import CLOCK, ISO, SYSLOG, read_time

# A JSON record longer than this is read as text.
LONGEST_RECORD = 64 * 1024
# Wrappings within wrappings: a shipped journal line of a container has three.
DEPTH = 5

_CRI = lazily(rf"(?P<time>{ISO}) (?:stdout|stderr) [FP] ")
_DOCKER = lazily(r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6,9}(?:Z|[+-]\d\d:\d\d)) ")
_COMPOSE = lazily(r"[a-z0-9][\w.\-]{0,63} {1,40}\| ?")
_KUBECTL = lazily(r"\[pod/[\w.\-]{1,120}/[\w.\-]{1,120}\] ")
_SYSLOG = lazily(
    rf"(?P<time>{SYSLOG}|{ISO}) (?P<host>[\w.\-]{{1,64}}) (?P<unit>[\w./@\-]{{1,64}})"
    r"(?:\[(?P<pid>\d{1,10})\])?: "
)
_KMSG = lazily(r"\d{1,3},\d{1,12},(?P<usec>\d{1,16}),[^;\s]{1,40};")
_DMESG = lazily(
    r"(?:<\d{1,3}>)?(?:kern +:[a-z]+ *: ?)?"
    rf"(?:\[ *(?P<boot>\d{{1,12}}\.\d{{1,9}})\]|\[(?P<named>[A-Z][a-z][a-z] "
    rf"[A-Z][a-z][a-z] [ \d]\d {CLOCK} "
    rf"\d{{4}})\]|(?P<iso>{ISO})(?= (?:NVRM|nvidia)))(?:\[ *[TC]\d+\])? ?"
)
_TEXT_KEYS = ("log", "message", "msg", "MESSAGE", "text", "textPayload", "line", "body")
_TIME_KEYS = ("time", "timestamp", "ts", "@timestamp", "asctime", "created")


def unwrap(text: str, prefix: Prefix) -> tuple[str, Prefix]:
    """The text inside its carriers, and what they told. Never raises."""
    for _ in range(DEPTH):
        taken = _once(text, prefix)
        if taken is None:
            break
        text, prefix = taken
    return text, prefix


def _once(text: str, prefix: Prefix) -> tuple[str, Prefix] | None:
    first = text[:1]
    if first == "{":
        return _record(text, prefix)
    if first == "[" or first == "<" or text.startswith("kern"):
        for pattern, name in ((_KUBECTL, "kubernetes"), (_DMESG, "dmesg")):
            if found := pattern.match(text):
                return _cut(text, found, prefix, name)
        return None
    forms: tuple[tuple[re.Pattern[str], str], ...] = ()
    if first.isdigit():
        forms = (
            (_CRI, "kubernetes"),
            (_KMSG, "kmsg"),
            (_DMESG, "dmesg"),
            (_SYSLOG, "journald"),
            (_DOCKER, "docker"),
        )
    elif first.isupper():
        forms = ((_SYSLOG, "journald"),)
    if first.isalnum():
        forms = (*forms, (_COMPOSE, "compose"))
    for pattern, name in forms:
        if found := pattern.match(text):
            return _cut(text, found, prefix, name)
    return None


def _cut(text: str, found: re.Match[str], prefix: Prefix, carrier: str) -> tuple[str, Prefix]:
    groups = found.groupdict()
    if "usec" in groups:
        stamp: str | None = f"{int(groups['usec']) / 1e6:.6f}"
    else:
        stamp = next((groups[n] for n in ("time", "boot", "named", "iso") if groups.get(n)), None)
    prefix = replace(
        prefix,
        time=(read_time(stamp) if stamp else None) or prefix.time,
        host=groups.get("host") or prefix.host,
        carriers=(*prefix.carriers, carrier),
    )
    if carrier in ("dmesg", "kmsg") or groups.get("unit") == "kernel":
        prefix = replace(prefix, process="kernel", logged=True)
    elif groups.get("pid"):
        prefix = replace(prefix, pid=int(groups["pid"]))
    return text[found.end() :], prefix


def _record(text: str, prefix: Prefix) -> tuple[str, Prefix] | None:
    """A JSON record of docker, journald, a cluster's agent, or `--log-format json`."""
    if len(text) > LONGEST_RECORD or not text.rstrip().endswith("}"):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    inner = next((v for v in map(record.get, _TEXT_KEYS) if isinstance(v, str)), None)
    if inner is None:
        return None
    stamp = next((v for v in map(record.get, _TIME_KEYS) if isinstance(v, str)), None)
    prefix = replace(
        prefix,
        time=(read_time(stamp) if stamp else None) or prefix.time,
        level=_string(record, ("level", "levelname", "severity")) or prefix.level,
        host=_string(record, ("_HOSTNAME", "hostname", "host")) or prefix.host,
        carriers=(*prefix.carriers, "docker" if "log" in record else "json"),
        logged=prefix.logged or "level" in record or "levelname" in record,
    )
    if record.get("SYSLOG_IDENTIFIER") == "kernel" or record.get("_TRANSPORT") == "kernel":
        prefix = replace(prefix, process="kernel", logged=True)
    # a record of several lines is looked at as one: its parts are wrapped lines of each other
    return inner.rstrip("\r\n").replace("\n", " "), prefix


def _string(record: dict[str, Any], names: tuple[str, ...]) -> str | None:
    get: Callable[[str], object] = record.get
    return next(
        (
            v.upper() if n.startswith(("level", "sev")) else v
            for n in names
            if isinstance(v := get(n), str)
        ),
        None,
    )
