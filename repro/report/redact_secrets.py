"""What is secret wherever it stands: one rule a kind, each a pattern of bounded work.

Rules look for a known *shape* (a token of a service, an address) or for a *name* that says that
what follows is secret. They are written against what logs of engines hold:
`num_speculative_tokens=3`, `eos_token='</s>'` and a version of four numbers look like secrets and
addresses, and are none. Shapes of tokens: the prefixes that the services document.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

# What stands for something removed begins so, and no rule matches it again.
REMOVED = "[removed"

Replace = Callable[[re.Match[str]], str | None]


@dataclass(frozen=True, slots=True)
class Rule:
    """kind: what is counted. apply: text → the text without, and how many were removed."""

    kind: str
    apply: Callable[[str], tuple[str, int]]


def rule(kind: str, pattern: re.Pattern[str], replace: Replace, needs: str = "") -> Rule:
    """A rule of a pattern; `replace` says what stands there instead, None to leave it as it is.

    needs: without it in a text there is no match, which is found out much faster.
    """

    def apply(text: str) -> tuple[str, int]:
        if needs not in text:
            return text, 0
        count = 0

        def one(match: re.Match[str]) -> str:
            nonlocal count
            instead = replace(match)
            if instead is None or instead == match[0]:
                return match[0]
            count += 1
            return instead

        return pattern.sub(one, text), count

    return Rule(kind, apply)


def mark(kind: str) -> str:
    """What a reader sees instead."""
    return f"{REMOVED} {kind}]"


def whole(kind: str) -> Replace:
    """Replaces all of a match by the mark of its kind."""
    return lambda match: mark(kind)


def tail(kind: str) -> Replace:
    """Keeps group 1, which says what it was."""
    return lambda match: match[1] + mark(kind)


# A token ends where no character of its alphabet follows; before it stands none either.
_BEFORE, _AFTER = r"(?<![A-Za-z0-9_-])", r"(?![A-Za-z0-9_-])"
SHAPES = {
    "Hugging Face token": r"(?:hf|api_org)_[A-Za-z0-9]{20,100}",
    "GitHub token": r"(?:gh[pousr]_[A-Za-z0-9]{30,255}|github_pat_[A-Za-z0-9_]{30,255})",
    "GitLab token": r"glpat-[A-Za-z0-9_-]{16,100}",
    "OpenAI or Anthropic key": r"sk-(?=[a-z_-]{0,255}[A-Z0-9])[A-Za-z0-9_-]{16,255}",
    "Groq key": r"gsk_[A-Za-z0-9]{40,100}",
    "NVIDIA key": r"nvapi-[A-Za-z0-9_-]{20,255}",
    "AWS key id": r"(?:AKIA|ASIA|AGPA|AROA|AIDA)[A-Z0-9]{16}",
    "Google key": r"AIza[A-Za-z0-9_-]{35}",
    "Slack token": r"xox[abeoprs]-[A-Za-z0-9-]{10,255}",
    "npm or PyPI token": r"(?:npm_[A-Za-z0-9]{30,100}|pypi-[A-Za-z0-9_-]{30,255})",
    "Docker token": r"dckr_[a-z]{1,8}_[A-Za-z0-9_-]{20,100}",
    "JSON web token": r"eyJ[A-Za-z0-9_-]{5,4096}\.[A-Za-z0-9_-]{5,4096}\.[A-Za-z0-9_-]{0,4096}",
}

# Parts of a name, split at `_`, `-`, `.` and where a capital follows a small letter.
SECRET_PART = re.compile(
    "secrets?|[a-z]{0,16}passw(?:or)?d|passphrase|pwd|credentials?|apikey|authorization|cookie|privatekey"
)
# Parts that make the one behind them secret: `hf_token`, `api-key`, `AWS_SECRET_ACCESS_KEY`. A key
# alone is none: engines index by keys.
OWNER = {
    "token": re.compile(
        "hf|hub|hugging|huggingface|github|gh|gitlab|git|access|auth|api|bearer|refresh|session|id|"
        "wandb|slack|bot|registry|pypi|npm|openai|anthropic|aws|azure|google|client|user|csrf|ngc"
    ),
    "key": re.compile(
        "api|access|private|secret|auth|encryption|account|ssh|openai|anthropic|wandb|ngc"
    ),
    "pass": re.compile(
        "db|database|pg|mysql|redis|smtp|mail|user|sudo|root|admin|proxy|http|ftp|ssh"
    ),
}
_PASSWORD = re.compile("(?i)passw(?:or)?d|passphrase|pwd|_pass$")
_PARTS = re.compile(r"[_.\-]|(?<=[a-z])(?=[A-Z])")
# what may stand where a secret would, and is none
PLAIN = re.compile(
    r"(?i)none|null|true|false|undefined|unset|[\d.]{1,20}|\*+|<[a-z_ -]{1,40}>|\{[a-z]{1,20}|x{3,}"
)
RANDOM = re.compile(r"(?=[^0-9]*[0-9])(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9_.+/=-]{12,4096}")


def secret_name(name: str) -> bool:
    """Whether what a variable, key or option of this name holds is secret."""
    parts = [part.lower() for part in _PARTS.split(name[:120]) if part]
    if any(SECRET_PART.fullmatch(part) for part in parts) or parts in (["token"], ["auth"]):
        return True
    # a variable of the environment: MY_TOKEN
    if name.isupper() and len(parts) > 1 and parts[-1] in OWNER:
        return True
    return any(part in OWNER and OWNER[part].fullmatch(owner) for owner, part in pairwise(parts))


# NAME=VALUE, NAME: VALUE, "NAME": "VALUE", 'NAME': ['VALUE', --NAME VALUE. The value is not part of
# the match: what follows a name that is not secret may be another name.
_NAMED = re.compile(
    r"(?<![A-Za-z0-9_.])(?:(?P<option>--[A-Za-z][A-Za-z0-9_.\-]{1,80})[ \t]{1,4}"
    r"|(?P<name>[A-Za-z][A-Za-z0-9_.\-]{1,80})[\"']?\s{0,4}[:=]\s{0,4}[\[(]?\s{0,4})"
)
_VALUE = re.compile(
    r"\"[^\"\n]{1,4096}\"?|'[^'\n]{1,4096}'?|[^\s\"',;&|)\]}]{1,4096}(?:\[[^\]\n]{0,64}\])?"
)
# A header is secret to its end: a scheme stands before what is secret, a cookie has several parts.
_CREDENTIAL = re.compile(
    r"\"[^\"\n]{1,4096}\"?|'[^'\n]{1,4096}'?"
    r"|(?:(?i:[a-z][a-z0-9-]{1,30})[ \t]{1,4}(?=[^\s\"',;&|)\]}]))?[^\s\"',;&|)\]}]{1,4096}"
)
_COOKIE = re.compile(r"\"[^\"\n]{1,4096}\"?|'[^'\n]{1,4096}'?|[^\"'\r\n]{1,4096}")
_SCHEME = re.compile(rf"[A-Za-z][A-Za-z0-9-]{{1,30}}[ \t]{{1,4}}{re.escape(REMOVED)}")


def _named(text: str) -> tuple[str, int]:
    parts, at, count = [], 0, 0
    while head := _NAMED.search(text, at):
        parts.append(text[at : head.end()])
        at = head.end()
        name = head["name"] or head["option"]
        value = _value_of(name).match(text, at)
        if value and secret_name(name) and _secret(head, value):
            quote = value[0][0] if value[0][0] in "\"'" else ""
            parts.append(f"{quote}{mark('secret')}{quote}")
            at = value.end()
            count += 1
    return "".join((*parts, text[at:])), count


def _value_of(name: str) -> re.Pattern[str]:
    """The pattern of what stands behind a name."""
    small = name.lower()
    if small.endswith("cookie"):
        return _COOKIE
    return _CREDENTIAL if small.endswith("authorization") else _VALUE


def secret_option(word: str) -> bool:
    """Whether a word of a command says that the word after it is secret: `--api-key`."""
    return word.startswith("--") and "=" not in word and secret_name(word)


def _secret(head: re.Match[str], value: re.Match[str]) -> bool:
    """Whether the value of a secret name is one: not nothing, not a mark already."""
    said = value[0].strip("\"'")
    name = head["name"] or head["option"]
    digits = _PASSWORD.search(name) is not None and re.fullmatch(r"\d{4,}", said) is not None
    if not said or said.startswith("-") or (PLAIN.fullmatch(said) and not digits):
        return False
    # "token" is also what the field counts: `#token: 12`, `next token: the`
    if head["name"] and head["name"].lower() == "token" and not RANDOM.fullmatch(said):
        return False
    if value.string.startswith(REMOVED, value.start() - head[0].endswith("[")):
        return False  # the sign may have taken the bracket of the mark
    # `Bearer [removed authorisation]`, whether or not the mark is part of the value
    return _SCHEME.match(value.string, value.start()) is None


_HEADER = re.compile(
    r"(?i)\b(bearer|basic|digest|negotiate)[ \t]{1,4}(?=[^\s\"',;]{0,4095}[0-9+/=_.~-])"
    r"(?!\[removed)[A-Za-z0-9+/=_.~-]{12,4096}"
)
_LOGIN = re.compile(r"\b([a-zA-Z][a-zA-Z0-9+.-]{1,20}://)(?!\[removed)[^\s/@\"'<>]{1,1024}@")
_SIGNED = re.compile(
    r"(?i)([?&](?:x-amz-(?:signature|credential|security-token)|sig|signature|token|key|"
    r"access_token|api_key|code)=)(?!\[removed)[^\s&\"'<>#]{4,4096}"
)
# `curl -u NAME:PASSWORD`; elsewhere `-u` is a number, as of `docker run -u 1000:1000`
_CURL = re.compile(r"\bcurl\b[^\n]{1,4000}")
_USER = re.compile(
    r"(\s(?:-u|--user|--proxy-user|-U)[ =]{0,2}[\"']?)(?!\[removed)"
    r"[^\s:\"']{1,200}:[^\s\"']{1,1000}"
)


def _logins(match: re.Match[str]) -> str:
    """All of a line: a command may have a login for its proxy as well."""
    return _USER.sub(lambda found: found[1] + mark("login"), match[0])


# addresses of chats' webhooks, which whoever has them may post to
_WEBHOOK = re.compile(
    r"(https://[A-Za-z0-9.-]{1,100}/(?:services/T[A-Za-z0-9]{6,20}/B[A-Za-z0-9]{6,20}/"
    r"|api/webhooks/\d{15,22}/))[A-Za-z0-9_-]{16,200}"
)
_PEM = re.compile(
    r"-----BEGIN ([A-Z ]{0,30}PRIVATE KEY)-----.{0,16384}?(?:-----END \1-----|\Z)", re.DOTALL
)

# What is secret wherever it stands.
SECRETS: Sequence[Rule] = (
    rule("private key", _PEM, whole("private key")),
    rule("login in a URL", _LOGIN, lambda m: f"{m[1]}{mark('login')}@"),
    rule("signature in a URL", _SIGNED, tail("signature")),
    rule("login in a URL", _CURL, _logins, needs="curl"),
    rule("signature in a URL", _WEBHOOK, tail("signature"), needs="https://"),
    rule("authorisation header", _HEADER, lambda m: f"{m[1]} {mark('authorisation')}"),
    *(
        rule(kind, re.compile(_BEFORE + shape + _AFTER), whole(kind))
        for kind, shape in SHAPES.items()
    ),
    Rule("value of a secret name", _named),
)
