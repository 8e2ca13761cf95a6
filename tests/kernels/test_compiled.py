from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specrepro
from specrepro.repro import compiled, ops
from specrepro.repro.compiled import (
    INSTALL_COMPILERS,
    Manifest,
    check_arguments,
    load,
    sha256_of_source,
)
from specrepro.repro.errors import KernelError, LaunchRefusedError
from specrepro.repro.ops import Ops, Tensor
from specrepro.repro.ops.launcher import Launcher

ROOT = Path(specrepro.__file__).parent
OPS = sorted(path.parent.name for path in (ROOT / "kernels").glob("*/kernel.*"))


def test_every_op_has_a_kernel() -> None:
    methods = {
        name
        for family in Ops.__mro__
        if issubclass(family, Launcher) and family is not Launcher
        for name in vars(family)
        if not name.startswith("_")
    }
    assert sorted(methods) == OPS
    references = [path.parent.name for path in (ROOT / "kernels").glob("*/reference.py")]
    assert sorted(references) == OPS


@pytest.mark.parametrize("op", OPS)
def test_manifest_is_of_the_source_beside_it(op: str) -> None:
    kernel = load(op)
    assert kernel.shipped
    source = (ROOT / kernel.manifest.source).read_bytes()
    assert kernel.manifest.source_sha256 == hashlib.sha256(source).hexdigest()
    assert kernel.manifest.op == op
    assert Manifest.from_json(kernel.manifest.to_json()) == kernel.manifest


@pytest.mark.parametrize("op", OPS)
def test_manifest_describes_the_entry_of_the_ptx(op: str) -> None:
    kernel = load(op)
    head = kernel.ptx.split(f".entry {kernel.manifest.entry}(")[1].split(")", 1)[0]
    declared = [line.split()[1] for line in head.strip().splitlines()]
    wanted = {"i32": ".u32", "fp32": ".f32", "scratch": ".u64"}
    assert declared == [".u64" if p.pointer else wanted[p.type] for p in kernel.manifest.parameters]


@pytest.mark.parametrize("op", OPS)
def test_shipped_ptx_holds_no_path_of_a_machine(op: str) -> None:
    text = load(op).ptx
    files = [line.split('"')[1] for line in text.splitlines() if ".file" in line]
    assert files[0] == load(op).manifest.source
    assert not any(os.path.isabs(file) or "\\" in file or ".." in file for file in files)
    sections = [line.split()[1] for line in text.splitlines() if ".section" in line]
    assert set(sections) <= {".debug_str"}
    assert all(".file" in line for line in text.splitlines() if "/" in line)


def test_manifest_that_is_none_is_refused(tmp_path: Path) -> None:
    root = copy_of_kernels(tmp_path)
    manifest = root / "kernels/rope/ptx/manifest.json"
    data = json.loads(manifest.read_text())
    for broken in ("{", "[]", json.dumps({**data, "schema": 2}), json.dumps({"schema": 1})):
        manifest.write_text(broken)
        with pytest.raises(KernelError, match="rope"):
            load("rope", root)
    (root / "kernels/rope/ptx/sm_80.ptx").unlink()
    manifest.write_text(json.dumps(data))
    with pytest.raises(KernelError, match="incomplete"):
        load("rope", root)


def test_file_edited_after_it_was_loaded_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiled, "SETTLED", 0)
    root = copy_of_kernels(tmp_path)
    folder = root / "kernels/rope/ptx"
    time.sleep(0.02)  # longer than a tick of the clock that dates files
    before = load("rope", root)
    assert ("rope", root) in compiled._LOADED
    assert load("rope", root) is before
    with (folder / "sm_80.ptx").open("a") as file:
        file.write("// edited\n")
    assert load("rope", root).ptx == before.ptx + "// edited\n"
    data = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**data, "limits": {"rows": 7}}))
    assert load("rope", root).manifest.limits == {"rows": 7}
    (folder / "manifest.json").unlink()
    with pytest.raises(KernelError, match="incomplete"):
        load("rope", root)


def test_file_of_just_now_is_not_remembered_by_its_time(tmp_path: Path) -> None:
    root = copy_of_kernels(tmp_path)
    load("rope", root)
    assert ("rope", root) not in compiled._LOADED


def test_line_endings_of_a_checkout_do_not_make_a_source_edited() -> None:
    assert sha256_of_source(b"a\r\nb\r\n") == hashlib.sha256(b"a\nb\n").hexdigest()


def copy_of_kernels(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "kernels", tmp_path / "kernels")
    return tmp_path


