"""`emulate` in Python, and Triton files on the command line: real outputs, located findings."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from specrepro import emulate
from specrepro.repro.emulation.session import FindingsError
from specrepro.repro.errors import UsageError

pytestmark = [pytest.mark.compilers, pytest.mark.usefixtures("triton")]

KERNELS = """\
import triton
import triton.language as tl

TWO = tl.constexpr(2)

@triton.jit
def scaled(x, by):
    return x * by * TWO

@triton.jit
def add(x, y, out, n, by=0.5, B: tl.constexpr = 128):
    i = tl.program_id(0) * B + tl.arange(0, B)
    keep = i < n
    value = scaled(tl.load(x + i, mask=keep), by) + tl.load(y + i, mask=keep)
    tl.store(out + i, value, mask=keep)

@triton.autotune([triton.Config({"B": 64}, num_warps=2), triton.Config({"B": 256})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % args["B"] == 0})
@triton.jit
def copy(x, out, n, B: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    if EVEN:
        tl.store(out + i, tl.load(x + i))
    else:
        tl.store(out + i, tl.load(x + i, mask=i < n), mask=i < n)

@triton.jit
def rows(x, out, stride, n, B: tl.constexpr):
    i = tl.arange(0, B)
    row = tl.load(x + tl.program_id(0) * stride + i)
    tl.store(out + tl.program_id(0), tl.sum(row, 0))

@triton.jit
def count(out, n):
    tl.atomic_add(out, n)
"""


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    path = tmp_path_factory.mktemp("kernels") / "kernels_of_a_test.py"
    path.write_text(KERNELS)
    loader = SourceFileLoader(path.stem, str(path))
    module = ModuleType(path.stem)
    module.__file__ = str(path)
    loader.exec_module(module)
    return module


def line_of(text: str) -> int:
    return KERNELS.split("\n").index(next(s for s in KERNELS.split("\n") if text in s)) + 1


def test_outputs_are_those_of_numpy_with_defaults_keywords_and_called_functions(
    kernels: ModuleType,
) -> None:
    x, y = np.arange(1000, dtype=np.float32), np.ones(1000, np.float32)
    first, second = np.zeros(1000, np.float32), np.zeros(1000, np.float32)
    with emulate() as run:
        kernels.add[(8,)](x, y, first, 1000)
        kernels.add[lambda meta: (-(-1000 // meta["B"]), 1)](
            first, y, out=second, n=1000, by=np.float32(0.25), B=256, num_warps=8
        )
    assert np.array_equal(first, x + 1)
    assert np.array_equal(second, (x + 1) / 2 + 1)
    assert [(one.kernel, one.grid, one.threads, one.found) for one in run.launches] == [
        ("add", (8, 1, 1), 128, 0),
        ("add", (4, 1, 1), 256, 0),
    ]
    assert run.findings == []


def test_a_finding_is_raised_with_place_thread_and_element(kernels: ModuleType) -> None:
    x, out = np.ones(1000, np.float32), np.zeros(1001, np.float32)
    with pytest.raises(FindingsError) as error, emulate():
        kernels.add[(8,)](x, x, out, 1001)
    text = str(error.value)
    line = line_of("value = scaled")
    assert "read of 4 bytes at element 1000 of x float32[1000], first byte past its end at " in text
    assert f"kernels_of_a_test.py:{line} in add, by block (7, 0, 0), thread (104, 0, 0)" in text
    assert out[999] == 2.0
    assert {one.kind for one in error.value.findings} == {"out_of_bounds_read"}


def test_findings_are_collected_launch_by_launch(kernels: ModuleType) -> None:
    x, out = np.ones(100, np.int32), np.zeros(100, np.int32)
    with emulate(raise_on_finding=False) as run:
        kernels.copy[lambda meta: (-(-100 // meta["B"]),)](x, out, 100)
        kernels.copy[lambda meta: (-(-128 // meta["B"]),)](x, out, 128)
    assert [(one.threads, one.found) for one in run.launches] == [(64, 0), (64, 2)]
    assert {(f.launch, f.tensor, f.elements) for f in run.findings} == {
        (1, "x", (100, 127)),
        (1, "out", (100, 127)),
    }
    assert len(run.report().splitlines()) == 2


def test_a_pointer_may_touch_its_view_and_nothing_around_it(kernels: ModuleType) -> None:
    storage = np.arange(6 * 32, dtype=np.float32).reshape(6, 32)
    view, out = storage[1:4, :16], np.zeros(3, np.float32)
    with emulate() as run:
        kernels.rows[(3,)](view, out, 32, 16, B=16)
    assert np.array_equal(out, view.sum(1))
    with emulate(raise_on_finding=False) as run:
        kernels.rows[(4,)](view, np.zeros(4, np.float32), 32, 16, B=16)
    assert [f.elements for f in run.findings] == [(96, 111)]


def test_an_overrun_into_another_array_of_the_allocation_is_named(kernels: ModuleType) -> None:
    both = np.zeros(64, np.int32)
    with emulate(raise_on_finding=False) as run:
        kernels.copy[(1,)](both[:32], both[32:], 64)
    assert {(f.tensor, f.lands_in) for f in run.findings} == {
        ("x", "out[0]"),
        ("out", "unmapped memory"),
    }


def test_arrays_that_cannot_be_written_are_read_but_not_written(kernels: ModuleType) -> None:
    x, out = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
    x.flags.writeable = False
    with emulate():
        kernels.copy[(1,)](x, out, 64)
        assert np.array_equal(out, x)
        with pytest.raises(UsageError, match="read-only"):
            kernels.copy[(1,)](out + 1, x, 64)
    assert x[1] == 1


def test_numbers_are_specialised_as_triton_does_and_mean_the_same(kernels: ModuleType) -> None:
    out = np.zeros(1, np.int64)
    numbers = [1, 2, 16, 48, -7, 2**31, 2**40]
    with emulate():
        for number in numbers:
            kernels.count[(3,)](out, number)
        kernels.count[(0,)](out, 5)
    assert out[0] == 3 * sum(numbers)


def test_afterwards_triton_is_as_it_was(kernels: ModuleType) -> None:
    import triton
    from triton import knobs
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.jit import JITFunction

    def state() -> list[Any]:
        active = triton.runtime.driver._active
        hook = knobs.runtime.add_stages_inspection_hook
        return [active, hook, knobs.cache.dir, JITFunction.run, Autotuner.run]

    before = state()
    during = []
    with pytest.raises(FindingsError), emulate() as run:  # noqa: PT012 - what is left open
        during = state()
        kernels.copy[(2,)](np.zeros(64, np.int32), np.zeros(128, np.int32), 128)
    assert all(a is not b for a, b in zip(before, during, strict=True))
    assert state() == before
    assert len(run.launches) == 1


def test_a_list_is_no_tensor(kernels: ModuleType) -> None:
    with emulate(), pytest.raises(UsageError, match="argument out is no tensor"):
        kernels.count[(1,)](Address(), 1)


class Address:
    """Has an address and a dtype, and no memory that is known."""

    dtype = "int64"

    def data_ptr(self) -> int:
        return 4096


def test_torch_tensors_are_written_in_place_whatever_their_type(kernels: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    with emulate(raise_on_finding=False) as run:
        for dtype in (torch.float32, torch.bfloat16, torch.float16, torch.int64):
            x, out = torch.arange(100).to(dtype), torch.zeros(100, dtype=dtype)
            kernels.copy[lambda meta: (-(-100 // meta["B"]),)](x, out, 100)
            assert torch.equal(x, out)
        cache = torch.zeros(2, 64)
        kernels.copy[(2,)](cache[0], torch.zeros(128), 128)
        kernels.copy[(2,)](cache[0], cache[1], 128)
    assert {(f.launch, f.tensor, f.lands_in) for f in run.findings} == {
        (4, "x", "unmapped memory"),
        (5, "x", "out[0]"),
        (5, "out", "unmapped memory"),
    }
    with emulate(), pytest.raises(UsageError, match="lies on meta"):
        kernels.count[(1,)](torch.zeros(1, dtype=torch.int64, device="meta"), 2)


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
