"""`specrepro check` as a shell sees it, on builds that lie on disk: no network is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., "subprocess.CompletedProcess[str]"]

FILES = {
    "_version.py": "__version__ = '0.99.0'",
    "envs.py": """
        VLLM_USE_V2_MODEL_RUNNER: bool = False
        environment_variables = {'VLLM_USE_V2_MODEL_RUNNER': 0}
    """,
    "config/speculative.py": """
        class SpeculativeConfig:
            def compose_draft_hf_overrides(overrides):
                return overrides if callable(overrides) else lambda config: config

            def _maybe_override_draft_max_model_len(own, draft, target):
                return min(draft, target)
    """,
    "config/scheduler.py": """
        class SchedulerConfig:
            async_scheduling: bool = False
    """,
    "v1/worker/gpu_model_runner.py": """
        class GPUModelRunner:
            def _input_fits_in_drafter(self, metadata):
                return metadata.max_seq_len + self.num_spec_tokens <= (
                    self.effective_drafter_max_model_len)

            def propose(self, metadata):
                if not self._input_fits_in_drafter(metadata):
                    self._draft_token_ids = torch.zeros(1).expand(2, 3)
    """,
}


@pytest.fixture
def specrepro(tmp_path: Path) -> Run:
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PIP_", "UV_"))}
    environment |= {"XDG_STATE_HOME": str(tmp_path / "state"), "COLUMNS": "100"}
    code = "import sys; from specrepro.cli import main; main()"

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, "check", *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=tmp_path,
            env=environment | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
        )

    return run


@pytest.fixture
def tree(tmp_path: Path) -> Callable[..., Path]:
    def make(name: str = "tree", **changed: str) -> Path:
        for file, text in (FILES | {k.replace("__", "/"): v for k, v in changed.items()}).items():
            path = tmp_path / name / "vllm" / (file if file.endswith(".py") else f"{file}.py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        return tmp_path / name

    return make


def builds(ran: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    record = json.loads(ran.stdout)
    assert record["schema"] == "specrepro/check@1"
    found: list[dict[str, Any]] = record["builds"]
    return found


def test_a_build_with_the_defect_is_affected_with_value_and_place(
    specrepro: Run, tree: Callable[..., Path]
) -> None:
    ran = specrepro("draft-length-gate", "--vllm", tree(), "--json")
    assert (ran.returncode, ran.stderr) == (1, "")
    [build] = builds(ran)
    assert (build["verdict"], build["version"]) == ("AFFECTED", "0.99.0")
    lost = next(row for row in build["evidence"] if row["probe"] == "dict_override")
    assert (lost["defect"], lost["value"], lost["how"]) == ("dict-override", "lost", "ran")
    assert lost["where"] == "vllm/config/speculative.py:3"
    assert lost["excerpt"][1] == [3, "    def compose_draft_hf_overrides(overrides):"]
    acting = [(a["settings"]["async"], a["default"], a["models"]) for a in build["exposure"]]
    assert acting == [("on", False, []), ("off", True, ["dense", "hybrid"])]


@pytest.mark.parametrize("depth", ["source", pytest.param("kernel", marks=pytest.mark.compilers)])
def test_the_vllm_of_another_python_is_looked_at(
    depth: str, specrepro: Run, tree: Callable[..., Path], tmp_path: Path
) -> None:
    python = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", python], check=True)
    [packages] = python.glob("lib/python3*/site-packages")
    tree(str(packages.relative_to(tmp_path)))
    (packages / "vllm-0.99.0.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: vllm\nVersion: 0.99.0\n"
    (packages / "vllm-0.99.0.dist-info/METADATA").write_text(metadata)
    case = {"source": "draft-length-gate", "kernel": "mtp-tail-overflow"}[depth]
    ran = specrepro(case, "--depth", depth, "--python", python, "--json")
    [build] = builds(ran)
    assert (build["version"], build["origin"]) == ("0.99.0", "installed")
    assert build["file"] == str(packages / "vllm")
    # the tree has no kernels
    wanted = {"source": (1, "AFFECTED"), "kernel": (125, "UNTESTABLE")}
    assert (ran.returncode, build["verdict"]) == wanted[depth]


def test_a_mended_build_is_not_affected(specrepro: Run, tree: Callable[..., Path]) -> None:
    mended = FILES["config/speculative.py"].replace(
        "lambda config: config", "lambda config: (config.__dict__.update(overrides), config)[1]"
    )
    ran = specrepro("draft-length-gate", "--vllm", tree(config__speculative=mended), "--json")
    assert (ran.returncode, builds(ran)[0]["verdict"]) == (0, "NOT AFFECTED")


def test_a_build_whose_code_is_not_found_is_untestable(
    specrepro: Run, tree: Callable[..., Path]
) -> None:
    ran = specrepro("draft-length-gate", "--vllm", tree(config__speculative=""), "--json")
    assert (ran.returncode, builds(ran)[0]["verdict"]) == (125, "UNTESTABLE")
    assert any("callable_override" in reason for reason in builds(ran)[0]["reasons"])


def test_questions_narrow_the_verdict(specrepro: Run, tree: Callable[..., Path]) -> None:
    vllm = ("draft-length-gate", "--vllm", tree())
    assert specrepro(*vllm, "--defect", "callable-override").returncode == 0
    assert specrepro(*vllm, "--defect", "dict-override", "--with", "runner=v2").returncode == 0
    assert specrepro(*vllm, "--default-only").returncode == 1
    assert specrepro(*vllm, "--default-only", "--with", "async=on").returncode == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--defect", "dict-overide"), "dict-override"),
        (("--with", "runner=v3"), "runner is v1 or v2"),
        (("--with", "runner"), "NAME=VALUE"),
        (("--depth", "deep"), "unknown depth"),
        (("--controls",), "--depth engine"),
        (("--depth", "engine", "--python", "python3"), "both say which build"),
        (("--depth", "engine", "--default-only"), "cannot tell what a build does by default"),
    ],
)
def test_a_question_that_cannot_be_understood_ends_with_2_or_stops_git_bisect(
    arguments: tuple[str, ...], words: str, specrepro: Run, tree: Callable[..., Path]
) -> None:
    ran = specrepro("draft-length-gate", "--vllm", tree(), *arguments)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert words in ran.stderr
    bisecting = specrepro("draft-length-gate", "--vllm", tree(), *arguments, "--git-bisect")
    assert bisecting.returncode == 128


def test_git_bisect_keeps_the_statuses_it_understands(
    specrepro: Run, tree: Callable[..., Path]
) -> None:
    vllm = ("draft-length-gate", "--git-bisect", "--vllm")
    assert specrepro(*vllm, tree()).returncode == 1
    assert specrepro(*vllm, tree("other", config__speculative="")).returncode == 125


def test_of_several_builds_one_that_is_affected_decides(
    specrepro: Run, tree: Callable[..., Path]
) -> None:
    good = tree("good", v1__worker__gpu_model_runner=FILES["v1/worker/gpu_model_runner.py"].replace(
        "self._draft_token_ids = torch.zeros(1).expand(2, 3)", "pass"))  # fmt: skip
    ran = specrepro("draft-length-gate", "--vllm", f"{good},{tree('bad')}")
    assert ran.returncode == 1
    assert [line.split()[1] for line in ran.stdout.splitlines() if line.startswith("0.99.0")] == [
        "NOT",
        "AFFECTED",
    ]


def test_the_run_is_stored_with_the_record_that_was_printed(
    specrepro: Run, tree: Callable[..., Path], tmp_path: Path
) -> None:
    ran = specrepro("draft-length-gate", "--vllm", tree(), "--json", "--runs", tmp_path / "runs")
    record = json.loads(ran.stdout)
    stored = json.loads((tmp_path / "runs" / "latest" / "run.json").read_text())
    assert stored == record
    assert stored["run"]["command"] == "check"


def test_the_page_shows_value_place_and_excerpt(specrepro: Run, tree: Callable[..., Path]) -> None:
    page = specrepro("draft-length-gate", "--vllm", tree()).stdout
    assert "vllm 0.99.0   AFFECTED" in page
    assert "dict_override: lost (ran)  vllm/config/speculative.py:3" in page
    assert "▶     3 │     def compose_draft_hf_overrides(overrides):" in page
    assert "isolation" in page
    quiet = specrepro("draft-length-gate", "--vllm", tree(), "--quiet").stdout
    assert quiet == "draft-length-gate   vllm 0.99.0   AFFECTED\n"
