"""Pages: whose log is whose, what a program printed, and what a person only says."""

from __future__ import annotations

import json

import pytest

from specrepro.repro.diagnose.facts import Certainty, Reading
from specrepro.repro.diagnose.read import read_text
from specrepro.repro.diagnose.said import SAYS
from specrepro.repro.diagnose.vocabulary import KINDS

ERROR = "RuntimeError: CUDA error: an illegal memory access was encountered"
XID = (
    "NVRM: Xid (PCI:0000:0a:00): 31, pid=7, name=x, Ch 1, intr 0. MMU Fault: ENGINE GRAPHICS "
    "GPCCLIENT_T1_5 faulted @ 0x7f12_34567000. Fault is of type FAULT_PDE ACCESS_TYPE_VIRT_WRITE"
)
PAGE = f"""### The bug

It crashes with Xid 13 after an hour. Still on v0.27.1, works on 0.24.0.

```text
vLLM Version : 0.27.1
```

<details><summary>log</summary>

~~~
{ERROR}
~~~
</details>

> With `--enforce-eager` it never crashes for me.
"""
THREAD = f"""title:\tMTP crash
state:\tOPEN
author:\talice
labels:\tbug
--
```
(Worker_TP0 pid=9) ERROR 08-24 10:00:00 [a.py:1] {ERROR}
author:\tbob
association:\tnone
--
Same with gibberish output:
```
[1.5] {XID}
```
--
"""


def page(text: str, name: str = "issue.md") -> Reading:
    return read_text(name, text)


def observed(reading: Reading, kind: str) -> list[tuple[str, int]]:
    return [
        (reading.sources[fact.source].part, fact.line)
        for fact in reading.of(kind)
        if fact.certainty is Certainty.OBSERVED
    ]


def test_each_fenced_block_is_a_source_with_the_lines_of_the_file() -> None:
    reading = page(PAGE)
    parts = [(source.part, source.first_line, source.lines) for source in reading.sources]
    assert parts == [("block", 6, 1), ("block", 12, 1), ("prose", 1, 16)]
    assert observed(reading, "cuda_error") == [("block", 12)]
    assert [fact.line for fact in reading.of("cuda_error")] == [12]


def test_prose_claims_and_never_observes() -> None:
    reading = page(PAGE)
    prose = [f for f in reading.facts if reading.sources[f.source].part == "prose"]
    assert {fact.certainty for fact in prose} == {Certainty.CLAIMED}
    names = ("code", "topic", "version")
    said = {
        (fact.kind, next(v for n in names if (v := fact.values.get(n)) is not None))
        for fact in prose
        if fact.kind in ("xid", "claim", "engine")
    }
    assert ("xid", 13) in said
    assert ("claim", "crash") in said
    assert ("engine", "0.27.1") in said
    # a version that is called good is not the one that ran
    works = [f.values["subject"] for f in prose if f.values.get("topic") == "works"]
    assert works == ["vllm 0.24.0"]
    assert ("engine", "0.24.0") not in said


def test_an_option_in_prose_is_an_experiment_not_a_setting() -> None:
    reading = page(PAGE)
    assert reading.of("graph_mode") == []
    origins = [fact.values["origin"] for fact in reading.of("engine_argument")]
    assert origins == ["prose"]


def test_claims_make_no_incident() -> None:
    assert (
        page("It hangs and crashes: CUDA error: an illegal memory access\n```\nx\n```\n").incidents
        == ()
    )


def test_several_peoples_logs_are_told_apart_even_if_a_fence_was_not_closed() -> None:
    reading = page(THREAD, "thread.txt")
    blocks = [(s.author, s.part) for s in reading.sources if s.part == "block"]
    assert blocks == [("alice", "block"), ("bob", "block")]
    authors = {
        fact.kind: reading.sources[fact.source].author
        for fact in reading.facts
        if fact.kind in ("cuda_error", "xid") and fact.certainty is Certainty.OBSERVED
    }
    assert authors == {"cuda_error": "alice", "xid": "bob"}


def test_a_catalog_that_somebody_quotes_is_no_xid() -> None:
    text = "```\n| Xid | meaning |\n| 31 | GPU memory page fault |\n| 79 | fallen off |\n```\n"
    assert observed(page(text), "xid") == []


def test_log_lines_that_were_pasted_without_a_fence_are_known_by_their_form() -> None:
    logged = f"(Worker_TP0 pid=9) ERROR 08-24 10:00:00 [a.py:1] {ERROR}"
    text = f"## Log\n\n```\nx\n```\n{XID}\n{logged}\n{ERROR}\n"
    reading = page(text)
    assert [line for _, line in observed(reading, "xid")] == [6]
    # with its process and stamp it is the engine's word, alone it could be anybody's
    assert [line for _, line in observed(reading, "cuda_error")] == [7]
    assert [f.line for f in reading.of("cuda_error") if f.certainty is Certainty.CLAIMED] == [8]


