"""A build that means harm: what its code can reach when a probe executes it."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from specrepro.repro.check.probes import load
from specrepro.repro.check.sandbox import Session, execute
from specrepro.repro.check.source import Reading, reading
from specrepro.repro.errors import UntestableError

FILE = "vllm/config/speculative.py"
LAYERS = ("network namespace", "no new privileges", "landlock", "seccomp")


def build(body: str) -> dict[str, bytes]:
    """A build whose draft length is found by the given statements."""
    text = textwrap.indent(textwrap.dedent(body), " " * 8)
    method = "def _maybe_override_draft_max_model_len(own, draft, target):"
    return {FILE: f"class SpeculativeConfig:\n    {method}\n{text}\n".encode()}


def ask(body: str, seconds: float = 30) -> tuple[Reading, Session]:
    files = build(body)
    session = execute(files, ["draft_length"], seconds=seconds)
    return reading(load("draft_length"), session, files), session


def needs(session: Session, *layers: str) -> None:
    if not any(layer in session.holds for layer in layers):
        pytest.skip(f"this system does not offer {' or '.join(layers)}: {session.fails}")


def test_a_harmless_build_is_answered() -> None:
    said, session = ask("return min(draft, target)")
    assert (said.value, said.how, said.path, said.line) == ("own", "ran", FILE, 2)
    assert said.excerpt[1] == (
        2,
        "    def _maybe_override_draft_max_model_len(own, draft, target):",
    )
    assert session.ending == ""


def test_every_layer_of_isolation_holds_or_says_why_not() -> None:
    _, session = ask("return draft")
    missing = {line.partition(":")[0] for line in session.fails}
    assert session.holds[0].startswith("limits")
    assert set(session.holds[1:]) | missing == set(LAYERS)


def test_a_file_outside_cannot_be_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the key")
    said, session = ask(f"raise ValueError(open({str(secret)!r}).read())")
    needs(session, "landlock")
    assert said.value is None
    assert "PermissionError" in said.detail
    assert "the key" not in said.detail


def test_the_environment_of_the_caller_is_not_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_TOKEN_OF_MINE", "the key")
    said, _ = ask("import os\nraise ValueError(sorted(os.environ.items()))")
    assert said.detail.startswith("ValueError")
    assert "A_TOKEN_OF_MINE" not in said.detail
    assert "the key" not in said.detail


@pytest.mark.parametrize(
    "body",
    [
        "import socket\nsocket.socket()\nreturn draft",
        "import os\nos.fork()\nreturn draft",
        "import os\nos.execv('/bin/true', ['true'])\nreturn draft",
        "import os\nos.kill(os.getppid(), 9)\nreturn draft",
        "open('huge', 'wb').write(bytes(1 << 30))\nreturn draft",
        "import os\nos.open('new', os.O_CREAT | os.O_WRONLY)\nreturn draft",
        "import os\nos.unlink('job.json')\nreturn draft",
    ],
    ids=["socket", "fork", "exec", "kill", "huge file", "new file", "remove"],
)
def test_an_act_on_the_world_is_refused(body: str) -> None:
    said, session = ask(body)
    needs(session, "seccomp")
    assert said.value is None
    assert "PermissionError" in said.detail


def test_memory_is_limited() -> None:
    said, _ = ask("return len(bytearray(16 << 30))")
    assert "MemoryError" in said.detail


def test_an_endless_loop_is_ended_and_the_probe_is_unknown() -> None:
    said, session = ask("while True:\n    pass", seconds=2)
    assert said.value is None
    assert said.detail == "it took too long"
    assert session.ending == ""


def test_a_loop_that_stops_the_clock_of_its_probe_is_killed() -> None:
    body = "import signal\nsignal.setitimer(signal.ITIMER_REAL, 0)\nwhile True: pass"
    said, session = ask(body, seconds=2)
    assert said.value is None
    assert said.detail == session.ending != ""


def test_a_flood_of_output_goes_nowhere() -> None:
    body = "import sys\nfor _ in range(200): sys.stdout.write('x' * 100_000)\nreturn draft"
    said, session = ask(body)
    assert (said.value, session.ending) == ("own", "")


def test_a_flood_of_answers_ends_the_child() -> None:
    body = (
        "import os\n"
        "for fd in range(3, 40):\n"
        "    try:\n"
        "        for _ in range(60): os.write(fd, b'x' * 65536)\n"
        "    except OSError: pass\n"
        "return draft"
    )
    said, session = ask(body)
    assert said.value is None
    assert session.ending == "the child said more than 1 MiB"


def test_an_answer_that_was_slipped_in_makes_the_probe_unknown() -> None:
    line = '{"probe": "draft_length", "value": "target", "path": "' + FILE + '", "line": 1}'
    body = (
        "import os\n"
        "for fd in range(3, 40):\n"
        f"    try: os.write(fd, b'{line}\\n')\n"
        "    except OSError: pass\n"
        "return draft"
    )
    said, _ = ask(body)
    assert (said.value, said.detail) == (None, "it was answered twice")


def test_a_crash_of_the_interpreter_is_not_an_answer() -> None:
    said, session = ask("import ctypes\nctypes.string_at(0)")
    assert said.value is None
    assert "SIGSEGV" in session.ending


def test_a_file_that_cannot_be_parsed_is_unknown() -> None:
    files = {FILE: b"def (:"}
    said = reading(load("draft_length"), execute(files, ["draft_length"]), files)
    assert said.value is None
    assert "cannot be parsed" in said.detail


@pytest.mark.parametrize("name", ["../outside.py", "/outside.py", "a/../../outside.py"])
def test_a_member_that_leaves_the_folder_is_refused(name: str) -> None:
    with pytest.raises(UntestableError, match="outside"):
        execute({name: b""}, [])


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ask("return draft")
    assert os.listdir(tmp_path) == []
