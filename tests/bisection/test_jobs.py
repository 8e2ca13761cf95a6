"""Several builds tried at once: the same result as one after the other, and a whole end."""

from __future__ import annotations

import contextlib
import platform
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from specrepro.repro.case import load_case, load_cases
from specrepro.repro.check.apart import case_file
from specrepro.repro.errors import UsageError

MACHINE = platform.machine()
# which untestable builds of a block were tried, and which presumed, does differ
COMPARED = ("kind", "ending", "build", "previous", "confidence", "candidates")


@pytest.mark.parametrize("states", ["gggggbbbbb", "gg??bb", "bbbggg", "gggg", "?gb?"])
def test_the_result_is_that_of_trials_one_after_the_other(states: str, engine: Any) -> None:
    versions = engine.releases(states)
    ends = ("--good", versions[0], "--bad", versions[-1])
    alone, together = engine.record(*ends), engine.record(*ends, "--jobs", "3")
    assert together["status"] == alone["status"]
    for key in COMPARED:
        assert together["result"][key] == alone["result"][key]
    assert len(set(engine.tried(together))) == len(together["trials"])
    assert "--jobs 3" in together["again"]
    assert "--jobs" not in alone["again"]


def test_a_scan_of_several_builds_at_once_tries_each_once(engine: Any) -> None:
    engine.releases("gbbgg?b")
    record = engine.record("--scan", "--jobs", "4")
    [stage] = record["stages"]
    assert "".join(entry["state"][0] for entry in stage["timeline"]["builds"]) == "gbbggub"
    assert sorted(engine.tried(record)) == [f"0.{n}.0" for n in range(1, 8)]


def test_a_budget_of_trials_holds_for_all_that_run_at_once(engine: Any) -> None:
    versions = engine.releases("gggggbbbbb")
    ends = ("--good", versions[0], "--bad", versions[-1])
    assert len(engine.record(*ends, "--jobs", "4", "--max-trials", "3")["trials"]) == 3


def processes(folder: Path) -> list[str]:
    """Command lines of processes that are about a run below `folder`."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
            if "execution.errand" in line and environ_of(path.parent, str(folder)):
                found.append(line)
    return found


def environ_of(process: Path, folder: str) -> bool:
    return folder.encode() in (process / "environ").read_bytes()


def test_an_interrupt_ends_all_of_them_and_the_same_command_goes_on(engine: Any) -> None:
    versions = engine.releases("ggggbb")
    ends = ("--good", versions[0], "--bad", versions[-1], "--jobs", "2")
    for version in (versions[0], versions[-1]):
        engine.server.paths[f"/files/{engine.names[version]}"].behaviour = "trickle"
    started = engine.start(*ends)
    for _ in range(600):
        if len(processes(engine.folder)) >= 2 or started.poll() is not None:
            break
        time.sleep(0.1)
    assert started.poll() is None, started.communicate()
    started.send_signal(signal.SIGTERM)
    out, err = started.communicate(timeout=60)
    assert (started.returncode, out) == (130, "")
    assert "--jobs 2" in err
    assert processes(engine.folder) == []
    for name in engine.names.values():
        engine.server.paths[f"/files/{name}"].behaviour = "ranges"
    record = engine.record(*ends)
    assert record["result"]["build"] == "0.5.0"
    assert [path.name for path in (Path(record["run"]["path"])).glob("apart*")] == []


def test_a_trial_of_a_batch_says_where_it_ran_and_what_it_cost(engine: Any) -> None:
    versions = engine.releases("ggbb")
    record = engine.record("--good", versions[0], "--bad", versions[-1], "--jobs", "2")
    for row in record["trials"]:
        assert row["place"] == {"node": "here", "machine": MACHINE, "gpu": "", "driver": ""}
        assert row["not_counted"] is None
    assert record["stages"][0]["group"] == f"no GPU, {MACHINE}"
    assert record["traffic"]["requests"] > len(record["trials"])


def test_a_case_that_is_edited_meanwhile_is_not_asked(tmp_path: Path) -> None:
    path = tmp_path / "case.yaml"
    [shipped] = load_cases(["draft-length-gate"])
    path.write_bytes(shipped.path.read_bytes())
    loaded = load_case(path)
    path.write_bytes(path.read_bytes() + b"# edited\n")
    with pytest.raises(UsageError, match="was changed after it was read"):
        case_file(loaded, tmp_path / "kept")
