"""What people say in prose: claims, never observations.

Only what a sentence plainly states: a symptom, a version named as good or bad, an Xid without its
kernel line. A denied symptom ("no longer crashes") is a claim of its absence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...watch.xid import entry
from ..facts import Certainty, Value
from .line import Found, Line
from .patterns import lazily

LONGEST = 4000
_TOPICS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "garbage",
        lazily(
            r"(?i)gibberish|garbled|garbage (?:output|text|tokens?)|nonsense|"
            r"(?:output|text|response)s? (?:is|are|becomes?) (?:corrupt|garbage)|"
            r"repeat(?:s|ing|ed)? (?:the same )?tokens?|endless(?:ly)? repeat|!!!!!"
        ),
    ),
    (
        "hang",
        lazily(r"(?i)\b(?:hangs?|hung|freezes?|frozen|stuck|stops? responding|deadlocks?)\b"),
    ),
    (
        "low_acceptance",
        lazily(
            r"(?i)(?:acceptance|accept(?:ed)?)\b.{0,40}\b(?:zero|0(?:\.0+)? ?%|drops?|"
            r"falls?|collapses?|low)\b|"
            r"(?:zero|0 ?%|no|low) (?:draft )?(?:acceptance|accepted)"
        ),
    ),
    (
        "crash",
        lazily(r"(?i)\bcrash(?:es|ed|ing)?\b|\bdies\b|\bdied\b|illegal memory access|\bIMA\b"),
    ),
)
_DENIED = lazily(
    r"(?i)\b(?:no longer|does(?:n't| not)|did(?:n't| not)|never|without (?:a |any )?|"
    r"not|no|zero|0|gone|fixed)\b[^.]{0,24}$"
)
_CLEAN = lazily(r"(?i)\b0 crashes\b|\bno (?:more )?(?:crash|crashes|hangs?|faults?)\b|\bclean\b")
_ENGINE = lazily(
    r"(?i)\b(?P<name>vllm|sglang|tensorrt-llm|trt-llm)\b(?:[ :=@\-]|version|release|"
    r"nightly|docker|image|==){0,4}"
    r"v?(?P<version>\d{1,2}\.\d{1,3}(?:\.\d{1,3}){0,2}(?:(?:rc|\.post|\.dev)\d{1,6}){0,2})"
)
_BARE = lazily(
    r"(?<![\w.])v?(0\.\d{1,2}\.\d{1,2}(?:\.\d)?(?:(?:rc\d{1,3}|\.post\d|\.dev\d{1,5}){0,2})"
    r"(?:\+g[0-9a-f]{7,12})?)(?![\w.]*\d)"
)
_GOOD = lazily(r"(?i)works?|fine|good|ok\b|no crash|not affected|clean|stable")
_BAD = lazily(r"(?i)fails?|crash|broken|affected|still|reproduc|same (?:issue|error|problem)")
_RANKS = lazily(r"\b(TP|PP|DP|EP) ?[=:]? ?(\d{1,3})\b")
_XID = lazily(r"(?i)\bXid[ s]{0,2}(?:error )?[#:=(]{0,2} ?(\d{1,3})\b")
_K = lazily(r"(?i)\bnum_speculative_tokens\b\W{0,4}(\d{1,2})\b|\bk ?= ?(\d{1,2})\b")


def read_claims(line: Line) -> Iterator[Found]:
    """Claims of one line of prose. Never raises; linear in the line."""
    text = line.text[:LONGEST]
    for topic, pattern in _TOPICS:
        found = pattern.search(text)
        if found is None:
            continue
        denied = _DENIED.search(text[max(0, found.start() - 40) : found.start()])
        if denied or (topic == "crash" and _CLEAN.search(text)):
            yield _claim("no_crash" if topic == "crash" else "works", None)
        else:
            yield _claim(topic, None)
    yield from _versions(text)
    for found in _XID.finditer(text):
        yield _xid(int(found[1]), text)
    for found in _RANKS.finditer(text):
        clause = _around(text, found)
        if _GOOD.search(clause) and not _BAD.search(clause):
            continue  # "TP=2 is fine" tells of another run
        size: dict[str, Value] = {"dimension": found[1].lower(), "size": int(found[2])}
        yield Found("parallel", size, certainty=Certainty.CLAIMED)
    if found := _K.search(text):
        values: dict[str, Value] = {"method": None, "k": int(found[1] or found[2]), "model": None}
        yield Found("speculation", {**values, "enabled": True}, certainty=Certainty.CLAIMED)


def _claim(topic: str, subject: str | None) -> Found:
    values = {"topic": topic, "subject": subject}
    return Found("claim", values, certainty=Certainty.CLAIMED)


def _versions(text: str) -> Iterator[Found]:
    seen: set[str] = set()
    for found in _ENGINE.finditer(text):
        name = (
            found["name"]
            .lower()
            .replace("trt-llm", "tensorrt-llm")
            .replace("tensortensorrt", "tensorrt")
        )
        seen.add(found["version"])
        yield from _version(name, found["version"], _around(text, found))
    for found in _BARE.finditer(text):
        if found[1] not in seen and re.search(r"(?i)vllm|version|release|\bon\b|\bv0\.", text):
            seen.add(found[1])
            yield from _version("vllm", found[1], _around(text, found))


def _around(text: str, found: re.Match[str]) -> str:
    """The clause in which the version stands."""
    before = re.split(r"[.;,](?:\s|$)|\bbut\b|\band\b", text[: found.start()])[-1]
    after = re.split(r"[.;,](?:\s|$)|\bbut\b|\band\b", text[found.end() :])[0]
    return f"{before} {after}"


def _version(name: str, version: str, clause: str) -> Iterator[Found]:
    if _GOOD.search(clause) and not _BAD.search(clause):
        yield _claim("works", f"{name} {version}")
        return
    if _BAD.search(clause):
        yield _claim("fails", f"{name} {version}")
    values: dict[str, Value] = {"name": name, "version": version, "commit": None}
    yield Found("engine", {**values, "origin": "prose"}, certainty=Certainty.CLAIMED)


def _xid(code: int, text: str) -> Found:
    row = entry(code)
    access = re.search(r"(?:VIRT_)?(READ|WRITE|ATOMIC)\b", text)
    names = (
        "bus", "pid", "process_name", "fault_type", "engine", "client", "address", "detail",
        "caused_by",
    )  # fmt: skip
    values: dict[str, Value] = {
        **dict.fromkeys(names),
        "code": code,
        "mnemonic": row.mnemonic if row else None,
        "class": row.kind if row else "unknown",
        "fault": "illegal_access" if code == 31 else None,
        "body": "",
        "access": access[1] if access else None,
        "action": row.action if row else None,
    }
    return Found("xid", values, certainty=Certainty.CLAIMED)
