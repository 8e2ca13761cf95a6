"""The page of a GPU session: python tests/gpu/page.py RESULTS [FOLDER]

Puts the files that run.sh left in RESULTS into FOLDER/<device>-<date>.json (docs/gpu by default)
and writes a page of the same name beside it. What did not come out as it must stands first.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from compact import amiss, unlooked
from parts import PARTS
from session import SCHEMA

Record = Mapping[str, Any]
DOCS = Path(__file__).parents[2] / "docs" / "gpu"
MARKS = {
    "seen": "✓",
    "clean": "✓",
    "not seen": "✗",
    "false finding": "✗",
    "unknown": "?",
    "cannot see": "·",
    "not run": "–",
}
LARGEST = 4 << 20  # bytes of a part
ASIDE = ("vllm", "uv", "gh", "room for builds")  # of doctor: no lane needs them


def collected(results: Path) -> dict[str, Any]:
    """The session with its parts; ValueError where that is no finished session."""
    session = _read(results / "session.json")
    if session.get("schema") != SCHEMA:
        raise ValueError(f"{results.name} holds no session of schema {SCHEMA}")
    for name in PARTS:
        path = results / f"{name}.json"
        if path.is_file():
            session[name] = _read(path)
    return session


def _read(path: Path) -> dict[str, Any]:
    if path.stat().st_size > LARGEST:
        raise ValueError(f"{path.name} is larger than {LARGEST >> 20} MiB")
    record = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(record, dict):
        raise ValueError(f"{path.name} holds no object")  # noqa: TRY004 - one error for bad content
    return record


def name_of(session: Record) -> str:
    """`nvidia-h200-2026-11-30`."""
    device = re.sub(r"[^a-z0-9]+", "-", str(session["machine"]["device"]).lower()).strip("-")
    return f"{device or 'unknown'}-{str(session['started'])[:10]}"


def page(session: Record, name: str) -> str:
    """The session as Markdown."""
    told = session["machine"]
    lines = [
        f"# {_text(told['device'])}, {_text(str(session['started'])[:10])}",
        "",
        f"Written by `tests/gpu/run.sh` and `tests/gpu/page.py`; all of it is in [{name}.json]"
        f"({name}.json).",
        "",
        f"Driver {_text(told['driver'])}; Python {_text(told['python'])}; "
        + ", ".join(f"{n} {v or 'not installed'}" for n, v in told["packages"].items())
        + ".",
        "",
        f"**{_summary(session)}**",
        "",
        *_section("Not as it must be", _amiss(session)),
        *_section("Not looked at", _unlooked(session)),
        *_section("Parts", _table(_parts(session))),
        *_section("The machine", _table(_machine(session))),
        *_section("What saw the planted faults", _table(_planted(session))),
        *_section("Cases", _cases(session)),
        *_section("Time of a trial, relative to `plain`", _benchmark(session)),
        *_section("Placing a tensor", _placing(session)),
        *_section("Tests", _table(_tests(session))),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _section(title: str, body: Sequence[str]) -> list[str]:
    return [f"## {title}", "", *(body or ["Nothing."]), ""]


def _summary(session: Record) -> str:
    """The session in a line, no better than its worst part."""
    parts = session["parts"]
    amiss_ = [p["name"] for p in parts if p["ok"] is False or p["state"] == "failed"]
    short = [p["name"] for p in parts if p["state"] in ("cut", "left out")]
    said = []
    if amiss_:
        said.append(f"Not as it must be: {', '.join(amiss_)}.")
    if short:
        said.append(f"Not to its end: {', '.join(short)}.")
    if session["ended"] != "by itself":
        said.append(f"It was {session['ended'] or 'ended from outside'}.")
    return _text(" ".join(said) or "All that was looked at came out as it must.")


def _amiss(session: Record) -> list[str]:
    """What a reader must know before anything else."""
    found = [
        f"- part `{p['name']}`: {p['state']}. {_text(p['said'])}"
        for p in session["parts"]
        if p["state"] != "done" or not p["ok"]
    ]
    cells = _cells(session, lambda cell: not cell["ok"])
    found += [f"- selftest: {_text(why)}: {_text(', '.join(of))}" for why, of in cells.items()]
    for test in session.get("tests", {}).get("tests", ()):
        if test["state"] in ("failed", "error"):
            found.append(f"- {_text(test['name'])}: {_text(test['said'])}")
    for run in session.get("cases", {}).get("runs", ()):
        found += [f"- {_text(said)}" for said in amiss(run)]
    return found


def _unlooked(session: Record) -> list[str]:
    """What says nothing, because it did not run, each with its reason."""
    found: dict[tuple[str, str], list[str]] = {}
    instruments = session.get("selftest", {}).get("instruments", ())
    absent = {one["name"]: one["reason"] for one in instruments if not one["ran"]}
    for name, why in absent.items():
        found.setdefault(("selftest", why), []).append(name)
    cells = _cells(session, lambda c: c["state"] == "not run" and c["instrument"] not in absent)
    for why, of in cells.items():
        found.setdefault(("selftest", why), []).extend(of)
    for test in session.get("tests", {}).get("tests", ()):
        if test["state"] == "skipped":
            found.setdefault(("tests", test["said"]), []).append(test["name"])
    for run in session.get("cases", {}).get("runs", ()):
        if run["said"]:
            found.setdefault(("cases", run["said"]), []).append(f"{run['case']} in {run['lane']}")
        for why, of_run in unlooked(run).items():
            found.setdefault(("cases", why), []).append(of_run)
    for row, why in session.get("benchmark", {}).get("not_measured", {}).items():
        found.setdefault(("benchmark", why), []).append(row)
    return [f"- {of}: {_text(why)}: {_text('; '.join(what))}" for (of, why), what in found.items()]


def _cells(session: Record, wanted: Callable[[Record], bool]) -> dict[str, list[str]]:
    """Of the selftest: what an instrument said, and of which faults it said so."""
    found: dict[str, list[str]] = {}
    for fault in session.get("selftest", {}).get("faults", ()):
        for cell in filter(wanted, fault["cells"]):
            said = str(cell["detail"] or cell["state"])
            found.setdefault(said, []).append(f"{fault['about']} in {cell['instrument']}")
    return found


def _machine(session: Record) -> Iterator[Sequence[str]]:
    checks = [c for c in session.get("doctor", {}).get("checks", ()) if c["name"] not in ASIDE]
    if not checks:
        return
    yield ("", "found", "")
    for check in checks:
        mark = {"ok": "✓", "bad": "✗"}.get(check["state"], "?")
        yield (mark, check["name"], check["said"])


def _parts(session: Record) -> Iterator[Sequence[str]]:
    yield ("part", "state", "as it must be", "seconds", "limit", "said")
    for part in session["parts"]:
        ok = {True: "yes", False: "NO", None: "unknown"}[part["ok"]]
        ok = "what ran" if part["ok"] and part["state"] != "done" else ok
        yield (
            part["name"],
            part["state"],
            ok,
            f"{part['seconds']:.0f}",
            f"{part['limit']:.0f}",
            part["said"],
        )


def _planted(session: Record) -> Iterator[Sequence[str]]:
    record = session.get("selftest")
    if record is None:
        return
    names = [str(one["name"]) for one in record["instruments"]]
    yield ("planted", *names)
    for fault in record["faults"]:
        cells = {one["instrument"]: one for one in fault["cells"]}
        yield (fault["about"], *(MARKS[cells[name]["state"]] for name in names))


def _cases(session: Record) -> list[str]:
    """A table a case: variants by lane, at the case's own point. Lanes that did not run are told
    of above."""
    runs = [run for run in session.get("cases", {}).get("runs", ()) if not run["said"]]
    lines: list[str] = []
    for case in dict.fromkeys(run["case"] for run in runs):
        mine = [run for run in runs if run["case"] == case]
        own = {run["lane"]: [t for t in run["trials"] if not t["point"]] for run in mine}
        variants = dict.fromkeys(t["variant"] for trials in own.values() for t in trials)
        rows = [("variant", *own)]
        rows += [(v, *(_mark(trials, v) for trials in own.values())) for v in variants]
        verdicts = (f"{r['lane']} {r['verdict']}" for r in mine)
        lines += [f"### {_text(case)}", "", *_table(rows), "", _text("; ".join(verdicts)), ""]
    if lines:
        lines.append(
            "✓ names what the reference has, ✗ not as expected, ? the fault did not show itself, "
            "– skipped"
        )
    return lines


def _mark(trials: Sequence[Record], variant: str) -> str:
    trial = next((one for one in trials if one["variant"] == variant), None)
    if trial is None or trial["status"] == "skipped":
        return "–"
    marks = " ✓" if trial["agrees"] else ""
    marks += " ?" if (trial["expected"], trial["status"]) == ("fault", "clean") else ""
    return str(trial["status"]) + marks + ("" if trial["as_expected"] else " ✗")


def _benchmark(session: Record) -> list[str]:
    record = session.get("benchmark")
    if record is None:
        return []
    rows = [("lane", "variant", "trials", "seconds, median", "relative to `plain`")]
    for one in record["rows"]:
        ratio = "–" if one["ratio"] is None else f"{one['ratio']:.2f}"
        rows.append(
            (one["lane"], one["variant"], str(one["trials"]), f"{one['seconds']:.2f}", ratio)
        )
    return [*_table(rows), "", _text(record["said"])]


def _placing(session: Record) -> list[str]:
    record = session.get("benchmark", {}).get("placing")
    if record is None:
        return []
    rows = [("placement", "bytes", "µs to place", "µs to give back")]
    for one in record["rows"]:
        back = "–" if one["giving_back"] is None else f"{one['giving_back']:.1f}"
        rows.append((one["placement"], f"{one['bytes']:,}", f"{one['placing']:.1f}", back))
    said = f"Driver's calls alone, {record['count']} tensors; granularity "
    return [*_table(rows), "", f"{said}{record['granularity']:,} bytes."]


def _tests(session: Record) -> Iterator[Sequence[str]]:
    record = session.get("tests")
    if record is None:
        return
    yield ("test", "state", "seconds", "said")
    for one in record["tests"]:
        yield (one["name"], one["state"], f"{one['seconds']:.1f}", one["said"])


def _table(rows: Any) -> list[str]:
    found = [[_text(str(cell)) for cell in row] for row in rows]
    if not found:
        return []
    rule = ["---" for _ in found[0]]
    return [f"| {' | '.join(row)} |" for row in (found[0], rule, *found[1:])]


def _text(said: object) -> str:
    """Text that Markdown takes for nothing else; a record's may come from a driver or a tool."""
    words = re.sub(r"[\x00-\x1f\x7f-\x9f]+", " ", str(said))
    words = words.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"([\\|*_\[\]])", r"\\\1", words)


def _free(folder: Path, name: str, text: str) -> str:
    """The name, or with a number the first that no other session of that device and day has."""
    found, number = name, 1
    while (file := folder / f"{found}.json").exists() and file.read_text(encoding="utf-8") != text:
        number += 1
        found = f"{name}-{number}"
    return found


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(arguments[1]) if len(arguments) == 2 else DOCS
    try:
        session = collected(Path(arguments[0]))
    except (OSError, ValueError) as error:
        print(f"page.py: {error}", file=sys.stderr)
        return 2
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(session, indent=1, ensure_ascii=False) + "\n"
    name = _free(folder, name_of(session), text)
    (folder / f"{name}.json").write_text(text, encoding="utf-8")
    (folder / f"{name}.md").write_text(page(session, name), encoding="utf-8")
    print(folder / f"{name}.md")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
