"""What else changed at a boundary, from two builds that are written down here."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from specrepro.repro.bisection.boundary import MOST_LINES, Side, boundary


def evidence(probe: str, value: Any, where: str = "vllm/a.py:1", defect: str | None = "d") -> Any:
    return {"probe": probe, "value": value, "where": where, "detail": "", "defect": defect}


def row(*rows: Any, commit: str | None = "abc123def") -> dict[str, Any]:
    return {"evidence": list(rows), "commit": commit}


def metadata(*lines: str) -> bytes:
    return ("Metadata-Version: 2.1\nName: vllm\n" + "\n".join(lines) + "\n\nText: torch\n").encode()


def test_files_of_the_defects_code_are_told_with_the_lines_of_a_unified_diff() -> None:
    old = {"vllm/a.py": b"1\n2\n3\n", "vllm/gone.py": b"x\n", "vllm/same.py": b"s"}
    new = {"vllm/a.py": b"1\ntwo\n3\n4\n", "vllm/came.py": b"y\nz\n", "vllm/same.py": b"s"}
    found = boundary(Side("0.1.0", None, old), Side("0.2.0", None, new))["files"]
    assert found == [
        {"path": "vllm/a.py", "change": "changed", "added": 2, "removed": 1},
        {"path": "vllm/came.py", "change": "added", "added": 2, "removed": 0},
        {"path": "vllm/gone.py", "change": "removed", "added": 0, "removed": 1},
    ]


def test_a_file_too_long_to_compare_is_changed_by_an_unknown_number_of_lines() -> None:
    long = b"x\n" * (MOST_LINES + 1)
    [file] = boundary(Side("1", None, {"a.py": b"y"}), Side("2", None, {"a.py": long}))["files"]
    assert (file["change"], file["added"], file["removed"]) == ("changed", None, None)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.sampled_from(["++a", "--b", "@@", "", "c"]), max_size=12),
    st.lists(st.sampled_from(["++a", "--b", "@@", "", "c"]), max_size=12),
)
def test_lines_are_counted_so_that_they_add_up(old: list[str], new: list[str]) -> None:
    one, other = ("".join(f"{line}\n" for line in part).encode() for part in (old, new))
    files = boundary(Side("1", None, {"a": one}), Side("2", None, {"a": other}))["files"]
    if not files:
        assert one == other
        return
    assert files[0]["added"] - files[0]["removed"] == len(new) - len(old)
    assert 0 <= files[0]["removed"] <= len(old)


def test_the_count_is_that_of_git_where_nothing_repeats(tmp_path: Path) -> None:
    old = [f"line {n}" for n in range(40)]
    new = [*old[:5], "new a", *old[9:30], "new b", "new c", *old[31:]]
    (tmp_path / "old").write_text("\n".join(old) + "\n")
    (tmp_path / "new").write_text("\n".join(new) + "\n")
    told = subprocess.run(
        ["git", "diff", "--no-index", "--numstat", "old", "new"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    added, removed = map(int, told.stdout.split()[:2])
    one, other = ((tmp_path / name).read_bytes() for name in ("old", "new"))
    [file] = boundary(Side("1", None, {"a": one}), Side("2", None, {"a": other}))["files"]
    assert (file["added"], file["removed"]) == (added, removed)


def test_dependencies_and_python_that_differ_are_told_and_extras_are_not() -> None:
    old = metadata(
        "Requires-Python: <3.15,>=3.10",
        "Requires-Dist: torch==2.11.0",
        "Requires-Dist: Flashinfer_Python==0.6.8.post1",
        "Requires-Dist: six>=1.16; python_version > '3.11'",
        "Requires-Dist: numba==0.61 ; extra == 'audio'",
        "Requires-Dist: gone",
    )
    new = metadata(
        "Requires-Python: <3.15,>=3.11",
        "Requires-Dist: torch==2.13.0",
        "Requires-Dist: flashinfer-python==0.6.8.post1",
        'Requires-Dist: six>=1.16; python_version > "3.11"',
        "Requires-Dist: numba==0.62 ; extra == 'audio'",
    )
    found = boundary(Side("1", None, {}, old), Side("2", None, {}, new))
    assert found["dependencies"] == [
        {"name": "gone", "before": "any", "after": None},
        {"name": "torch", "before": "==2.11.0", "after": "==2.13.0"},
    ]
    assert found["python"] == {"before": "<3.15,>=3.10", "after": "<3.15,>=3.11"}


def test_what_cannot_be_compared_is_said_and_not_taken_for_equal() -> None:
    broken = metadata("Requires-Dist: torch ==")
    found = boundary(Side("0.1", row(), {}, metadata()), Side("0.2", None, {}, broken))
    assert found["dependencies"] == []
    assert found["unknown"] == [
        "answers and defaults: a person decided about one of the two builds",
        "dependencies: 0.2 has no METADATA that can be read",
    ]


def test_answers_and_defaults_that_moved_are_told_apart() -> None:
    before = row(
        evidence("v2_eager_metadata", "once", "vllm/e.py:4"),
        evidence("default_runner", {"dense pp1": "v1", "hybrid pp1": "v1"}, defect=None),
        evidence("default_async", {"v1 pp1": "on"}, defect=None),
        evidence("peak_memory_mib", 660, defect=None),
    )
    after = row(
        evidence("v2_eager_metadata", "each step", "vllm/s.py:9"),
        evidence("default_runner", {"dense pp1": "v2", "hybrid pp1": "v1"}, defect=None),
        evidence("default_async", None, defect=None),
        evidence("peak_memory_mib", 670, defect=None),
        commit="fed",
    )
    found = boundary(Side("0.20.2", before), Side("0.21.0", after))
    assert [(a["probe"], a["before"], a["after"]) for a in found["answers"]] == [
        ("v2_eager_metadata", "once", "each step")
    ]
    assert found["answers"][0]["where"] == {"before": "vllm/e.py:4", "after": "vllm/s.py:9"}
    assert [(d["setting"], d["of"], d["before"], d["after"]) for d in found["defaults"]] == [
        ("runner", "dense pp1", "v1", "v2"),
    ]
    assert "default of async: not known of both builds" in found["unknown"]
    assert found["commits"] == {"previous": "abc123def", "build": "fed"}
    assert found["compare"].endswith("/vllm/compare/v0.20.2...v0.21.0")


def test_commits_are_compared_by_their_hashes() -> None:
    found = boundary(Side("a" * 40), Side("b" * 40))
    assert found["compare"].endswith(f"/compare/{'a' * 40}...{'b' * 40}")
