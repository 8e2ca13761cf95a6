"""Kernels that mean harm: what their code can reach while it is compiled, what their PTX can do."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from specrepro.repro.check.cache import Cache
from specrepro.repro.check.kernel.compiler import Compiled, Compiler, NotCompiledError, compiler
from specrepro.repro.check.kernel.launching import Ready, Saw, launched
from specrepro.repro.check.kernel.lifted import Lifted
from specrepro.repro.check.kernel.probes import load
from specrepro.repro.check.kernel.subject import Binding

pytest.importorskip("triton", reason="Triton is not installed")
pytestmark = pytest.mark.compilers

HEAD = "import triton\nimport triton.language as tl\nimport os\n"
KERNEL = "@triton.jit\ndef k(x, n):\n    tl.store(x + n, 1)\n"
BOUND = Binding({"x": "*i32", "n": "i32"}, {}, ("x", "n"))


@pytest.fixture
def made(tmp_path: Path) -> Compiler:
    return compiler(Cache(tmp_path / "cache", print))


def text(harm: str = "") -> Lifted:
    """A lifted module whose top level does something before it defines its kernel."""
    module = f"{HEAD}{harm}\n{KERNEL}"
    places = tuple(("x.py", n) for n, _ in enumerate(module.splitlines(), 1))
    return Lifted("x.py", 1, "k", (), module, places)


def refusal(made: Compiler, harm: str, seconds: float = 30.0) -> str:
    with pytest.raises(NotCompiledError) as caught:
        made.compile(text(harm), BOUND, 1, seconds)
    return str(caught.value)


def needs(made: Compiler, *layers: str) -> None:
    if not any(layer in made.holds for layer in layers):
        pytest.skip(f"this system does not offer {' or '.join(layers)}: {made.fails}")


def test_a_harmless_kernel_becomes_ptx_with_lines_and_no_path_of_this_machine(
    made: Compiler,
) -> None:
    compiled = made.compile(text(), BOUND, 2)
    assert (compiled.entry, compiled.warps, compiled.shared) == ("k", 2, 0)
    assert ".target sm_80" in compiled.ptx
    assert '"kernel.py"' in compiled.ptx
    assert "specrepro-compile" not in compiled.ptx


def test_every_layer_of_isolation_holds_or_says_why_not(made: Compiler) -> None:
    made.compile(text(), BOUND, 1)
    missing = {line.partition(":")[0] for line in made.fails}
    layers = {"network namespace", "no new privileges", "landlock", "seccomp"}
    assert made.holds[0].startswith("limits")
    assert set(made.holds[1:]) | missing == layers


def test_a_file_cannot_be_written(made: Compiler, tmp_path: Path) -> None:
    target = tmp_path / "written"
    said = refusal(made, f"open({str(target)!r}, 'w').write('x')")
    needs(made, "landlock", "seccomp")
    assert "PermissionError" in said
    assert not target.exists()


def test_what_is_written_into_its_own_folder_stays_nowhere(made: Compiler) -> None:
    said = refusal(made, "open(__import__('sys').argv[1] + '/kernel.py', 'w').write('x' * 9)")
    needs(made, "landlock", "seccomp")
    assert "PermissionError" in said


def test_a_file_outside_cannot_be_read(made: Compiler, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the key")
    said = refusal(made, f"raise ValueError(open({str(secret)!r}).read())")
    needs(made, "landlock")
    assert "the key" not in said


def test_nothing_can_be_told_to_a_server(made: Compiler) -> None:
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
        said = refusal(made, f"import socket; socket.create_connection(('localhost', {port}), 2)")
        needs(made, "network namespace", "seccomp")
        server.settimeout(0.2)
        with pytest.raises(TimeoutError):
            server.accept()
    assert "error" in said.lower()


def test_no_process_is_started(made: Compiler, tmp_path: Path) -> None:
    said = refusal(made, f"import subprocess; subprocess.run(['touch', {str(tmp_path / 'x')!r}])")
    needs(made, "seccomp")
    assert "PermissionError" in said
    assert not (tmp_path / "x").exists()


def test_a_secret_of_the_environment_is_not_there(
    made: Compiler, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECREPRO_SECRET", "the key")
    assert "the key" not in refusal(made, "raise ValueError(str(dict(os.environ)))")


def test_code_that_does_not_end_is_ended_and_not_remembered(made: Compiler) -> None:
    said = refusal(made, "while True: pass", 2.0)
    assert "the compiling child" in said
    assert made.made == 1
    refusal(made, "while True: pass", 2.0)
    assert (made.made, made.known) == (2, 0)


@pytest.mark.parametrize(
    "harm",
    [
        "os._exit(0)",
        "os.write(int(__import__('sys').argv[2]), b'{\"ptx\": \"mine\"}\\n')",
        "os.write(int(__import__('sys').argv[2]), b'no json\\n')",
        "os.write(int(__import__('sys').argv[2]), b'x' * (9 << 20))",
    ],
)
def test_a_child_that_speaks_for_the_compiler_is_not_believed(made: Compiler, harm: str) -> None:
    assert "the compiling child" in refusal(made, harm)


def test_a_kernel_is_compiled_once_and_a_refusal_is_remembered(
    made: Compiler, tmp_path: Path
) -> None:
    first = made.compile(text(), BOUND, 1)
    assert made.compile(text(), BOUND, 1) == first
    assert (made.made, made.known) == (1, 1)
    again = compiler(Cache(tmp_path / "cache", print))
    assert again.compile(text(), BOUND, 1) == first
    assert (again.made, again.known) == (0, 1)
    again.compile(text(), BOUND, 2)  # as many warps as it is launched with
    assert again.made == 1
    refused = refusal(again, "raise ValueError('no')")
    assert refusal(again, "raise ValueError('no')") == refused == "ValueError: no"
    assert (again.made, again.known) == (2, 2)


PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(
    .param .u64 positions, .param .u64 table, .param .u64 lengths,
    .param .u64 clamped, .param .u64 mapping)
{
    .reg .pred %p<2>; .reg .b32 %r<9>; .reg .b64 %rd<9>;
BODY
    ret;
}
"""
ORDER = ("positions", "block_table", "seq_lens", "out_clamped_positions", "out_slot_mapping")


def launch(ptx: str, seconds: float = 30.0) -> Saw:
    probe = load("draft_step_kernel")
    lifted = Lifted("x.py", 1, "k", (), "", (("x.py", 1),) * 9)
    ready = Ready(probe, lifted, Binding({}, {}, ORDER), Compiled(ptx, "k", 1, 0, (0, 0)))
    return launched([ready], seconds)[probe.id]


@pytest.mark.parametrize(
    ("ptx", "words"),
    [
        (PTX.replace("BODY", "L: bra L;"), "the emulator: "),
        (PTX.replace("BODY", "trap;"), "slots 7 and 7"),
        (PTX.replace("BODY", ""), "slots 7 and 7"),
        (PTX.replace("BODY", "no.such.thing %r1, %r2;"), "the emulator: "),
        (PTX.replace(" k(", " other("), "no entry k"),
        ("not ptx at all", "the emulator: "),
        ("", "the emulator: "),
    ],
)
def test_ptx_that_is_no_kernel_of_this_kind_is_unknown(ptx: str, words: str) -> None:
    saw = launch(ptx)
    assert (saw.value, saw.findings) == (None, ())
    assert words in saw.detail


def test_a_process_that_dies_leaves_its_probes_unknown() -> None:
    saw = launch(PTX.replace("BODY", ""), 0.05)
    assert saw.value is None
    assert "the process that launches it: no end within 0.05 s" in saw.detail
