"""A stored run as JUnit XML, which dashboards of CI systems read.

A test of a run is a trial: it passes where it came out as the case says. A test of a check is a
defect in a build: it passes where the defect is absent. What could not be told is an error, never a
pass. The dialect is the one of Jenkins and GitHub's readers, written by junitparser.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import UntestableError, UsageError
from ..escape import printable
from .run_page import what

if TYPE_CHECKING:
    import junitparser

Record = Mapping[str, Any]

LONGEST = 8_000  # characters of one message
# what XML 1.0 does not hold, escaped or not; printable text has some of it
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(record: Record) -> str:
    """The XML text. UsageError for a kind of run that has no tests; UntestableError where the
    extra `report` is not installed."""
    try:
        import junitparser
    except ModuleNotFoundError as error:
        raise UntestableError(
            "JUnit XML is written by junitparser", hint="pip install 'specrepro[report]'"
        ) from error
    suites: Any = junitparser.JUnitXml(name=f"specrepro {record['run']['command']}")
    match record["schema"]:
        case "specrepro/run@1":
            for case in record["cases"]:
                suites.add_testsuite(_case(case, record))
        case "specrepro/check@1":
            for build in record["builds"]:
                suites.add_testsuite(_build(build, record))
        case "specrepro/cut@1":
            suites.add_testsuite(_cut(record))
        case schema:
            raise UsageError(f"there are no tests in {schema}", hint="--format markdown")
    suites.update_statistics()
    text: bytes = suites.tostring()
    return text.decode("utf-8") + "\n"


def _cut(record: Record) -> junitparser.TestSuite:
    """A run without a result: one test, which could not be told."""
    import junitparser

    name = _text(str(record["run"]["command"]))
    suite = junitparser.TestSuite(name)
    _properties(suite, record)
    test = junitparser.TestCase("result", classname=f"{name}.result")
    said = "is still at work" if record["at_work"] else "was cut off before it had a result"
    test.result = [junitparser.Error(f"the run {said}")]
    suite.add_testcases([test])
    return suite


def _case(case: Record, record: Record) -> junitparser.TestSuite:
    import junitparser

    suite = junitparser.TestSuite(_text(str(case["id"])))
    _properties(suite, record, verdict=case["verdict"], cause=case["cause"])
    tests = []
    for trial in case["trials"]:
        changed = {k: v for k, v in trial["point"].items() if v != case["named"].get(k)}
        words = [str(trial["variant"]), *(f"{name}={value}" for name, value in changed.items())]
        words += [str(trial["control"])] if trial["control"] else []
        test = junitparser.TestCase(
            _text(" ".join(words)),
            _text(f"{case['id']}.{trial['lane']}"),
            float(trial["seconds"]),
        )
        test.result = [ending] if (ending := _trial(trial)) is not None else []
        tests.append(test)
    suite.add_testcases(tests)  # at once: each call counts the whole suite anew
    return suite


def _trial(trial: Record) -> Any:
    """How a trial's test ends: None for a pass."""
    import junitparser

    status = str(trial["status"])
    if status == "skipped":
        return junitparser.Skipped(_text(str(trial["reason"])))
    if status not in ("fault", "clean"):
        return junitparser.Error(_text(f"{status}: {trial['reason']}"))
    if trial["as_expected"]:
        return None
    failure = junitparser.Failure(_text(f"expected {trial['expected']}, saw {status}"))
    failure.text = _text("; ".join(what(finding, None) for finding in trial["findings"]))
    return failure


def _build(build: Record, record: Record) -> junitparser.TestSuite:
    import junitparser

    suite = junitparser.TestSuite(_text(f"{record['case']} vllm {build['version']}"))
    _properties(suite, record, verdict=build["verdict"], cause=record["cause"])
    group = _text(f"{record['case']}.{build['version']}")
    if not build["defects"]:
        test = junitparser.TestCase("build", group)
        test.result = [junitparser.Error(_text("; ".join(map(str, build["reasons"]))))]
        suite.add_testcase(test)
    for standing in build["defects"]:
        test = junitparser.TestCase(_text(str(standing["defect"])), group)
        reason = _text(str(standing["reason"]))
        if not standing["counted"]:
            test.result = [junitparser.Skipped("not counted")]
        elif standing["state"] == "present":
            test.result = [junitparser.Failure(reason)]
        elif standing["state"] != "absent":
            test.result = [junitparser.Error(reason)]
        suite.add_testcase(test)
    return suite


def _properties(suite: junitparser.TestSuite, record: Record, **more: object) -> None:
    run = record["run"]
    for name, value in {"run": run["id"], "specrepro": run["version"], **more}.items():
        suite.add_property(_text(name), _text(str(value)))


def _text(text: str) -> str:
    """Foreign text that XML can hold, line breaks and controls as escapes, not endless."""
    return _FORBIDDEN.sub("?", printable(text[:LONGEST]))
