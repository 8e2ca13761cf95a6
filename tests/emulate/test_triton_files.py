"""Triton files on the command line, whole scripts, and tests with the fixture."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.compilers, pytest.mark.usefixtures("triton")]

KERNELS = (Path(__file__).parent / "triton_kernels.py").read_text(encoding="utf-8")


def line_of(text: str) -> int:
    return KERNELS.split("\n").index(next(s for s in KERNELS.split("\n") if text in s)) + 1


YAML = """
args:
  - {name: x, dtype: i32, shape: 100, fill: arange}
  - {name: out, dtype: i32, shape: 128}
  - {i32: 128}
"""


def test_a_triton_file_is_compiled_in_one_process_and_executed_in_another(folder: Any) -> None:
    folder.write("kernels.py", KERNELS)
    folder.write("ARGS.yaml", YAML)
    record = folder.json(
        "emulate", "kernels.py", "--entry", "copy", "--grid", "2", "--args", "ARGS.yaml", status=1
    )
    assert record["launch"]["block"] == [64, 1, 1]
    [finding] = record["findings"]
    assert (finding["tensor"], finding["elements"]) == ("x", [100, 127])
    line = line_of("tl.store(out + i, tl.load(x + i))")
    assert finding["source"] == {"file": "kernels.py", "line": line}
    assert record["excerpts"][f"kernels.py:{line}"][1] == [line, KERNELS.split("\n")[line - 1]]


def test_narrow_floats_views_and_constants_reach_a_triton_kernel(folder: Any) -> None:
    folder.write("kernels.py", KERNELS)
    folder.write(
        "ARGS.yaml",
        """
        args:
          - {name: x, dtype: bf16, shape: 96, fill: arange}
          - {view: x, offset: 32}
          - {name: out, dtype: f16, shape: 64}
          - {i32: 64}
          - {f32: 0.25}
          - {name: B, constexpr: 32}
        """,
    )
    command = ("emulate", "kernels.py", "--entry", "add", "--args", "ARGS.yaml", "--num-warps", "1")
    assert folder.json(*command, "--grid", "2", status=0)["findings"] == []
    folder.write("ARGS.yaml", (folder.path / "ARGS.yaml").read_text().replace("i32: 64", "i32: 65"))
    record = folder.json(*command, "--grid", "3", status=1)
    found = {(f["kind"], f["tensor"], tuple(f["elements"])) for f in record["findings"]}
    assert found == {
        ("out_of_bounds_read", "x", (96, 96)),
        ("out_of_bounds_write", "out", (64, 64)),
    }


@pytest.mark.parametrize(
    ("text", "status", "said"),
    [
        ("import os\nos._exit(0)\n", 125, "no result"),
        ("raise ValueError('no')\n", 125, "ValueError: no"),
        ("x = [0] * (1 << 40)\n", 125, "MemoryError"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n", 125, "SIGKILL"),
        ("while True: pass\n", 125, "no end within 3 s"),
        ("x = 1\n", 2, "it holds no kernel"),
        (
            "import triton, triton.language as tl\n@triton.jit\n"
            "def k(x, out, n):\n    tl.store(x, undefined)\n",
            125,
            "undefined",
        ),
    ],
)
def test_a_file_that_gives_no_kernel_is_never_clean(
    folder: Any, text: str, status: int, said: str
) -> None:
    folder.write("k.py", text)
    folder.write("ARGS.yaml", YAML)
    done = folder.command("emulate", "k.py", "--grid", "1", "--args", "ARGS.yaml", "--timeout", "3")
    assert done.returncode == status, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


SUICIDE = """
import os
import signal

import triton
import triton.language as tl


@triton.heuristics({"B": lambda args: os.kill(os.getpid(), signal.SIGKILL)})
@triton.jit
def dies(x, B: tl.constexpr):
    tl.store(x + tl.arange(0, B), 1)


if __name__ == "__main__":
    import numpy as np

    dies[(1,)](np.zeros(8, np.int32))
"""


@pytest.mark.parametrize(
    "command",
    [
        ["emulate", "dies.py", "--entry", "dies", "--grid", "1", "--args", "ARGS.yaml"],
        ["sanitize", "dies.py"],
    ],
)
def test_a_process_killed_while_it_launches_leaves_nothing_behind(
    folder: Any, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    temporary = folder.path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    folder.write("dies.py", SUICIDE)
    folder.write("ARGS.yaml", "args: [{name: x, dtype: i32, shape: 8}]")
    done = folder.command(*command)
    assert done.returncode == 125, done.stderr
    assert "SIGKILL" in done.stdout or "ended by signal 9" in done.stdout
    assert list(temporary.iterdir()) == []


def test_a_triton_file_sees_no_secret_and_writes_no_file_here(
    folder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("A_TOKEN", "secret")
    folder.write(
        "k.py",
        "import os\nopen('left', 'w').close()\nraise ValueError(os.environ.get('A_TOKEN'))\n",
    )
    folder.write("ARGS.yaml", YAML)
    before = sorted(folder.path.iterdir())
    done = folder.command("emulate", "k.py", "--grid", "1", "--args", "ARGS.yaml")
    assert "ValueError: None" in done.stdout
    assert sorted(folder.path.iterdir()) == before


def test_a_template_of_a_triton_kernel_is_read_from_its_text_alone(folder: Any) -> None:
    folder.write("k.py", KERNELS + "\nraise SystemExit(9)\n")
    done = folder.command("emulate", "k.py", "--entry", "add", "--write-args")
    assert done.returncode == 0
    names = ["x, dtype", "y, dtype", "out, dtype", "n, i32", "by, i32", "B, constexpr"]
    lines = [line for line in done.stdout.splitlines() if line.startswith("  - ")]
    assert [name in line for name, line in zip(names, lines, strict=True)] == [True] * 6


SCRIPT = """
import ast
import json
import os
import subprocess
import sys
import numpy as np
from kernels import copy
x, out = np.arange(100, dtype=np.int32), np.zeros(100, np.int32)
for _ in range(3):
    copy[(2,)](x, out, 100)
