"""What surrounds a run: its limits, where it is kept, an output that cannot be written."""

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

CPU = ["--lane", "reference", "--lane", "emulator"]


@pytest.mark.parametrize("seconds", ["inf", "1e400", "nan"])
def test_a_time_limit_must_be_a_number_of_seconds(
    specrepro: Callable[..., Any], seconds: str
) -> None:
    assert specrepro("run", "mtp-tail-overflow", "--timeout", seconds).returncode == 2


def test_the_page_says_where_the_run_is_kept(tmp_path: Path, specrepro: Callable[..., Any]) -> None:
    runs = tmp_path / "my runs"
    done = specrepro(
        "run", "draft-length-gate", *CPU, "--variant", "inherited", "--runs", runs, COLUMNS="300"
    )
    assert f"--runs '{runs}'" in done.stdout


def test_a_closed_or_a_full_stdout_is_no_verdict(
    environment: dict[str, str], command: Callable[..., list[str]]
) -> None:
    for redirect, status in ((">&-", 0), ("> /dev/full", 3)):
        line = f'"$@" {redirect}'
        done = subprocess.run(
            ["/bin/sh", "-c", line, "sh", *command("list", "--json")],
            capture_output=True,
            text=True,
            env=environment,
        )
        assert done.returncode == status
        assert "Traceback" not in done.stderr
        assert "internal error" not in done.stderr


@pytest.mark.parametrize(("lanes", "said"), [(CPU, False), (CPU[2:], True)])
def test_the_page_says_that_a_lane_was_not_compared(
    specrepro: Callable[..., Any], lanes: list[str], said: bool
) -> None:
    done = specrepro("run", "mtp-tail-overflow", *lanes)
    assert done.returncode == 0
    assert "mtp-tail-overflow   REPRODUCED as a fault model" in done.stdout
    assert ("not compared with the reference" in done.stdout) is said
