"""What text must not carry out of a machine besides secrets: names and addresses, texts of users.

Apart from `redact_secrets.py`, because what is only shown on the machine itself needs none of it.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from .redact_secrets import SECRETS, Rule, mark, rule, tail, whole

SHOWN_OF_UUID = 8  # digits of a GPU's UUID: enough to tell the GPUs of a report apart

# of whatever machine wrote the log
_HOME = re.compile(
    r"(?<![\w.~-])(?:/(?:mnt|data|export|nfs|lustre|gpfs|fsx|efs|net|shared|scratch))?"
    r"/(?:home|Users)/[^/\s:\"',;<>)\]}]{1,64}(?=[/\s:\"',;<>)\]}]|$)"
)
_WINDOWS_HOME = re.compile(r"(?i)\b[a-z]:\\{1,2}users\\{1,2}[^\\\s:\"',;<>]{1,64}")

_MAC = re.compile(
    r"(?<![0-9A-Fa-f:-])(?:[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2})"
    r"(?![0-9A-Fa-f:-])"
)
_GPU = re.compile(r"\b(GPU|MIG)-([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")

_IPV4 = re.compile(r"(?<![\w.+-])(?:\d{1,3}\.){3}\d{1,3}(?::\d{1,5})?(?![\w+-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?:[0-9A-Fa-f]{1,4}:|:){2,8}[0-9A-Fa-f:.]{0,40}(?![\w:])")
# Four numbers with dots are a version where a name stands before them, as pip prints it.
_VERSION = re.compile(
    r"(?i)(?:[=<>~!]=?|\b(?:version|driver|cuda|cudnn|nccl|build|release|toolkit|library)\b[ :=]*"
    r"|(?:^|\s)[a-z][a-z0-9]*(?:[_-][a-z0-9]+)+\s+|[a-z]-)\s*$"
)
# … unless that name says that a machine follows: `MASTER_ADDR=`, `VLLM_HOST_IP: `
_PLACE = re.compile(
    r"(?i)(?:^|[^a-z])(?:ips?|addr|address|hosts?|endpoint|server|peers?|nodes?|"
    r"nnodes|master|bind|listen|advertise)[\"']?[\s=:]{1,4}[\"'\[]?$"
)


def _ipv4(match: re.Match[str]) -> str | None:
    address, _, port = match[0].partition(":")
    before = match.string[max(0, match.start() - 60) : match.start()].rpartition("\n")[2]
    named = _VERSION.search(before) and not _PLACE.search(before)
    if named and not port and not address.startswith("192.168."):
        return None
    try:
        known = ipaddress.IPv4Address(address)
    except ValueError:
        return None
    if known.is_loopback or known.is_unspecified:
        return None
    return mark("IP address") + (f":{port}" if port else "")


def _ipv6(match: re.Match[str]) -> str | None:
    first = match[0].partition(":")[0]
    # names of C++ (`c10::d`) are of the shape; addresses in use begin with four digits
    if len(first) != 4 or first[0].lower() not in "23f":
        return None
    try:
        ipaddress.IPv6Address(match[0].rstrip(":.") if not match[0].endswith("::") else match[0])
    except ValueError:
        return None
    return mark("IP address")


# `Nov 30 02:40:18 HOST kernel:`, `2026-11-30T02:40:18+00:00 HOST kernel:`, `hostname: HOST`
_SYSLOG = re.compile(
    r"(?<!\S)((?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d[^\s]{0,16}) )"
    r"(?!\[removed)([A-Za-z0-9][A-Za-z0-9._-]{0,252})(?= (?:kernel|[\w./@-]{1,64}\[\d{1,10}\]):)"
)
_HOST = re.compile(
    r"(?i)((?<![\w-])(?:hostname|host|node(?:_?name)?|server)[\"']?\s{0,2}[=:]\s{0,2}[\"']?)"
    r"(?!\[removed)(?=[\w.-]{0,252}[a-z])([a-z0-9][a-z0-9._-]{1,252})(?=[\s\"',;:/)\]}]|$)"
)
# `HOST:PID:TID [RANK] NCCL INFO`, with which every line of NCCL's begins; `USER@HOST:~$`
_NCCL = re.compile(
    r"(?<![\w.-])(?!\[removed)[A-Za-z0-9][A-Za-z0-9._-]{0,252}"
    r"(?=:\d{1,10}:\d{1,10} \[\d{1,4}\] (?:NCCL|init|graph|transport|misc|enqueue|proxy)\b)"
)
_PROMPT = re.compile(
    r"(?m)^((?:\([^()\n]{1,60}\) ?)?\[?)[a-z_][a-z0-9_-]{0,31}@[A-Za-z0-9][A-Za-z0-9.-]{0,252}"
    r"(?=[: ][^\n$#]{0,300}[$#](?: |$))"
)
_MAIL = re.compile(
    r"(?<![\w.%+-])(?!git@)[A-Za-z0-9][\w.%+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2,12}"
    r"(?![\w@-]|\.\w)"
)
_INTERNAL = re.compile(
    r"(?i)(?<![\w.-])(?:[a-z0-9-]{1,63}\.){1,6}(?:internal|local|lan|corp|intranet|cluster\.local)"
    r"(?![\w-]|\.\w)|(?<![\w.-])ip-\d{1,3}-\d{1,3}-\d{1,3}-\d{1,3}(?![\w-])"
)
PUBLIC_HOSTS = frozenset(("localhost", "none", "null", "true", "false", "kernel"))


def _host(match: re.Match[str]) -> str | None:
    if match[2].lower() in PUBLIC_HOSTS:
        return None
    return match[1] + mark("host name")


# Text of users: vLLM's `prompt: '…'` and `prompt_token_ids: […]`, OpenAI's JSON
TEXT_NAMES = (
    "prompt|prompts|prompt_token_ids|token_ids|input_ids|all_token_ids|output_token_ids|messages|"
    "content|text|generated_text|output_text|completion|reasoning_content"
)
_TRAFFIC = re.compile(
    rf"(?<![\w-])((?:{TEXT_NAMES})[\"']?\s{{0,2}}[:=]\s{{0,2}})"
    r"(\"(?:[^\"\\\n]|\\.){2,65536}(?:\"|$)|'(?:[^'\\\n]|\\.){2,65536}(?:'|$)"
    r"|\[(?!removed)[^\]\n]{1,65536}(?:\]|$))",
    re.MULTILINE,
)

RULES: Sequence[Rule] = (
    *SECRETS,
    rule("prompt or output", _TRAFFIC, tail("text of a user")),
    rule("home directory", _HOME, lambda m: "~"),
    rule("home directory", _WINDOWS_HOME, lambda m: "~"),
    rule("host name", _SYSLOG, lambda m: m[1] + mark("host name")),
    rule("host name", _HOST, _host),
    rule("host name", _NCCL, whole("host name"), needs="] "),
    rule("host name", _PROMPT, lambda m: m[1] + mark("user and host"), needs="@"),
    rule("mail address", _MAIL, whole("mail address"), needs="@"),
    rule("host name", _INTERNAL, whole("host name")),
    rule("MAC address", _MAC, whole("MAC address")),
    rule("IP address", _IPV4, _ipv4),
    rule("IP address", _IPV6, _ipv6),
    rule("GPU UUID, shortened", _GPU, lambda m: f"{m[1]}-{m[2][:SHOWN_OF_UUID]}…"),
)
