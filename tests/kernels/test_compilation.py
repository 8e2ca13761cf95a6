from __future__ import annotations

import importlib.util
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

import specrepro
from specrepro.repro.compilation import (
    CompilerMissingError,
    compile_kernel,
    compiler_version,
)
from specrepro.repro.compiled import Parameter, load
from specrepro.repro.cuda_signature import cuda_parameters
from specrepro.repro.errors import KernelError

ROOT = Path(specrepro.__file__).parent
OPS = sorted(path.parent.name for path in (ROOT / "kernels").glob("*/kernel.*"))


def need_compiler(language: str, version: str | None = None) -> None:
    try:
        here = compiler_version(language)
    except CompilerMissingError as error:
        pytest.skip(f"{error} is not installed")
    if version is not None and here != version:
        pytest.skip(f"the shipped PTX is of {language} {version}, installed is {here}")


@pytest.mark.compilers
@pytest.mark.parametrize("op", OPS)
def test_shipped_ptx_is_what_its_compiler_makes_of_the_source(op: str) -> None:
    shipped = load(op)
    need_compiler(shipped.manifest.language, shipped.manifest.compiler_version)
    compiled = compile_kernel(op)
    assert compiled.manifest == shipped.manifest
    assert compiled.ptx == shipped.ptx


@pytest.mark.compilers
def test_place_of_a_checkout_does_not_change_the_ptx(tmp_path: Path) -> None:
    for op in ("draft_step", "kv_write"):
        need_compiler(load(op).manifest.language, load(op).manifest.compiler_version)
    shutil.copytree(ROOT / "kernels", tmp_path / "a b" / "kernels")
    for op in ("draft_step", "kv_write"):
        assert compile_kernel(op, tmp_path / "a b").ptx == load(op).ptx


@pytest.mark.compilers
@pytest.mark.parametrize("op", OPS)
def test_shipped_ptx_assembles(op: str, tmp_path: Path) -> None:
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        pytest.skip("ptxas comes with triton, which is not installed")
    ptxas = Path(spec.origin).parent / "backends/nvidia/bin/ptxas"
    # NVRTC stamps a newer PTX version than this ptxas knows; the instructions are old ones.
    text = load(op).ptx.replace(".version 9.5", ".version 8.8")
    (tmp_path / "k.ptx").write_text(text)
    command = [str(ptxas), "-arch=sm_80", "-lineinfo", "k.ptx", "-o", "k.cubin"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


TARGETS = ("sm_80", "sm_86", "sm_90", "sm_100", "sm_120")
ELF_CUDA = 190  # e_machine of a cubin


def sections(elf: bytes) -> set[str]:
    """Names of the sections of a 64-bit ELF file, by the ELF specification."""
    assert elf[:5] == b"\x7fELF\x02"
    assert int.from_bytes(elf[18:20], "little") == ELF_CUDA
    table = int.from_bytes(elf[40:48], "little")
    size, count, names = (int.from_bytes(elf[at : at + 2], "little") for at in (58, 60, 62))
    headers = [elf[table + size * n : table + size * (n + 1)] for n in range(count)]
    text = int.from_bytes(headers[names][24:32], "little")
    starts = [text + int.from_bytes(header[:4], "little") for header in headers]
    return {elf[start : elf.index(0, start)].decode() for start in starts}


@pytest.mark.compilers
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("op", OPS)
def test_every_kernel_compiles_for_every_target_with_its_lines(op: str, target: str) -> None:
    shipped = load(op).manifest
    need_compiler(shipped.language)
    kernel = compile_kernel(op, target=target, machine_code=True)
    assert f"\n.target {target}" in kernel.ptx
    assert kernel.cubin is not None
    found = sections(kernel.cubin)
    assert {f".text.{shipped.entry}", ".nv_debug_line_sass"} <= found
    # what a launch gives is the same for every target, what a block needs may not be
    same = replace(kernel.manifest, target=shipped.target, shared_bytes=shipped.shared_bytes)
    assert same == replace(shipped, compiler_version=kernel.manifest.compiler_version)


@pytest.mark.compilers
@pytest.mark.parametrize(
    ("op", "old", "new", "seen"),
    [
        ("kv_write", "slot < 0", "slot < 3", "setp.lt.s64 \t%p1, %rd2, 3;"),
        ("slot_mapping", "tl.full([TILE], -1, tl.int64)", "tl.full([TILE], -9, tl.int64)", "-9;"),
    ],
)
def test_edited_source_is_compiled_again_once(
    tmp_path: Path, op: str, old: str, new: str, seen: str
) -> None:
    need_compiler(load(op).manifest.language)
    shutil.copytree(ROOT / "kernels", tmp_path / "kernels")
    source = tmp_path / load(op).manifest.source
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new))
    kernel = load(op, tmp_path)
    assert not kernel.shipped
    assert seen in kernel.ptx
    assert seen not in load(op).ptx
    assert load(op, tmp_path) is kernel
    shipped = (tmp_path / "kernels" / op / "ptx" / "sm_80.ptx").read_text()
    assert shipped == load(op).ptx  # nothing is written into the package


@pytest.mark.compilers
@pytest.mark.parametrize(
    ("op", "old", "new", "says"),
    [
        ("kv_write", "key_cache[slot", "key_cash[slot", 'identifier "key_cash" is undefined'),
        ("slot_mapping", "tl.load(query_start + row)", "tl.lode(query_start + row)", "lode"),
        ("draft_step", "@triton.jit", "@triton.jitter", "jitter"),
        ("kv_write", " __launch_bounds__(64)", "", "launch_bounds"),
        ("kv_write", "int width", "short width", "short width"),
    ],
)
def test_source_that_does_not_compile_is_refused_in_the_compilers_words(
    tmp_path: Path, op: str, old: str, new: str, says: str
) -> None:
    need_compiler(load(op).manifest.language)
    shutil.copytree(ROOT / "kernels", tmp_path / "kernels")
    source = tmp_path / load(op).manifest.source
    assert old in source.read_text()
    source.write_text(source.read_text().replace(old, new))
    with pytest.raises(KernelError, match=says) as refused:
        load(op, tmp_path)
    assert refused.value.where == load(op).manifest.source


def test_unknown_op_is_refused() -> None:
    with pytest.raises(KernelError, match="no_such_op"):
        compile_kernel("no_such_op")
    with pytest.raises(KernelError, match="no_such_op"):
        load("no_such_op")


def test_cuda_parameters_are_read_from_the_declaration() -> None:
    text = "extern f(int a);\nvoid k(const __half* x,\n  long long *n, float s, int m) {\n}"
    assert cuda_parameters(text, "k", "k.cu") == (
        Parameter("x", "*fp16", 2),
        Parameter("n", "*i64", 8),
        Parameter("s", "fp32"),
        Parameter("m", "i32"),
    )
    with pytest.raises(KernelError, match="double d"):
        cuda_parameters("void k(double d) {", "k", "k.cu")
