"""Takes out of a text or record what must not leave the machine, and counts what it took.

Everything that is posted or written to be sent goes through here. It removes what it knows the
shape or the name of (`redact_secrets.py`, `redact_rules.py`), and the names of this very machine
and user. It is no proof: a secret without a known shape or name passes, so a text is shown before
it is sent.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .redact_rules import RULES, TEXT_NAMES
from .redact_secrets import Rule, mark, rule, secret_name, secret_option, whole

# Names that many machines and users have, or that stand in texts for other reasons.
COMMON = re.compile(
    "root|users?|admin|ubuntu|debian|runner|docker|vllm|nobody|home|guest|test|default|work|build|"
    "localhost|local|host|main|linux|python|agent|worker|node|server",
    re.IGNORECASE,
)
SHORTEST_NAME = 4
LONGEST_SEEN = 400  # characters of a text that is kept for when it comes again
MOST_PASSES = 4  # what is taken out may have hidden where something else begins
_TEXT_KEYS = frozenset(TEXT_NAMES.split("|"))


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the machine a text comes from; all of it is taken out. "" is unknown."""

    home: str = ""
    user: str = ""
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Redacted:
    """What is left, and how much was removed of each kind."""

    text: str
    removed: Mapping[str, int] = field(default_factory=dict)


def this_machine() -> Known:
    """The names of this machine and of its user, asked of the system; nothing is sent."""
    import getpass
    import os
    import socket

    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in many containers
        user = ""
    name = socket.gethostname()
    short = name.partition(".")[0]
    return Known(os.path.expanduser("~"), user, tuple(dict.fromkeys((name, short))))


def redact(text: str, known: Known | None = None) -> Redacted:
    """`text` without what its rules find. To redact again changes nothing."""
    counts: Counter[str] = Counter()
    text = _applied((*RULES, *_rules_of(known)), text, counts)
    return Redacted(text, dict(counts))


def redact_record(value: Any, known: Known | None = None) -> tuple[Any, dict[str, int]]:
    """A JSON value with every text in it redacted, and how much was removed of each kind.

    Keys stay as they are: they are ours. A text whose key names a secret or a user's words goes
    whole; numbers, which hold parameters and addresses, stay.
    """
    counts: Counter[str] = Counter()
    rules = (*RULES, *_rules_of(known))
    seen: dict[str, tuple[str, Counter[str]]] = {}  # a record says the same of many trials

    def cleaned(text: str) -> str:
        if len(text) > LONGEST_SEEN:
            return _applied(rules, text, counts)
        if text not in seen:
            own: Counter[str] = Counter()
            seen[text] = _applied(rules, text, own), own
        left, own = seen[text]
        counts.update(own)
        return left

    def words(items: Sequence[Any], key: str) -> list[Any]:
        # a command is kept word by word: what an option says is secret is the next word
        found, secret = [], False
        for item in items:
            if secret and isinstance(item, str) and item and not item.startswith("-"):
                counts["value of a secret name"] += 1
                found.append(mark("secret"))
            else:
                found.append(walk(item, key))
            secret = isinstance(item, str) and secret_option(item)
        return found

    def walk(item: Any, key: str) -> Any:
        if isinstance(item, Mapping):
            return {name: walk(inner, str(name)) for name, inner in item.items()}
        if isinstance(item, list | tuple):
            return words(item, key)
        if not isinstance(item, str) or not item:
            return item
        if secret_name(key):
            counts["value of a secret name"] += 1
            return mark("secret")
        if key in _TEXT_KEYS - {"text", "content"}:
            counts["prompt or output"] += 1
            return mark("text of a user")
        return cleaned(item)

    return walk(value, ""), dict(counts)


def summary(removed: Mapping[str, int]) -> str:
    """What was removed, as a sentence's end: `2 × Hugging Face token, 1 × IP address`."""
    return ", ".join(f"{count} × {kind}" for kind, count in removed.items()) or "nothing"


def _applied(rules: Sequence[Rule], text: str, counts: Counter[str]) -> str:
    """The text without what the rules find, nor what they find in what is left."""
    for _ in range(MOST_PASSES):
        before = text
        for each in rules:
            text, count = each.apply(text)
            if count:
                counts[each.kind] += count
        if text == before:
            break
    return text


def _rules_of(known: Known | None) -> list[Rule]:
    if known is None:
        return []
    rules = []
    home = known.home.rstrip("/")
    if len(home) > 1:
        pattern = re.compile(rf"(?<![\w.~-]){re.escape(home)}(?=[/\s:\"',;<>)\]}}]|$)")
        rules.append(rule("home directory", pattern, lambda match: "~"))
    for kind, names in (("host name", known.hosts), ("user name", (known.user,))):
        for name in names:
            if len(name) >= SHORTEST_NAME and not COMMON.fullmatch(name):
                pattern = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
                rules.append(rule(kind, pattern, whole(kind)))
    return rules
