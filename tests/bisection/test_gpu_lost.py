"""A GPU that goes away between trials, or in one: no build is blamed, and the search goes on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FAKE = Path(__file__).parents[1] / "watch" / "fake_nvml.c"
GPU = "gpu NVIDIA H200|GPU-5ad2f0c1-0000-1111-2222-333344445555|00000000:3B:00.0\n"

# A process of its own: the driver's library is found when it is started. The engine is a stand-in;
# which GPU there is, is asked of the (made-up) driver as ever.
SEARCH = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
from specrepro.repro.bisection.candidates import Wish
from specrepro.repro.bisection.investigation import investigate
from specrepro.repro.bisection.plan import Plan
from specrepro.repro.bisection.question import Find, Options
from specrepro.repro.bisection.trials import as_place
from specrepro.repro.case import load_cases
from specrepro.repro.check import survey
from specrepro.repro.check.apart import at_home
from specrepro.repro.check.builds import Builds
from specrepro.repro.check.depth import NOWHERE, untestable_record
from specrepro.repro.errors import UntestableError

folder, lost_at = Path(sys.argv[1]), int(sys.argv[2])

class Engine:
    name = "engine"
    looked_at = "a stand-in"
    started = 0

    def answer(self, spec, builds, asked):
        self.started += 1
        if self.started == lost_at:
            Path(os.environ["FAKE_NVML"]).write_text("driver 580.1\\n")
            why = UntestableError("another failure, at start-up: no CUDA device")
            return untestable_record(replace(NOWHERE, version=spec), why)
        row = untestable_record(replace(NOWHERE, version=spec), UntestableError(""))
        bad = spec >= "0.3.0"
        exposure = [{"defect": "dict-override", "settings": {}, "default": None, "models": []}]
        return row | {
            "verdict": "AFFECTED" if bad else "NOT AFFECTED", "exposure": exposure * bad,
            "reasons": [],
        }

[case] = load_cases(["draft-length-gate"])
with Builds(cache=folder / "cache") as builds:
    plan = Plan(
        case=case, depth=Engine(), question=survey.questions(case, ("dict-override",), {}, False),
        wish=Wish("", "0.1.0", "0.4.0"), options=Options(find=Find.FIRST_BAD, deterministic=True),
        scan=False, again="specrepro bisect", place=as_place(at_home("engine")),
    )
    record = investigate(
        plan, builds, folder / "runs", anew=False, told=lambda _: None, shown=lambda _: None
    ).record
print(json.dumps(record))
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler for the fake libnvidia-ml.so.1")
    target = tmp_path_factory.mktemp("nvml") / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(target), str(FAKE)], check=True)
    return target.parent


@pytest.mark.parametrize("lost_at", [1, 3])
def test_a_gpu_that_goes_in_a_trial_is_no_verdict_and_with_it_back_the_search_goes_on(
    lost_at: int, library: Path, engine: Any, tmp_path: Path
) -> None:
    engine.releases("ggbb")
    script = tmp_path / "nvml"
    environ = engine.environment | {
        "FAKE_NVML": str(script),
        "LD_LIBRARY_PATH": f"{library}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}",
    }

    def search(lost: int) -> dict[str, Any]:
        script.write_text(f"driver 580.1\n{GPU}")
        ran = subprocess.run(
            [sys.executable, "-c", SEARCH, str(tmp_path), str(lost)],
            env=environ, capture_output=True, text=True, timeout=120,
        )  # fmt: skip
        assert ran.returncode == 0, ran.stderr
        record: dict[str, Any] = json.loads(ran.stdout)
        return record

    stopped = search(lost_at)
    assert stopped["result"]["ending"] == "infra"
    verdicts = [row["verdict"] for row in stopped["trials"]]
    assert "untestable" not in verdicts
    assert verdicts[lost_at - 1 :] == ["infra"] * len(verdicts[lost_at - 1 :])
    reason = stopped["trials"][-1]["reasons"][0]
    assert "began on NVIDIA H200 with driver 580.1, and there is now no GPU" in reason
    record = search(0)
    assert record["run"]["id"] == stopped["run"]["id"]
    assert (record["result"]["kind"], record["result"]["build"]) == ("first_bad", "0.3.0")
