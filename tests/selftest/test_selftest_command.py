"""`specrepro selftest` as a person and a script see it, and when something of it is broken."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import specrepro
from specrepro.repro.report.selftest_page import print_selftest
from specrepro.repro.selftest.faults import FAULTS

CODE = "import sys; from specrepro.cli import main; main()"


def asked(*words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NO_COLOR": "1"} | environ
    return subprocess.run(
        [sys.executable, "-c", CODE, "selftest", *words],
        capture_output=True,
        text=True,
        timeout=240,
        env=environment,
    )


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    done = asked("--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def states(record: dict[str, Any], instrument: str) -> dict[str, str]:
    return {
        fault["name"]: cell["state"]
        for fault in record["faults"]
        for cell in fault["cells"]
        if cell["instrument"] == instrument
    }


def test_the_emulator_sees_every_fault_and_calls_the_hang_unknown(record: dict[str, Any]) -> None:
    found = states(record, "emulator")
    assert set(found) == {fault.name for fault in FAULTS}
    assert found.pop("clean") == "clean"
    assert found.pop("hang") == "unknown"
    assert set(found.values()) == {"seen"}
    assert record["ok"] is True
    assert record["schema"] == "specrepro/selftest@1"


def test_the_reference_sees_what_is_wrong_by_an_element(record: dict[str, Any]) -> None:
    found = states(record, "reference")
    seen = {name for name, state in found.items() if state == "seen"}
    assert seen == {"far_write", "far_read", "next_write", "pool_write"}
    assert found["clean"] == "clean"
    assert found["shared_race"] == "cannot see"


def test_an_instrument_that_did_not_run_has_a_reason_and_claims_nothing(
    record: dict[str, Any],
) -> None:
    for each in record["instruments"]:
        assert each["ran"] is not bool(each["reason"])
        if not each["ran"]:
            assert set(states(record, each["name"]).values()) <= {"not run", "cannot see"}


def test_a_limit_that_is_too_short_is_unknown_and_no_success() -> None:
    done = asked("--json", "--timeout", "0.1")
    assert done.returncode == 1, done.stdout
    found = json.loads(done.stdout)
    assert found["ok"] is False
    assert set(states(found, "emulator").values()) == {"unknown"}


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    """A copy of the package, to break."""
    root = Path(specrepro.__file__).parent
    for name in ("repro", "kernels", "cases"):
        shutil.copytree(
            root / name,
            tmp_path / "specrepro" / name,
            ignore=shutil.ignore_patterns("__pycache__"),
        )
    for name in ("__init__.py", "cli.py"):
        shutil.copy(root / name, tmp_path / "specrepro" / name)
    return tmp_path


def run_broken(folder: Path) -> tuple[int, dict[str, Any], str]:
    code = f"import sys; sys.path.insert(0, {str(folder)!r}); {CODE}"
    done = subprocess.run(
        [sys.executable, "-c", code, "selftest", "--json", "--timeout", "30"],
        capture_output=True,
        text=True,
        timeout=240,
        env=os.environ | {"PYTHONPATH": str(folder)},
    )
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def planted(folder: Path) -> Path:
    return folder / "specrepro" / "repro" / "selftest" / "ptx"


def test_an_emulator_that_sees_nothing_or_too_much_fails(broken: Path) -> None:
    # as if a check were lost: the kernel that should be wrong is right; and the other way round
    arguments = planted(broken)
    (arguments / "next_write.yaml").write_text(
        (arguments / "next_write.yaml").read_text().replace("i64: 64", "i64: 0")
    )
    (arguments / "clean.yaml").write_text(
        (arguments / "clean.yaml").read_text().replace("i32: 64}", "i32: 60}")
    )
    (arguments / "far_read.yaml").unlink()
    status, record, stderr = run_broken(broken)
    assert status == 1, stderr
    found = states(record, "emulator")
    assert found["next_write"] == "not seen"
    assert found["clean"] == "false finding"
    assert found["far_read"] == "unknown"
    assert states(record, "reference")["next_write"] == "seen"


def test_a_package_without_the_planted_source_sees_nothing_and_says_so(broken: Path) -> None:
    (planted(broken) / "planted.cu").unlink()
    status, record, _ = run_broken(broken)
    assert status == 1
    cells = [c for fault in record["faults"] for c in fault["cells"] if not c["ok"]]
    assert {cell["state"] for cell in cells} == {"unknown", "not seen"}
    assert all("cannot be read" in cell["detail"] for cell in cells)
    assert set(states(record, "reference").values()) == {"unknown", "cannot see"}


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_page_fits_and_shows_each_instrument_once(width: int) -> None:
    done = asked("--timeout", "0.1", COLUMNS=str(width))
    lines = done.stdout.splitlines()
    assert lines[0].startswith("selftest   NOT ALL SEEN · by ")
    assert max(map(len, lines)) <= width
    heads = [line.split()[1:] for line in lines if line.startswith("planted ")]
    names = [name for head in heads for name in head]
    assert names[:2] == ["reference", "emulator"]
    assert len(names) == len(set(names)) == 10
    assert len(heads) == {60: 4, 80: 2, 120: 1}[width]


def test_quiet_is_the_result_and_what_is_wrong() -> None:
    done = asked("-q", "--timeout", "0.1", COLUMNS="200")
    assert "planted " not in done.stdout
    assert "? device assert, emulator: no end within 0.1 s" in done.stdout


def page_of(record: dict[str, Any], *, quiet: bool) -> str:
    out = Console(file=io.StringIO(), width=100)
    print_selftest(out, record, quiet=quiet, verbose=False)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


def told_without(record: dict[str, Any], reasons: dict[str, str]) -> dict[str, Any]:
    """The record, where these instruments did not run."""
    told = [
        each | {"ran": False, "reason": reasons[each["name"]]} if each["name"] in reasons else each
        for each in record["instruments"]
    ]
    faults = [
        fault
        | {
            "cells": [
                cell | {"state": "not run", "ok": True} if cell["instrument"] in reasons else cell
                for cell in fault["cells"]
            ]
        }
        for fault in record["faults"]
    ]
    return record | {"instruments": told, "faults": faults}


@pytest.mark.parametrize("quiet", [False, True])
def test_where_nothing_ran_the_reason_is_all_that_is_said(
    record: dict[str, Any], quiet: bool
) -> None:
    names = [each["name"] for each in record["instruments"]]
    reasons = dict.fromkeys(names, "it was not asked for") | {"plain": "no CUDA device"}
    lines = page_of(told_without(record, reasons), quiet=quiet).splitlines()
    assert "NOTHING WAS LOOKED AT" in lines[0]
    assert [line.strip() for line in lines[1:]] == ["– plain: no CUDA device"]


def test_an_instrument_that_was_not_asked_for_has_no_column_and_no_line(
    record: dict[str, Any],
) -> None:
    names = [each["name"] for each in record["instruments"] if each["name"] != "emulator"]
    page = page_of(told_without(record, dict.fromkeys(names, "it was not asked for")), quiet=False)
    assert page.splitlines()[2].split() == ["planted", "emulator"]
    assert "asked for" not in page
