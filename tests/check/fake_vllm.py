"""A stand-in for the package `vllm`, in the shape the driver needs; copied into a scratch site.

It speculates with a gate as the real engine's runner V1 has it: after a step, the longest request
of the batch, its scheduled drafts all counted as accepted, plus k must fit the draft's length; else
every request of the batch gets drafts that are never accepted. `behaviour.json` beside it says what
else it is to do.
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

HERE = Path(__file__).parent
BEHAVIOUR = json.loads((HERE / "behaviour.json").read_text())
CYCLE = BEHAVIOUR["cycle"]
NEXT = dict(zip(CYCLE, CYCLE[1:] + CYCLE[:1], strict=True))
__version__ = "0.28.0"


class SamplingParams:
    def __init__(self, max_tokens, temperature, ignore_eos, detokenize):
        assert (temperature, ignore_eos, detokenize) == (0, True, False)
        self.max_tokens = max_tokens


class Config(SimpleNamespace):
    pass


class GPUModelRunner:
    def __init__(self, k, target, draft):
        self.num_spec_tokens = k
        self.max_model_len = target
        self.effective_drafter_max_model_len = draft
        model = SimpleNamespace(modules=lambda: [SimpleNamespace()])
        self.drafter = SimpleNamespace(model=model)

    def _input_fits_in_drafter(self, metadata):
        return metadata.max_seq_len + self.num_spec_tokens <= self.effective_drafter_max_model_len


GPUModelRunner.__module__ = "vllm.v1.worker.cpu_model_runner"
if BEHAVIOUR.get("runner") != "unknown":
    # where changes look for it
    found = ModuleType("vllm.v1.worker.gpu_model_runner")
    found.GPUModelRunner = GPUModelRunner
    sys.modules[found.__name__] = found


class Engine:
    def __init__(self, k, target, draft, arguments):
        self.k = k
        self.running = {}
        self.totals = {"drafts": 0, "draft_tokens": 0, "accepted_tokens": 0}
        self.per_position = [0] * k
        draft_config = SimpleNamespace(max_model_len=draft)
        speculation = SimpleNamespace(draft_model_config=draft_config, num_speculative_tokens=k)
        self.vllm_config = SimpleNamespace(
            model_config=SimpleNamespace(max_model_len=target, enforce_eager=True, seed=0),
            speculative_config=speculation if k else None,
            parallel_config=SimpleNamespace(pipeline_parallel_size=1),
            scheduler_config=SimpleNamespace(async_scheduling=False),
            cache_config=SimpleNamespace(
                enable_prefix_caching=arguments["enable_prefix_caching"], block_size=128
            ),
        )
        self.runner = GPUModelRunner(k, target, draft)
        driver_worker = SimpleNamespace(worker=SimpleNamespace(model_runner=self.runner))
        executor = SimpleNamespace(driver_worker=driver_worker)
        self.engine_core = SimpleNamespace(engine_core=SimpleNamespace(model_executor=executor))

    def add_request(self, name, prompt, sampling):
        self.running[name] = SimpleNamespace(
            prompt=prompt["prompt_token_ids"], said=[], most=sampling.max_tokens, real=None
        )

    def has_unfinished_requests(self):
        return bool(self.running)

    def step(self):
        if BEHAVIOUR.get("step") == "raise":
            raise ValueError("unspecified launch failure")
        if BEHAVIOUR.get("step") == "exit":
            os._exit(7)
        if BEHAVIOUR.get("step") == "hang":
            hang()
        outputs = []
        for name, r in list(self.running.items()):
            length = len(r.prompt) + len(r.said)
            made = 1
            longest = length + (0 if r.real is None else self.k)
            r.fits = self.runner._input_fits_in_drafter(SimpleNamespace(max_seq_len=longest))
            if r.real is not None:
                made = 1 + self.k if r.real else 1
                if self.k:
                    self.totals["drafts"] += 1
                    self.totals["draft_tokens"] += self.k
                    self.totals["accepted_tokens"] += made - 1
                    for i in range(made - 1):
                        self.per_position[i] += 1
            for _ in range(min(made, r.most - len(r.said))):
                last = r.said[-1] if r.said else r.prompt[-1]
                r.said.append(NEXT[last] if BEHAVIOUR.get("tokens") != "wrong" else 1)
            done = len(r.said) == r.most
            out = SimpleNamespace(token_ids=list(r.said), finish_reason="length" if done else None)
            outputs.append(SimpleNamespace(request_id=name, outputs=[out]))
        fits = all(r.fits for r in self.running.values())
        for name, r in list(self.running.items()):
            r.real = r.fits if BEHAVIOUR.get("gate") == "own" else fits
            if len(r.said) == r.most:
                del self.running[name]
        return outputs


def hang():
    # out of the group and the session of the driver, as workers of an engine may be
    worker = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True
    )
    Path(BEHAVIOUR["workers"]).write_text(str(worker.pid))
    time.sleep(600)


class LLM:
    def __init__(self, **arguments):
        print("INFO [model.py:1] Using max model len", arguments["max_model_len"])
        if BEHAVIOUR.get("start") == "raise":
            raise RuntimeError("No available memory for the cache blocks.\nMore of it.")
        if BEHAVIOUR.get("start") == "hang":
            hang()
        if BEHAVIOUR.get("start") == "abort":
            os.abort()
        if BEHAVIOUR.get("start") == "scribble":
            job = Path(sys.argv[2])
            with job.with_name("observations.ndjson").open("a") as file:
                file.write(BEHAVIOUR["scribble"] + "\n")
        config = json.loads((Path(arguments["model"]) / "config.json").read_text())
        native = config["max_position_embeddings"]
        override = arguments.get("hf_overrides")
        if callable(override):
            native = override(Config(**config)).max_position_embeddings
        mended = BEHAVIOUR.get("mended_by")
        if mended == "prefix_caching" and arguments["enable_prefix_caching"]:
            native = arguments["max_model_len"]
        if mended == "gatelib":
            import gatelib

            native = arguments["max_model_len"] if gatelib.MENDED else native
        speculation = arguments.get("speculative_config")
        k = speculation["num_speculative_tokens"] if speculation else 0
        print("INFO [model.py:1] Using max model len", native)
        self.llm_engine = Engine(k, arguments["max_model_len"], native, arguments)

    def get_metrics(self):
        engine = self.llm_engine
        if not engine.k:
            return []
        found = [
            SimpleNamespace(name=f"vllm:spec_decode_num_{name}", value=float(value))
            for name, value in engine.totals.items()
        ]
        name = "vllm:spec_decode_num_accepted_tokens_per_pos"
        return [*found, SimpleNamespace(name=name, values=list(engine.per_position))]
