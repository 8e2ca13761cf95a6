"""Settings in which a defect acts, and which of them a build has by default. Pure.

Some defaults a build decides itself, and by other settings: the runner by the model, asynchronous
scheduling by the runner. So a defect is exposed by default if there is a *world*, a kind of model
and a length of pipeline, in which everything that is left alone comes out as the defect needs it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from ..errors import UsageError
from ..escape import quoted
from ..scenarios.declare import nearest


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of an engine. choices: its values; () for a number, of which a defect names the
    least. probe: the one that knows its default; else `default`, None if it is up to the user."""

    doc: str
    choices: tuple[str, ...] = ()
    default: str | None = None
    probe: str | None = None


SETTINGS: Mapping[str, Setting] = {
    "model": Setting(
        "kind of model: plain attention, or with recurrent state", ("dense", "hybrid")
    ),
    "runner": Setting("model runner", ("v1", "v2"), probe="default_runner"),
    "async": Setting("asynchronous scheduling", ("on", "off"), probe="default_async"),
    "prefix_caching": Setting("prefix caching", ("on", "off"), probe="default_prefix_caching"),
    "graphs": Setting("how draft steps run: eager, or full graphs", ("eager", "full"), "full"),
    "max_model_len": Setting("given as a number, or fitted to memory", ("given", "auto"), "given"),
    "hf_overrides": Setting(
        "form of --hf-overrides; config_file: written into config.json instead",
        ("dict", "callable", "config_file"),
    ),
    "attention": Setting("attention backend", ("flashinfer", "other")),
    "k": Setting("num_speculative_tokens, at least"),
    "pp": Setting("pipeline stages, at least"),
    "requests": Setting("requests in a batch, at least"),
}
PROBES = tuple(s.probe for s in SETTINGS.values() if s.probe)
MODELS, PIPELINES = ("dense", "hybrid"), (1, 2)

Value = str | int
# a table of defaults: key → value; None where it is not known
Defaults = Mapping[str, Mapping[str, str] | None]


@dataclass(frozen=True, slots=True)
class Exposure:
    """Whether a defect that acts in some settings does so by default.

    default: None where it cannot be said. models: the kinds of model for which it does.
    """

    default: bool | None
    models: tuple[str, ...]


def refusal(name: str, value: object) -> str:
    """Why a setting cannot have this value; "" if it can."""
    if name not in SETTINGS:
        return f"unknown setting {quoted(name)}; known are {', '.join(SETTINGS)}"
    choices = SETTINGS[name].choices
    if choices and value not in choices:
        return f"{name} is {' or '.join(choices)}"
    if not choices and (type(value) is not int or value < 1):
        return f"{name} is a number from 1"
    return ""


def parse(texts: Mapping[str, str]) -> dict[str, Value]:
    """Settings from a command line; UsageError for what is none."""
    found: dict[str, Value] = {}
    for name, text in texts.items():
        number = name in SETTINGS and not SETTINGS[name].choices and text.isascii()
        value: Value = int(text) if number and text.isdigit() and len(text) < 9 else text
        if message := refusal(name, value):
            hint = None if name in SETTINGS else nearest(name, SETTINGS)
            raise UsageError(f"--with {message}", hint=hint)
        found[name] = value
    return found


def possible(needed: Mapping[str, Value], fixed: Mapping[str, Value]) -> bool:
    """Whether a defect that needs these settings can act where some are fixed."""
    return all(_meets(needed[name], fixed[name]) for name in needed.keys() & fixed.keys())


def _meets(needed: Value, given: Value) -> bool:
    if isinstance(needed, int) and isinstance(given, int):
        return given >= needed
    return needed == given


def exposure(
    needed: Mapping[str, Value], fixed: Mapping[str, Value], defaults: Defaults
) -> Exposure:
    """Whether a defect acts with `fixed` as they are and all else by default."""
    found: list[str] = []
    unknown = False
    for world in _worlds(needed, fixed):
        settings = _settled(world, fixed, defaults)
        verdicts = [
            None if settings[name] is None else _meets(value, settings[name] or "")
            for name, value in needed.items()
            if name in settings
        ]
        if all(verdicts):
            found.append(str(world["model"]))
        elif False not in verdicts:
            unknown = True
    models = tuple(dict.fromkeys(found))
    return Exposure(True if models else None if unknown else False, models)


def _worlds(
    needed: Mapping[str, Value], fixed: Mapping[str, Value]
) -> Iterator[Mapping[str, Value]]:
    for model, pipeline in product(MODELS, PIPELINES):
        world: dict[str, Value] = {"model": model, "pp": pipeline}
        if "pp" in fixed:
            world["pp"] = fixed["pp"]
            if pipeline != PIPELINES[0]:
                continue
        if possible(needed, world) and fixed.get("model", model) == model:
            yield world


def _settled(
    world: Mapping[str, Value], fixed: Mapping[str, Value], defaults: Defaults
) -> dict[str, Value | None]:
    """Every setting that has a default, in one world; None where it is not known."""
    model, stages = str(world["model"]), min(int(world["pp"]), max(PIPELINES))

    def asked(name: str, key: str) -> Value | None:
        if name in fixed:
            return fixed[name]
        table = defaults.get(str(SETTINGS[name].probe))
        if table is None:
            return None
        if len(set(table.values())) == 1:  # the key does not matter
            return next(iter(table.values()))
        return table.get(key)

    caching = asked("prefix_caching", model)
    runner = asked("runner", f"{model} pp{stages}")
    aligned = " align" if model == "hybrid" and caching == "on" else ""
    known = runner is not None and (caching is not None or model == "dense")
    scheduling = asked("async", f"{runner} pp{stages}{aligned}" if known else "")
    return {
        "prefix_caching": caching,
        "runner": runner,
        "async": scheduling,
        **{n: fixed.get(n, s.default) for n, s in SETTINGS.items() if s.default},
    }