def test_quoted_blocks_are_read_without_their_quotation_marks() -> None:
    text = "> ```\n> (Worker_TP3 pid=9) ERROR 08-24 10:00:00 [a.py:1] " + ERROR + "\n> ```\nyes\n"
    facts = page(text).of("cuda_error")
    assert [(fact.rank, fact.line) for fact in facts] == [("TP3", 2)]


def test_html_escapes_are_undone() -> None:
    text = "<details>\n\n```\nCUDA Error: an illegal memory access &amp; more\n```\n"
    assert page(text).of("cuda_error")[0].text == "CUDA Error: an illegal memory access & more"


@pytest.mark.parametrize(
    "document",
    [
        [
            {"user": {"login": "alice"}, "body": "It hangs"},
            {"user": {"login": "bob"}, "body": f"```\n{ERROR}\n```"},
        ],
        {
            "title": "t",
            "author": {"login": "alice"},
            "body": "It hangs",
            "comments": [{"author": {"login": "bob"}, "body": f"```\n{ERROR}\n```"}],
        },
    ],
)
def test_the_interfaces_json_gives_authors(document: object) -> None:
    reading = page(json.dumps(document), "issue.json")
    assert [(s.author, s.part) for s in reading.sources] == [("alice", "prose"), ("bob", "block")]
    assert [fact.values["topic"] for fact in reading.of("claim")] == ["hang"]
    assert observed(reading, "cuda_error")[0][0] == "block"


def test_a_saved_web_page_is_read_by_its_preformatted_parts() -> None:
    text = f"<!DOCTYPE html><html><script>{ERROR}</script><p>It hangs</p><pre>{ERROR}</pre></html>"
    reading = page(text, "issue.html")
    assert [part for part, _ in observed(reading, "cuda_error")] == ["block"]
    assert [fact.values["topic"] for fact in reading.of("claim")] == ["hang"]


def test_a_log_that_happens_to_hold_a_fence_is_a_log() -> None:
    text = f"```python\nprint()\n```\n{ERROR}\n"
    reading = read_text("engine.log", text)
    assert [source.part for source in reading.sources] == ["file"]
    assert observed(reading, "cuda_error") == [("file", 4)]


def test_a_patch_observes_nothing() -> None:
    reading = page(f"```diff\n+ raise {ERROR}\n+{ERROR}\n```\n")
    assert observed(reading, "cuda_error") == []


@pytest.mark.parametrize(
    ("sentence", "topic"),
    [
        ("The engine hangs after a while", "hang"),
        ("It no longer hangs", "works"),
        ("Output becomes gibberish", "garbage"),
        ("It crashes under load", "crash"),
        ("It never crashed in two days", "no_crash"),
        ("40 concurrent requests, 0 crashes", "no_crash"),
        ("Acceptance drops to 0%", "low_acceptance"),
    ],
)
def test_a_denied_symptom_is_not_the_symptom(sentence: str, topic: str) -> None:
    claims = page(f"# Bug\n{sentence}\n").of("claim")
    assert [fact.values["topic"] for fact in claims] == [topic]


def test_a_sentence_about_machine_ranks_and_versions_is_read_as_claims() -> None:
    text = "# Bug\nOn 4x RTX 3090 with TP=4, MTP k=3. Rolling back to 0.10.1.post1 works fine.\n"
    reading = page(text)
    assert {fact.certainty for fact in reading.facts} == {Certainty.CLAIMED}
    assert [(f.values["name"], f.values["count"]) for f in reading.of("gpu")] == [("RTX 3090", 4)]
    sizes = [(f.values["dimension"], f.values["size"]) for f in reading.of("parallel")]
    assert sizes == [("tp", 4)]
    assert [f.values["k"] for f in reading.of("speculation")] == [3]
    assert [f.values["subject"] for f in reading.of("claim")] == ["vllm 0.10.1.post1"]
    assert reading.of("engine") == []


def test_blocks_beyond_the_bound_are_said_to_be_unread() -> None:
    reading = page("```\nx\n```\n" * 1100)
    assert [(u.what, u.count) for u in reading.unread] == [
        ("blocks beyond the first thousand", 100)
    ]


def test_a_version_between_releases_is_read_whole() -> None:
    page = "We run vllm main (0.32.1rc1.dev92+g1a2b3c4d5) and it crashes.\n\n```\nx\n```\n"
    found = read_text("page.md", page).of("engine")
    assert [fact.values["version"] for fact in found] == ["0.32.1rc1.dev92+g1a2b3c4d5"]


def test_ranks_of_a_run_that_is_fine_are_not_those_of_the_crash() -> None:
    page = "With -pp 3 it crashes. TP=2 is fine. It dies with TP=4.\n\n```\nx\n```\n"
    found = read_text("page.md", page).of("parallel")
    assert {(f.values["dimension"], f.values["size"]) for f in found} == {("tp", 4)}


def test_every_topic_of_a_claim_is_in_the_vocabulary() -> None:
    assert f"{SAYS}:" in KINDS["claim"]["topic"]
