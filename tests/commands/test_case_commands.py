"""`specrepro list | show | schema` and how commands end, as a shell sees them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from specrepro.repro.case import shipped_cases

START = "from specrepro.cli import app, main\n"
CLEAN = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}


def run(
    *arguments: str, code: str = "", env: dict[str, str] | None = None, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", f"{START}{code}\nmain()", *arguments],
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=CLEAN | (env or {}),
        cwd=cwd,
        timeout=60,
        check=False,
    )


def refused(*arguments: str, **more) -> str:
    """The stderr of a command that is refused: status 2, nothing on stdout, no traceback."""
    done = run(*arguments, **more)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    return done.stderr


def test_list_names_every_shipped_case() -> None:
    done = run("list")
    assert (done.returncode, done.stderr) == (0, "")
    for path in shipped_cases():
        assert path.stem in done.stdout
    assert "vllm#40756" in done.stdout
    assert "contested" in done.stdout


def test_list_as_json_has_what_the_table_has() -> None:
    done = run("list", "--json")
    listed = json.loads(done.stdout)
    assert listed["schema"] == "specrepro/list@1"
    assert [case["id"] for case in listed["cases"]] == [path.stem for path in shipped_cases()]
    tail = next(case for case in listed["cases"] if case["id"] == "mtp-tail-overflow")
    assert tail["cause"] == "contested"
    assert {"faulty", "fixed"} <= set(tail["variants"])
    assert {"reference", "emulator"} <= set(tail["lanes"])


def test_list_quietly_prints_ids_only() -> None:
    assert run("list", "-q").stdout.split("\n") == [*(p.stem for p in shipped_cases()), ""]


def test_show_gives_parameters_variants_and_expectations() -> None:
    done = run("show", "mtp-tail-overflow", "-v")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert any(line.startswith("num_speculative_tokens") and " 3 " in line for line in lines)
    assert any(line.startswith("faulty: admit one_token") for line in lines)
    assert any(line.startswith("fixed: clean") for line in lines)
    assert "out_of_bounds_write of key_cache by kv_write" in done.stdout
    assert lines[-1].startswith("sha256  ")


def test_show_as_json_holds_the_case_and_what_its_scenario_declares() -> None:
    shown = json.loads(run("show", "mtp-tail-overflow", "--json").stdout)
    assert shown["case"]["class"] == "mtp-tail-overflow"
    assert set(shown["point"]) == set(shown["parameters"])
    assert shown["parameters"]["num_speculative_tokens"]["type"] == "int"
    assert shown["settings"]["admit"]["choices"] == ["one_token", "all_drafts"]


def test_schema_prints_a_json_schema() -> None:
    schema = json.loads(run("schema").stdout)
    assert schema["$schema"].startswith("https://json-schema.org/")
    assert "sweep" in schema["properties"]


@pytest.fixture
def shipped() -> str:
    (path,) = (path for path in shipped_cases() if path.stem == "mtp-tail-overflow")
    return path.read_text("utf-8")


def test_an_invalid_case_is_explained_on_stderr(tmp_path, shipped) -> None:
    (tmp_path / "bad.yaml").write_text(shipped.replace("cause:", "cuase:"), "utf-8")
    line = 1 + shipped[: shipped.index("cause:")].count("\n")
    error, hint, end = refused("show", "bad.yaml", cwd=tmp_path).split("\n")
    assert error.startswith(f"error: bad.yaml:{line}:1: cuase: unknown key; allowed are schema, ")
    assert (hint, end) == ("hint: did you mean `cause`?", "")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "error: bad.yaml:1:1: is empty"),
        (b"a: \xff", "error: bad.yaml:1:4: byte 0xff is not UTF-8"),
        (b"a: &a [*a]", "error: bad.yaml:1:4: a: anchors (&a) are not allowed"),
        (b"a: 1\na: 2", "error: bad.yaml:2:1: a: the key stands here for a second time"),
        (b"a: !!python/name:os.system ''", "error: bad.yaml:1:4: a: tags"),
        (b'"\\e[2J": "\\e]0;owned\\a"', "error: bad.yaml:1:1: \\x1b[2J: unknown key"),
    ],
)
def test_hostile_files_are_refused(tmp_path, content, words) -> None:
    (tmp_path / "bad.yaml").write_bytes(content)
    stderr = refused("show", "bad.yaml", cwd=tmp_path)
    assert words in stderr
    assert "\x1b" not in stderr
    assert len(stderr.splitlines()) <= 2


def test_a_folder_without_cases_and_an_unknown_id_are_refused(tmp_path) -> None:
    assert "a folder without cases" in refused("show", ".", cwd=tmp_path)
    stderr = refused("show", "mtp-tail-overflows", cwd=tmp_path)
    assert "hint: did you mean `mtp-tail-overflow`?" in stderr


def test_a_folder_with_several_cases_is_too_much_for_show() -> None:
    folder = str(shipped_cases()[0].parent)
    assert "holds several cases" in refused("show", folder)


@pytest.mark.parametrize("arguments", [(), ("nope",), ("show",), ("list", "--nope")])
def test_usage_errors_leave_stdout_empty(arguments) -> None:
    assert "Usage: specrepro" in refused(*arguments)


def test_version_imports_none_of_the_heavy_modules() -> None:
    code = (
        "import atexit, sys\n"
        "heavy = ('numpy', 'pydantic', 'yaml', 'triton', 'torch')\n"
        "atexit.register(lambda: print([m for m in heavy if m in sys.modules], file=sys.stderr))"
    )
    done = run("--version", code=code)
    assert done.returncode == 0
    assert done.stdout.startswith("specrepro 0.")
    assert done.stderr == "[]\n"
    assert run("list", "-q", code=code).stderr != "[]\n"  # the probe sees what is imported


def test_list_needs_no_numpy() -> None:
    code = "import sys\nsys.modules['numpy'] = None  # importing it now fails"
    assert run("list", "-q", code=code).returncode == 0


def test_colour_is_asked_for_or_left_out() -> None:
    assert "\x1b[" not in run("list").stdout
    assert "\x1b[" in run("--color", "always", "list").stdout
    assert "\x1b[" in run("--color", "always", "list", env={"NO_COLOR": "1"}).stdout
    assert "\x1b[" in run("list", env={"FORCE_COLOR": "1"}).stdout
    assert "\x1b[" not in run("list", env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stdout
    assert "\x1b[" not in run("--color", "never", "list", env={"FORCE_COLOR": "1"}).stdout


@pytest.mark.parametrize("columns", [40, 80])
def test_output_keeps_to_the_width_of_the_terminal(columns) -> None:
    for command in (("list",), ("show", "mtp-tail-overflow")):
        lines = run(*command, env={"COLUMNS": str(columns)}).stdout.splitlines()
        assert max(map(len, lines)) <= columns


def test_an_encoding_without_the_character_does_not_end_the_command() -> None:
    done = run("show", "mtp-tail-overflow", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 0
    assert "cause contested" in done.stdout


def failing(statement: str, **more) -> subprocess.CompletedProcess[str]:
    """A command of our command line that ends by `statement`."""
    return run("crash", code=f"@app.command()\ndef crash():\n    {statement}\n", **more)


@pytest.mark.parametrize(
    ("statement", "status"),
    [
        ("raise KeyboardInterrupt", 130),
        ("raise EOFError('unforeseen')", 3),
        ("raise OSError('unforeseen')", 3),
        ("raise RuntimeError('unforeseen')", 3),
        ("raise SystemExit(125)", 125),
        ("raise SystemExit", 0),
        ("raise SystemExit('a sentence is no status')", 3),
        ("import typer; raise typer.Exit(125)", 125),
        ("from specrepro.repro.errors import UsageError; raise UsageError('no')", 2),
        ("from specrepro.repro.errors import LaneError; raise LaneError('no')", 125),
    ],
)
def test_how_a_command_ends_decides_its_status(statement, status, tmp_path) -> None:
    done = failing(statement, env={"XDG_STATE_HOME": str(tmp_path)})
    assert (done.returncode, done.stdout) == (status, "")
    assert "Traceback" not in done.stderr


def test_an_internal_error_leaves_a_log_and_says_where(tmp_path) -> None:
    done = failing("raise RuntimeError('a\\x1b[2Jb')", env={"XDG_STATE_HOME": str(tmp_path)})
    (log,) = tmp_path.rglob("*.md")
    assert done.stderr == (
        f"error: internal error: RuntimeError: a\\x1b[2Jb\nhint: the log is in {log}\n"
    )
    text = log.read_text("utf-8")
    assert "RuntimeError: a" in text
    assert "arguments: ['crash']" in text


def test_a_log_that_fits_nowhere_else_goes_to_the_temporary_folder(tmp_path) -> None:
    (tmp_path / "file").touch()
    env = {"XDG_STATE_HOME": str(tmp_path / "file"), "TMPDIR": str(tmp_path)}
    done = failing("raise RuntimeError('x')", env=env)
    (log,) = tmp_path.rglob("*.md")
    assert done.returncode == 3
    assert str(log) in done.stderr


def test_a_reader_that_leaves_ends_the_command_without_a_word() -> None:
    flood = "@app.command()\ndef flood():\n    for _ in range(100000): print('x' * 99)\n"
    with subprocess.Popen(
        [sys.executable, "-c", f"{START}{flood}main()", "flood"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=CLEAN,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 141
