"""`specrepro check --depth kernel` as a shell sees it, on trees that lie on disk."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.case import load_cases
from specrepro.repro.check.builds import Builds
from specrepro.repro.check.defects import Question
from specrepro.repro.check.depth import Asked
from specrepro.repro.check.kernel.depth import KernelDepth

Run = Callable[..., "subprocess.CompletedProcess[str]"]
compilers = pytest.mark.compilers
needs_triton = pytest.mark.skipif(
    importlib.util.find_spec("triton") is None, reason="Triton is not installed"
)


def trees_module() -> Any:
    spec = importlib.util.spec_from_file_location(
        "kernel_trees", Path(__file__).parent / "kernel_trees.py"
    )
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


trees = trees_module()
CASE = "mtp-tail-overflow"
DEFECT = ("--defect", "position-restarts")


@pytest.fixture
def specrepro(tmp_path: Path) -> Run:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    environment |= {"XDG_STATE_HOME": str(tmp_path / "state"), "COLUMNS": "80"}
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    code = "import sys; from specrepro.cli import main; main()"

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, "check", *map(str, arguments), "--depth", "kernel"],
            capture_output=True,
            text=True,
            timeout=240,
            cwd=tmp_path,
            env=environment,
        )

    return run


@pytest.fixture
def planted(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str, **files: str) -> Path:
        path: Path = trees.plant(
            tmp_path / name, {getattr(trees, key): text for key, text in files.items()}
        )
        return path

    return make


@compilers
@needs_triton
def test_a_build_whose_kernel_has_the_defect_is_affected_with_finding_and_line(
    specrepro: Run, planted: Callable[..., Path]
) -> None:
    ran = specrepro(CASE, "--vllm", planted("tree", STEP=trees.step()), *DEFECT, "--json")
    assert (ran.returncode, ran.stderr) == (1, "")
    record = json.loads(ran.stdout)
    assert (record["schema"], record["depth"]) == ("specrepro/check@1", "kernel")
    [build] = record["builds"]
    assert build["verdict"] == "AFFECTED"
    [row] = [r for r in build["evidence"] if r["defect"] == "position-restarts"]
    assert (row["probe"], row["value"], row["how"]) == (
        "draft_step_kernel",
        "starts again",
        "kernel",
    )
    line = next(
        n for n, t in enumerate(trees.step().splitlines(), 1) if "out_slot_mapping_ptr +" in t
    )
    assert row["where"] == f"vllm/{trees.STEP}:{line}"
    assert [(f["kind"], f["tensor"], f["got"]) for f in row["findings"]] == [
        ("wrong_value", "out_slot_mapping", 161),
        ("wrong_value", "out_slot_mapping", 162),
    ]
    [acting] = build["exposure"]
    assert acting["settings"] == {"runner": "v1", "k": 3}


@compilers
@needs_triton
def test_builds_are_a_matrix_of_defects_and_findings_that_fits_80_columns(
    specrepro: Run, planted: Callable[..., Path]
) -> None:
    bad = planted("bad", STEP=trees.step())
    good = planted("good", STEP=trees.step(held="max_model_len + 5"))
    none = planted("none", STEP="x = 1\n")
    ran = specrepro(CASE, "--vllm", f"{bad},{good},{none}", *DEFECT, "--scan")
    assert ran.returncode == 1
    lines = ran.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    rows = [line.split() for line in lines if line.startswith("0.99.0")]
    assert [row[1] for row in rows] == ["AFFECTED", "NOT", "UNTESTABLE"]
    # the last column that is not empty is the finding's
    assert [[c for c in row if c in "×–?"][-1] for row in rows] == ["×", "–", "?"]
    assert "a  draft_step_kernel: wrong value of out_slot_mapping, in 0.99.0 at" in ran.stdout
    assert "× found   – the kernel ran without   ? not known" in ran.stdout


@compilers
@needs_triton
def test_the_page_of_one_build_shows_the_findings(
    specrepro: Run, planted: Callable[..., Path]
) -> None:
    page = specrepro(CASE, "--vllm", planted("tree", STEP=trees.step()), *DEFECT).stdout
    words = " ".join(page.split())
    assert "draft_step_kernel: starts again (kernel)" in words
    assert "wrong value of out_slot_mapping, element 0: 161 instead of -1" in words
    assert "that is block 0 of the request itself, slot 1" in words
    assert "compiled and run in the emulator" in words


@compilers
@needs_triton
def test_a_defect_that_no_kernel_answers_is_untestable_and_the_others_are_judged(
    specrepro: Run, planted: Callable[..., Path]
) -> None:
    tree = planted("tree", STEP=trees.step(held="max_model_len + 5"))
    ran = specrepro(CASE, "--vllm", tree, "--defect", "untrimmed-step", "--json")
    [build] = json.loads(ran.stdout)["builds"]
    assert (ran.returncode, build["verdict"]) == (125, "UNTESTABLE")
    assert "the source depth does" in build["reasons"][0]
    standings = {s["defect"]: s for s in build["defects"]}
    assert standings["position-restarts"]["state"] == "absent"
    assert not standings["stale-limit"]["counted"]
    assert any("no kernel answers" in note for note in build["notes"])


def test_a_case_that_asks_no_kernel_is_untestable(
    specrepro: Run, planted: Callable[..., Path]
) -> None:
    ran = specrepro("draft-length-gate", "--vllm", planted("tree", STEP="x = 1\n"), "--json")
    [build] = json.loads(ran.stdout)["builds"]
    assert (ran.returncode, build["verdict"]) == (125, "UNTESTABLE")
    assert "the source depth does" in build["reasons"][0]


def test_without_triton_a_build_is_untestable_and_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, planted: Callable[..., Path], tmp_path: Path
) -> None:
    installed = importlib.metadata.distribution

    def without(name: str) -> importlib.metadata.Distribution:
        if name == "triton":
            raise importlib.metadata.PackageNotFoundError(name)
        return installed(name)

    monkeypatch.setattr(importlib.metadata, "distribution", without)
    [case] = load_cases([CASE])
    assert case.case.check
    asked = Asked(case, case.case.check.records(), (), Question(), None, print, tmp_path / "run")
    with Builds(cache=tmp_path / "cache") as builds:
        spec = str(planted("tree", STEP=trees.step()))
        row = KernelDepth(tmp_path / "cache").answer(spec, builds, asked)
    assert row["verdict"] == "UNTESTABLE"
    assert "pip install 'specrepro[kernels,check]'" in row["reasons"]


@pytest.mark.parametrize(
    ("kernel", "words"),
    [
        ("{runs: {draft_step_kernal: masked}}", "unknown probe `draft_step_kernal`"),
        ("{runs: {draft_step_kernel: wrong}}", "draft_step_kernel answers masked, starts again"),
        ("{runs: {}}", "runs"),
        ("{code: {auto_fit: stale}}", "is missing; the key is required"),
        ("{runs: {draft_step_kernel: masked}, code: {auto_fits: stale}}", "unknown probe"),
        ("{runs: {draft_step_kernel: masked}, settings: {runner: v3}}", "runner is v1 or v2"),
    ],
)
def test_a_case_that_asks_a_kernel_wrongly_is_refused_with_its_place(
    specrepro: Run, tmp_path: Path, kernel: str, words: str
) -> None:
    path = tmp_path / "case.yaml"
    shipped = Path(load_cases([CASE])[0].path).read_text(encoding="utf-8")
    path.write_text(
        shipped.replace("- runs: {draft_step_kernel: starts again}", f"- {kernel}").replace(
            f"- {kernel}\n          settings: {{runner: v1, k: 3}}", f"- {kernel}"
        ),
        encoding="utf-8",
    )
    ran = specrepro(path, "--vllm", "0.1.0")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert words in ran.stderr
    assert "case.yaml:" in ran.stderr