print("copied", int(out.sum()), sys.argv[1:], __name__)
if "wrong" in sys.argv:
    copy[(2,)](x, out, 128)
if "stop" in sys.argv:
    sys.exit(7)
"""


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--right"], 0, "NO FINDING · 3 launches"),
        (["wrong"], 1, "2 FINDINGS · 4 launches"),
        (["stop"], 125, "the script ended with status 7"),
        (["wrong", "stop"], 1, "2 FINDINGS · 4 launches"),
    ],
)
def test_a_script_runs_whole_and_its_launches_decide(
    folder: Any, arguments: list[str], status: int, said: str
) -> None:
    folder.write("kernels.py", KERNELS)
    folder.write("script.py", SCRIPT)
    done = folder.command("sanitize", "script.py", *arguments)
    assert done.returncode == status, done.stderr
    assert f"copied 4950 {arguments!r} __main__" in done.stdout
    assert said in done.stdout


def test_the_record_of_a_script_has_each_launch_and_finding(folder: Any) -> None:
    folder.write("kernels.py", KERNELS)
    folder.write("script.py", SCRIPT)
    done = folder.command("sanitize", "--json", "script.py", "wrong")
    record = json.loads(done.stdout)
    assert done.returncode == 1
    assert "copied 4950" in done.stderr
    assert record["schema"] == "specrepro/sanitize@1"
    assert record["script"]["status"] == 0
    assert [launch["found"] for launch in record["launches"]] == [0, 0, 0, 2]
    assert {f["launch"] for f in record["findings"]} == {3}


def test_what_a_script_made_empty_and_nobody_wrote_is_found_when_it_is_read(folder: Any) -> None:
    folder.write("kernels.py", KERNELS)
    text = """
import numpy as np
from kernels import copy
x, out = np.empty(64, np.int32), np.zeros(64, np.int32)
x[:40] = 1
copy[(1,)](x, out, 40)
copy[(1,)](x, out, 64)
"""
    folder.write("script.py", text)
    done = folder.command("sanitize", "--json", "script.py")
    record = json.loads(done.stdout)
    assert done.returncode == 1
    assert [(f["kind"], f["launch"], f["elements"]) for f in record["findings"]] == [
        ("uninitialised_read", 1, [40, 63])
    ]
    skipped = folder.command("sanitize", "--skip", "initialised", "script.py")
    assert skipped.returncode == 0, skipped.stdout


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("print('nothing')", "no Triton launch was seen"),
        ("import os\nos._exit(0)", "its journal is not whole"),
        ("1 / 0", "ZeroDivisionError"),
        ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "ended by signal 11"),
    ],
)
def test_a_script_that_shows_nothing_is_unknown(folder: Any, text: str, said: str) -> None:
    folder.write("script.py", text)
    done = folder.command("sanitize", "script.py")
    assert done.returncode == 125
    assert said in done.stdout


TESTS = """
import numpy as np
from kernels import copy

def test_right(emulated):
    out = np.zeros(64, np.int32)
    copy[(1,)](np.ones(64, np.int32), out, 64)
    assert out.sum() == 64

def test_wrong(emulated):
    copy[(2,)](np.ones(64, np.int32), np.zeros(128, np.int32), 128)

def test_fails_by_itself(emulated):
    assert not emulated.findings
    raise KeyError("own")
"""


def test_the_fixture_fails_a_test_with_located_findings(folder: Any) -> None:
    folder.write("kernels.py", KERNELS)
    folder.write("test_kernels.py", TESTS)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "specrepro.repro.pytest_plugin", "-rA"],
        cwd=folder.path,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 1
    assert "1 passed" in done.stdout
    assert "2 failed" in done.stdout
    assert "PASSED test_kernels.py::test_right" in done.stdout
    assert "read of 4 bytes at element 64 of x int32[64]" in done.stdout
    assert f"kernels.py:{line_of('tl.store(out + i, tl.load(x + i))')} in copy" in done.stdout
    assert "KeyError: 'own'" in done.stdout


def test_the_plugin_loads_nothing_before_it_is_used() -> None:
    code = "import sys, specrepro.repro.pytest_plugin; print(sorted(sys.modules))"
    out = subprocess.check_output([sys.executable, "-c", code], text=True)
    loaded = set(ast.literal_eval(out))
    assert "pytest" in loaded
    assert loaded & {"numpy", "triton", "torch", "typer", "rich", "yaml", "pydantic"} == set()
