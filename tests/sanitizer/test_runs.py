"""A run under the tool, from its words to a status: clean needs three witnesses, a fault is located
as the other lanes locate it, and every way to end badly is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from specrepro.repro.records import Kind, Seen, Source, Status

VERSIONS = ("2023.3.1.0", "2025.2.1.0", "2026.4.0.0")
API = 'Program hit cudaErrorLaunchFailure (error 719) due to "x" on CUDA API call to cuCtxSync.'


def test_clean_with_header_summary_and_mark(run: Any) -> None:
    weighed = run.weighed()
    assert (weighed.status, weighed.findings) == (Status.CLEAN, ())
    assert weighed.evidence.state is Seen.NONE
    assert weighed.evidence.source == "compute-sanitizer 2026.4.0.0, memcheck"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_overrun_is_named_by_tensor_element_launch_and_request(run: Any, version: str) -> None:
    weighed = run.weighed("fault", found=["overrun", API], version=version)
    (finding,) = weighed.findings
    assert (weighed.status, weighed.stopped) == (Status.FAULT, True)
    assert (finding.kind, finding.op, finding.tensor) == (
        Kind.OUT_OF_BOUNDS_WRITE,
        "kv_write",
        "key_cache",
    )
    assert (finding.launch, finding.step, finding.request) == (2, 9, 2)
    assert (finding.elements, finding.count, finding.bytes_past_end) == ((1024, 1039), 16, 0)
    assert (finding.width, finding.block, finding.thread, finding.threads) == (
        2,
        (3, 0, 0),
        (0, 0, 0),
        16,
    )
    assert finding.source == Source("kernels/kv_write/kernel.cu", 23)


def test_a_target_that_caught_the_error_and_ended_with_0_is_no_cleaner(run: Any) -> None:
    weighed = run.weighed("caught", found=["overrun"])
    assert (run.status, weighed.status) == (0, Status.FAULT)


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("early", {}),
        ("fault", {}),
        ("well", {"ending": "silent"}),
        ("well", {"ending": "killed"}),
        ("well", {"ending": "cut"}),
        ("well", {"ending": "failed"}),
        ("well", {"extra": ["Internal Sanitizer Error: the launch was not tracked"]}),
        ("well", {"extra": ["3 errors were skipped (error buffer overflow)."]}),
        ("well", {"found": ["Tensor Memory column 32 was touched\n    by thread (0,0,0)"]}),
        (
            "well",
            {"found": ["Program hit out of memory (error 2) on CUDA API call to cuMemAlloc."]},
        ),
        ("fault", {"found": ["overrun"], "ending": "killed"}),
        (
            "fault",
            {"found": ["overrun"], "extra": ["2 errors were not printed. Use --print-limit"]},
        ),
    ],
)
def test_whatever_is_missing_or_strange_is_unknown(
    run: Any, how: str, said: dict[str, Any]
) -> None:
    weighed = run.weighed(how, **said)
    assert weighed.status is Status.UNKNOWN
    assert weighed.reason
    assert weighed.evidence.state is (Seen.SEEN if weighed.findings else Seen.UNOBSERVABLE)


def test_what_was_found_before_the_tool_was_killed_is_kept(run: Any) -> None:
    weighed = run.weighed("fault", found=["overrun"], ending="killed")
    assert weighed.findings[0].elements == (1024, 1039)


def test_an_error_without_a_record_of_an_access_is_a_fault_of_unknown_site(run: Any) -> None:
    weighed = run.weighed("fault", found=[API])
    assert (weighed.status, weighed.findings) == (Status.FAULT, ())
    assert "site unknown" in weighed.reason
    assert "coredump" in weighed.evidence.detail


@pytest.mark.parametrize(
    ("xml", "note"),
    [
        ("none", "no XML"),
        ("cut", "cannot be read"),
        ("fewer", "in the XML"),
        ("doctype", "refused"),
    ],
)
def test_the_text_stands_in_where_the_xml_does_not_serve(run: Any, xml: str, note: str) -> None:
    weighed = run.weighed("fault", found=["overrun"], xml=xml)
    assert weighed.status is Status.FAULT
    assert weighed.findings[0].elements == (1024, 1039)
    assert note in weighed.evidence.detail