@pytest.mark.parametrize("op", ["kv_write", "slot_mapping"])
def test_edited_source_is_refused_without_compilers(tmp_path: Path, op: str) -> None:
    root = copy_of_kernels(tmp_path / "edited")
    with (root / load(op).manifest.source).open("a") as source:
        source.write("\n")
    plain = tmp_path / "plain"  # an installation of numpy and the package alone
    plain.mkdir()
    for place in Path(np.__file__).parents[1].glob("numpy*"):
        (plain / place.name).symlink_to(place)
    (plain / "specrepro").symlink_to(ROOT)
    program = f"""
import sys
import time
from pathlib import Path
sys.path.insert(0, {str(plain)!r})
from specrepro.repro.compiled import load
from specrepro.repro.errors import StaleKernelError
assert load({op!r}).shipped
try:
    load({op!r}, Path({str(root)!r}))
except StaleKernelError as error:
    print(error.where, error.hint, int(error.exit_status), sep="|")
"""
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    where = load(op).manifest.source
    assert done.stdout.strip() == f"{where}|{INSTALL_COMPILERS}|125"


def arguments(op: str, **changes: Any) -> tuple[Manifest, dict[str, Any]]:
    """Valid arguments of a launch of `op`, of the smallest shapes, with changes."""
    manifest = load(op).manifest
    dtypes = {"fp16": "float16", "b16": "uint16", "fp32": "float32", "i32": "int32", "i64": "int64"}
    given: dict[str, Any] = {}
    for parameter in manifest.parameters:
        if parameter.pointer:
            given[parameter.name] = tensor(dtypes[parameter.type[1:]])
        elif parameter.type != "scratch":
            given[parameter.name] = 1.0 if parameter.type == "fp32" else 1
    return manifest, {**given, **changes}


def tensor(dtype: str, offset: int = 0) -> Tensor:
    """Eight elements, `offset` bytes past an address that is a multiple of 256."""
    raw = np.zeros(1024, np.uint8)
    start = -raw.__array_interface__["data"][0] % 256 + offset
    return Tensor("t", raw[start : start + 8 * np.dtype(dtype).itemsize].view(dtype), (8,))


@pytest.mark.parametrize("op", OPS)
def test_arguments_within_the_rules_are_taken(op: str) -> None:
    manifest, given = arguments(op)
    check_arguments(manifest, given)
    for parameter in manifest.parameters:
        if parameter.type == "i32" and parameter.name not in manifest.limits:
            borders: list[Any] = [-(2**31), 2**31 - 1, np.int64(5)]
            for border in borders:
                check_arguments(manifest, {**given, parameter.name: border})


@pytest.mark.parametrize("op", OPS)
def test_every_rule_of_every_parameter_is_kept(op: str) -> None:
    manifest, given = arguments(op)
    for parameter in manifest.parameters:
        if parameter.type == "scratch":
            continue
        wrong: list[Any] = ["8"]
        if parameter.pointer:
            element = given[parameter.name].dtype
            wrong += [3, tensor("float64")]
            wrong += [] if parameter.nullable else [None]
            if parameter.align > element.itemsize:
                wrong.append(tensor(element.name, offset=element.itemsize))
        elif parameter.type == "i32":
            wrong += [2**31, -(2**31) - 1, 1.0, None, tensor("int32")]
        else:
            wrong += [1e39, None, tensor("float32")]
        for value in wrong:
            with pytest.raises(LaunchRefusedError) as refused:
                check_arguments(manifest, {**given, parameter.name: value})
            assert f"{parameter.name} = {value!r}" in refused.value.message
            assert int(refused.value.exit_status) == 125


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("paged_attention", "head_dim"),
        ("conv_state", "width"),
        ("gated_delta_rule", "key_dim"),
        ("gated_delta_rule", "value_dim"),
    ],
)
def test_extent_past_the_compiled_tile_is_refused(op: str, name: str) -> None:
    limit = load(op).manifest.limits[name]
    check_arguments(*arguments(op, **{name: limit}))
    with pytest.raises(LaunchRefusedError, match=f"{name} = {limit + 1}.*at most {limit}"):
        check_arguments(*arguments(op, **{name: limit + 1}))


def test_misaligned_tensor_names_its_address_and_the_rule() -> None:
    moved = tensor("int64", offset=8)
    address = moved.data.__array_interface__["data"][0]
    with pytest.raises(LaunchRefusedError, match=f"positions.*16 bytes.*{address:#x}"):
        check_arguments(*arguments("draft_step", positions=moved))


def test_missing_and_unknown_arguments_are_refused() -> None:
    manifest, given = arguments("rope")
    del given["heads"]
    with pytest.raises(LaunchRefusedError, match=r"missing \['heads'\], unknown \['head'\]"):
        check_arguments(manifest, {**given, "head": 1})


@pytest.mark.parametrize(
    ("op", "name"),
    [
        ("rejection_sample", "draft_probs"),
        ("gumbel_sample", "column_scalar"),
        ("gated_delta_rule", "accepted"),
    ],
)
def test_null_is_taken_where_an_op_may_do_without(op: str, name: str) -> None:
    check_arguments(*arguments(op, **{name: None}))


def test_dtype_names_of_the_ops_cover_the_kernels() -> None:
    for op in OPS:
        for value in arguments(op)[1].values():
            if isinstance(value, Tensor):
                assert value.dtype.name in ops.DTYPE_NAMES
