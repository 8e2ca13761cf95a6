"""`specrepro run` where there is a GPU: its driver, NVML and compute-sanitizer are made up."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
GPU = "gpu NVIDIA H200|GPU-5ad2f0c1-0000-1111-2222-333344445555|00000000:3B:00.0"
CODE = "import sys; sys.executable = sys.argv.pop(1); from specrepro.cli import main; main()"


@dataclass
class Box:
    """A machine, and specrepro run on it."""

    folder: Path
    library: Path
    nvml: list[str] = field(default_factory=lambda: [GPU])
    tool: dict[str, Any] = field(default_factory=lambda: {"found": ["seen"]})
    more: dict[str, str] = field(default_factory=dict)
    compilers: bool = False
    torch: bool = False  # one made up over the same driver, which Triton launches with
    lost: bool = False  # the GPU is gone once a trial has started
    first: str = ""  # what the shell does where the first trial is started

    def run(self, *words: str) -> dict[str, Any]:
        self.interpreter()
        script = self.folder / "nvml"
        script.write_text("\n".join(self.nvml) + "\n")
        (self.folder / "tool.json").write_text(json.dumps(self.tool))
        environ = os.environ | {
            "FAKE_NVML": str(script),
            "LD_LIBRARY_PATH": str(self.folder / "lib"),
            "PATH": f"{self.folder / 'bin'}:{os.environ['PATH']}",
            "NO_COLOR": "1",
            "TMPDIR": str(self.folder),  # where the locks of GPUs are
            **self.more,
        }
        python = self.folder / "python"
        command = [sys.executable, "-c", CODE, str(python), "run", *words]
        command += ["--json", "--runs", str(self.folder / "runs")]
        done = subprocess.run(
            command, env=environ, capture_output=True, text=True, timeout=300, check=False
        )
        assert done.returncode in (0, 1, 125), done.stderr
        record: dict[str, Any] = json.loads(done.stdout)
        self.page = done.stderr
        return record

    def interpreter(self) -> None:
        """The Python of the children: its driver is made up, its compilers may be missing."""
        paths = os.environ.get("PYTHONPATH", "")
        without = "" if self.compilers else "export NO_COMPILERS=1\n"
        if self.torch:
            without += "export MADE_UP_TORCH=1\n"
            without += f'export LD_LIBRARY_PATH="{self.library.parent}:$LD_LIBRARY_PATH"\n'
        without += f': > "{self.folder / "nvml"}"\n' if self.lost else ""
        if self.first:
            once = self.folder / "once"
            without += f'if mkdir "{once}" 2> "{once}.taken"; then\n{self.first}\nfi\n'
        python = self.folder / "python"
        wrapper = HERE / "python_with_driver.py"
        python.write_text(
            f'#!/bin/sh\nexport PYTHONPATH="{paths}"\n{without}'
            f'exec "{sys.executable}" "{wrapper}" "{self.library}" "$@"\n'
        )
        python.chmod(0o755)

    def trials(self, record: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
        (case,) = record["cases"]
        return {(t["variant"], t["lane"]): t for t in case["trials"] if t["point"] == case["named"]}


@pytest.fixture
def box(tmp_path: Path, library: Path) -> Box:
    compiler = shutil.which("cc") or shutil.which("gcc") or "clang"
    (tmp_path / "lib").mkdir()
    (tmp_path / "bin").mkdir()
    nvml = HERE.parent / "watch" / "fake_nvml.c"
    target = tmp_path / "lib" / "libnvidia-ml.so.1"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", str(target), str(nvml)], check=True, timeout=60
    )
    tool = tmp_path / "bin" / "compute-sanitizer"
    fake = HERE.parent / "sanitizer" / "fake_tool.py"
    tool.write_text(
        f'#!/bin/sh\nFAKE_SANITIZER_FILE="{tmp_path / "tool.json"}"\nexport FAKE_SANITIZER_FILE\n'
        f'exec "{sys.executable}" "{fake}" "$@"\n'
    )
    tool.chmod(0o755)
    return Box(tmp_path, library)


# at another point than the file's own its other points are left out
CASE = ("mtp-tail-overflow", "--variant", "faulty", "--variant", "fixed", "--set", "seq_len=63")


def test_every_lane_shows_the_fault_and_memcheck_names_its_elements(box: Box) -> None:
    record = box.run(*CASE)
    (case,) = record["cases"]
    assert case["verdict"] == "REPRODUCED", case["reasons"]
    trials = box.trials(record)
    statuses = {key: trial["status"] for key, trial in trials.items()}
    for lane in ("reference", "emulator", "plain", "blocking", "memcheck"):
        assert (statuses["faulty", lane], statuses["fixed", lane]) == ("fault", "clean"), lane
    by_lane = {
        lane: {
            (f["kind"], f["launch"], f["op"], f["tensor"], tuple(f["elements"]))
            for f in trials["faulty", lane]["findings"]
            if f["kind"].startswith("out_of_bounds")
        }
        for lane in ("emulator", "memcheck")
    }
    assert by_lane["memcheck"]
    assert by_lane["memcheck"] <= by_lane["emulator"]
    assert trials["faulty", "memcheck"]["agrees_with_reference"]
    assert trials["faulty", "plain"]["findings"] == []
    said = [e["detail"] for e in trials["faulty", "plain"]["evidence"] if e["source"] == "CUDA"]
    assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in said[0]
    assert all(trial["as_expected"] for trial in trials.values())


@pytest.mark.compilers
def test_with_compilers_kernels_are_machine_code_of_the_device(box: Box) -> None:
    box.compilers = True
    record = box.run(*CASE, "--lane", "plain")
    assert box.trials(record)["faulty", "plain"]["status"] == "fault"
    kept = [path.name.split("-")[:2] for path in (box.folder / "runs").rglob("*.cubin")]
    assert ["kv_write", "sm_90"] in kept


def test_what_the_tool_cannot_vouch_for_is_unknown(box: Box) -> None:
    box.tool = {"found": ["seen"], "ending": "silent"}
    record = box.run(*CASE, "--lane", "reference", "--lane", "memcheck")
    statuses = {key: trial["status"] for key, trial in box.trials(record).items()}
    assert (statuses["faulty", "memcheck"], statuses["fixed", "memcheck"]) == ("unknown", "unknown")
    assert record["cases"][0]["verdict"] == "INCONCLUSIVE"


def test_without_the_tool_its_lane_alone_says_why(box: Box) -> None:
    (box.folder / "bin" / "compute-sanitizer").unlink()
    box.more = {"PATH": str(box.folder / "bin")}
    record = box.run(*CASE, "--lane", "plain", "--lane", "memcheck")
    trials = box.trials(record)
    assert trials["faulty", "plain"]["status"] == "fault"
    assert trials["faulty", "memcheck"]["status"] == "skipped"
    assert trials["faulty", "memcheck"]["reason"].startswith("no compute-sanitizer on PATH")


def test_a_core_dump_names_the_kernel_and_is_kept_only_if_asked(box: Box) -> None:
    words = ("mtp-tail-overflow", "--variant", "faulty", "--set", "seq_len=63")
    words += ("--lane", "reference", "--lane", "coredump")
    trial = box.trials(box.run(*words))["faulty", "coredump"]
    assert trial["status"] == "fault", trial
    said = [e["detail"] for e in trial["evidence"] if e["source"] == "core dump"]
    assert "CUDBG_EXCEPTION_WARP_ILLEGAL_ADDRESS" in said[0]
    assert "kernel kv_write" in said[0]
    assert not list((box.folder / "runs").rglob("gpu.core.*"))
    box.run(*words, "--keep")
    kept = [path.parent.name for path in (box.folder / "runs").rglob("gpu.core.*")]
    assert kept == ["000-faulty"]


def test_a_gpu_that_is_not_there_is_said_in_one_line(box: Box) -> None:
    record = box.run(*CASE, "--lane", "plain", "--device", "3")
    reasons = {t["reason"] for t in box.trials(record).values()}
    assert reasons == {"there is no GPU 3; the driver shows 1, counted from 0"}


def test_a_gpu_that_is_not_well_afterwards_ends_the_suite_and_keeps_what_was_seen(box: Box) -> None:
    box.lost = True
    trials = box.trials(box.run(*CASE, "--lane", "plain", "--lane", "blocking"))
    assert trials["faulty", "plain"]["status"] == "fault"
    stopped = [trials["fixed", "plain"], trials["faulty", "blocking"], trials["fixed", "blocking"]]
    assert {trial["status"] for trial in stopped} == {"skipped"}
    assert all("does not show GPU 0 any more" in trial["reason"] for trial in stopped)


HEADERS = Path(sysconfig.get_paths()["include"], "Python.h")
needs_headers = pytest.mark.skipif(
    not HEADERS.is_file(), reason="Triton builds its launcher with Python's headers"
)
STALE = ("stale-draft-metadata", "--variant", "faulty", "--variant", "rebuild_in_place")
STALE += ("--set", "new_tokens=10")


def cuda(trial: dict[str, Any]) -> str:
    """What the process of a trial said of its launches."""
    return next(e["detail"] for e in trial["evidence"] if e["source"] == "CUDA")


def test_a_captured_graph_is_replayed_by_the_driver_and_left_out_under_the_tool(box: Box) -> None:
    lanes = ("--lane", "reference", "--lane", "plain", "--lane", "memcheck")
    record = box.run(*STALE, *lanes)
    trials = box.trials(record)
    for variant in ("faulty", "rebuild_in_place"):
        plain, left = trials[variant, "plain"], trials[variant, "memcheck"]
        assert plain["as_expected"], plain
        assert "1 graphs captured by the driver, replayed" in cuda(plain)
        assert "torch is not installed" not in cuda(left)
        assert left["status"] == "skipped"
        assert left["reason"].endswith("use lane coredump")
    (case,) = record["cases"]
    assert case["verdict"] == "REPRODUCED", case["reasons"]
    assert any("cannot be seen by compute-sanitizer" in one for one in case["unobserved"])


@pytest.mark.compilers
@needs_headers
def test_with_torch_triton_launches_itself_and_torch_captures(box: Box) -> None:
    box.compilers = box.torch = True
    record = box.run(*STALE, "--lane", "reference", "--lane", "plain")
    trials = box.trials(record)
    for variant in ("faulty", "rebuild_in_place"):
        plain = trials[variant, "plain"]
        assert plain["as_expected"], plain
        assert "by Triton 3" in cuda(plain)
        assert "on tensors of torch 2.13.0" in cuda(plain)
        assert "captured by torch.cuda.graph" in cuda(plain)
    names = {path.stem for path in (box.folder / "runs").rglob("kernels/triton/*/*.cubin")}
    assert "paged_attention" in names


@pytest.mark.compilers
@needs_headers
def test_a_fault_of_the_device_behind_tritons_own_launch_is_the_drivers_error(box: Box) -> None:
    box.compilers = box.torch = True
    trials = box.trials(box.run(*CASE, "--lane", "plain", "--lane", "blocking"))
    for lane in ("plain", "blocking"):
        trial = trials["faulty", lane]
        assert trial["status"] == "fault", trial
        assert "CUDA_ERROR_ILLEGAL_ADDRESS (700)" in cuda(trial)
        assert "Triton kernels launched by Triton" in cuda(trial)
        assert trials["fixed", lane]["status"] == "clean"


@pytest.mark.compilers
def test_where_triton_cannot_build_its_launcher_the_driver_launches_and_it_is_said(
    box: Box,
) -> None:
    box.compilers = box.torch = True
    box.more = {"PATH": f"{box.folder / 'bin'}"}  # no C compiler
    trials = box.trials(box.run(*CASE, "--lane", "plain"))
    assert trials["faulty", "plain"]["status"] == "fault"
    assert "launched by the driver (Triton cannot build its launcher" in cuda(
        trials["faulty", "plain"]
    )


def test_neighbours_lie_in_the_order_in_which_they_were_made_and_the_damage_shows(box: Box) -> None:
    words = ("mtp-tail-overflow", "--variant", "faulty", "--set", "placement=neighbour")
    record = box.run(*words, "--lane", "reference", "--lane", "plain")
    trial = box.trials(record)["faulty", "plain"]
    assert trial["as_expected"], trial
    assert "acceptance_loss" in {finding["kind"] for finding in trial["findings"]}
    assert "no call of the driver reported an error" in cuda(trial)
    (journal,) = (box.folder / "runs").rglob("plain/*/journal.ndjson")
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    places = [(line["address"], *line["reach"]) for line in lines if "tensor" in line]
    assert len(places) > 20
    assert all(address % 512 == 0 and address == first for address, first, _ in places)
    assert all(a[2] + 1 == b[0] for a, b in pairwise(places))


SECOND = GPU.replace("5ad2f0c1", "77770000").replace("3B", "5E")


def test_several_gpus_are_used_and_named_in_the_record(box: Box) -> None:
    box.nvml = [GPU, SECOND]
    record = box.run(*CASE, "--lane", "plain", "--lane", "blocking", "--jobs", "2")
    trials = box.trials(record)
    assert {t["status"] for (variant, _), t in trials.items() if variant == "faulty"} == {"fault"}
    assert {t["status"] for (variant, _), t in trials.items() if variant == "fixed"} == {"clean"}
    assert sum(place["trials"] for place in record["places"]) == 4
    used = {gpu for place in record["places"] for gpu in place["gpus"]}
    assert used == {line.split("|")[1] for line in box.nvml}


def test_a_trial_whose_gpu_was_lost_is_played_on_another_and_the_lost_one_is_named(
    box: Box,
) -> None:
    box.nvml = [GPU, SECOND]
    index = 'case "$CUDA_VISIBLE_DEVICES" in GPU-5*) lost=0 ;; *) lost=1 ;; esac'
    box.first = f'{index}\necho "lost $lost" >> "{box.folder / "nvml"}"\nkill -KILL $$'
    record = box.run(*CASE, "--lane", "plain", "--jobs", "2")
    trials = box.trials(record)
    assert trials["faulty", "plain"]["status"] == "fault"
    assert trials["fixed", "plain"]["status"] == "clean"
    assert sum(place["trials"] for place in record["places"]) in (0, 2)  # 0: all on one GPU
    (avoided,) = record["avoided"]
    assert avoided["place"] in {f"here/{line.split('|')[1]}" for line in box.nvml}
    assert "does not show GPU" in avoided["reason"]


def test_what_a_case_requires_of_a_gpu_is_met_or_named(box: Box) -> None:
    from specrepro.repro.case import shipped

    text = (Path(shipped.__file__).parents[2] / "cases" / "mtp-tail-overflow.yaml").read_text()
    for requires, reason in (
        ("{gpu: [A100, H100]}", "GPU 0 needs A100 or H100, is NVIDIA H200"),
        ('{gpu: H200, driver: ">=9999"}', "GPU 0 needs driver >=9999"),
    ):
        case = box.folder / "mine.yaml"
        case.write_text(text.replace("variants:", f"requires: {requires}\nvariants:", 1))
        words = (str(case), *CASE[1:], "--lane", "plain", "--lane", "reference")
        trials = box.trials(box.run(*words))
        assert trials["faulty", "plain"]["status"] == "skipped"
        assert trials["faulty", "plain"]["reason"].startswith(reason)
        assert trials["faulty", "reference"]["status"] == "fault"
