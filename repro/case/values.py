"""The kinds of value a case file is made of, as pydantic types with messages of our own."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from ..records import LANES, Scalar

FAULT_CLASSES: Mapping[str, str] = {
    "C1": "plan-buffer-race",
    "C2": "accepted-count-race",
    "C3": "state-index-unbounded",
    "C4": "mamba-block-addressing",
    "C5": "prefix-cache-poisoning",
    "C6": "placeholder-token",
    "C7": "stale-draft-metadata",
    "C8": "graph-padding",
    "C9": "workspace-moved-under-graph",
    "C10": "int32-overflow",
    "C11": "token-id-out-of-range",
    "C12": "draft-length-gate",
    "C13": "acceptance-loss",
    "C14": "oom-in-disguise",
    "C15": "hardware-or-driver",
    "C16": "secondary-cascade",
    "C17": "custom-allreduce",
    "C18": "kv-connector-or-sleep",
    "C19": "hang",
    "C20": "architecture-limit",
    "C21": "rank-config-divergence",
    "C22": "mtp-tail-overflow",
}
KEBAB = r"^[a-z0-9]+(-[a-z0-9]+)*$"
IDENTIFIER = r"^[a-z][a-z0-9_]*$"
RANGE = r"^-?[0-9]{1,18}\.\.-?[0-9]{1,18}$"
LINE = r"^[^\x00-\x1f\x7f-\x9f\u2028\u2029]*$"
RELEASE = r"^[0-9]{1,4}(\.[0-9]{1,4}){1,3}$"
HTTPS = r"^https://[A-Za-z0-9.-]+(:[0-9]+)?(/[!-~]*)?$"
GPU_TYPE = r"^[A-Za-z0-9][A-Za-z0-9 -]{0,39}$"
MEMORY = r"^[0-9]{1,6}(\.[0-9]{1,3})? ?(MiB|GiB)$"
COMPARED = r"(>=|<=|==|<|>) ?[0-9]{1,5}(\.[0-9]{1,5}){0,3}"
DRIVER = rf"^{COMPARED}(, ?{COMPARED}){{0,3}}$"
# The parts that later commands read are kept as they are, up to this.
MAX_PLAIN_VALUES = 2_000
MAX_TEXT = 4_000


def _matching(pattern: str, what: str) -> Any:
    """Text of a given form: the schema has the pattern, the message says `what` it is."""
    compiled = re.compile(pattern)

    def check(value: str) -> str:
        if compiled.fullmatch(value) is None:
            raise PydanticCustomError("form", "must be {what}", {"what": what})
        return value

    return AfterValidator(check)


def _one_of(known: Iterable[str]) -> Any:
    """One of the known names; the error carries them, so that a message can offer the nearest."""
    allowed = tuple(known)

    def check(value: str) -> str:
        if value not in allowed:
            raise PydanticCustomError("choice", "must be a known name", {"allowed": allowed})
        return value

    return AfterValidator(check)


def _scalar(value: Any) -> Scalar:
    if type(value) in (bool, int, float, str):
        return value  # type: ignore[no-any-return]  # narrowed by the line above
    raise PydanticCustomError("scalar", "must be a single value")


def _plain(value: Any) -> Any:
    """Mappings, lists and scalars of bounded size."""
    waiting, seen = [value], 0
    while waiting:
        item = waiting.pop()
        seen += 1
        if isinstance(item, dict):
            waiting.extend(item.values())
        elif isinstance(item, list):
            waiting.extend(item)
        elif type(item) not in (bool, int, float, str):
            raise PydanticCustomError("plain", "must hold plain data only")
        if seen > MAX_PLAIN_VALUES or (isinstance(item, str) and len(item) > MAX_TEXT):
            raise PydanticCustomError(
                "plain",
                "holds too much: at most {values} values, {text} characters in one",
                {"values": MAX_PLAIN_VALUES, "text": MAX_TEXT},
            )
    return value


def _one_or_more(value: Any) -> Scalar | tuple[Scalar, ...]:
    """A single value, or a list of at least one."""
    if not isinstance(value, list):
        return _scalar(value)
    if not value:
        raise PydanticCustomError("empty", "must not be an empty list")
    return tuple(_scalar(item) for item in value)


def _gpu_types(value: Any) -> tuple[str, ...]:
    """A word of the name of a device, or a list of such."""
    words = value if isinstance(value, list) else [value]
    if not words or not all(isinstance(w, str) and re.fullmatch(GPU_TYPE, w) for w in words):
        raise PydanticCustomError("form", "must be a type of GPU such as H100, or a list of such")
    return tuple(words)


def _sweep(value: Any) -> str | tuple[Scalar, ...]:
    """A range "first..last" or a list of values."""
    if isinstance(value, str) and re.fullmatch(RANGE, value):
        return value
    if isinstance(value, list) and value:
        return tuple(_scalar(item) for item in value)
    raise PydanticCustomError("sweep", 'must be a range "56..64" or a list of values')


ONE = {"type": ["boolean", "integer", "number", "string"]}
MANY = {"type": "array", "items": ONE, "minItems": 1}
ScalarValue = Annotated[Scalar, PlainValidator(_scalar), WithJsonSchema(ONE)]
OneOrMore = Annotated[
    Scalar | tuple[Scalar, ...],
    PlainValidator(_one_or_more),
    WithJsonSchema({"anyOf": [ONE, MANY]}),
]
Sweep = Annotated[
    str | tuple[Scalar, ...],
    PlainValidator(_sweep),
    WithJsonSchema({"anyOf": [{"type": "string", "pattern": RANGE}, MANY]}),
]
PlainMapping = Annotated[dict[str, Any], AfterValidator(_plain)]
Text = Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
Line = Annotated[str, Field(min_length=1, max_length=200), _matching(LINE, "text on one line")]
CaseId = Annotated[
    str,
    Field(max_length=64, json_schema_extra={"pattern": KEBAB}),
    _matching(KEBAB, "words of a-z and 0-9 joined by -"),
]
Identifier = Annotated[
    str,
    Field(max_length=40, json_schema_extra={"pattern": IDENTIFIER}),
    _matching(IDENTIFIER, "of a-z, 0-9 and _, a letter first"),
]
Release = Annotated[
    str,
    Field(json_schema_extra={"pattern": RELEASE}),
    _matching(RELEASE, "a release such as 0.32.0"),
]
GPU_WORD = {"type": "string", "pattern": GPU_TYPE}
GpuTypes = Annotated[
    tuple[str, ...],
    PlainValidator(_gpu_types),
    WithJsonSchema({"anyOf": [GPU_WORD, {"type": "array", "items": GPU_WORD, "minItems": 1}]}),
]
Memory = Annotated[
    str,
    Field(json_schema_extra={"pattern": MEMORY}),
    _matching(MEMORY, "an amount such as 40 GiB"),
]
Driver = Annotated[
    str,
    Field(json_schema_extra={"pattern": DRIVER}),
    _matching(DRIVER, "a comparison such as >=570 or >=570,<590"),
]
Url = Annotated[
    str,
    Field(max_length=2000, json_schema_extra={"pattern": HTTPS}),
    _matching(HTTPS, "an https:// address"),
]
FaultClass = Annotated[
    str,
    Field(json_schema_extra={"enum": list(FAULT_CLASSES.values())}),
    _one_of(FAULT_CLASSES.values()),
]
LaneName = Annotated[str, Field(json_schema_extra={"enum": list(LANES)}), _one_of(LANES)]


def texts(values: object) -> tuple[str, ...]:
    """One value or several, as text."""
    return tuple(str(v) for v in (values if isinstance(values, tuple) else (values,)))
