"""The first failure apart from what follows: ties, clocks, ranks, incidents, people."""

from __future__ import annotations

from pathlib import Path

import pytest

from specrepro.repro.diagnose.read import read_text
from specrepro.repro.diagnose.said import sentences
from specrepro.repro.diagnose.session import Diagnosis, diagnose
from specrepro.repro.diagnose.survey import read_all
from specrepro.repro.diagnose.timeline import Course, courses
from specrepro.repro.diagnose.wording import told

IMA = "torch.AcceleratorError: CUDA error: an illegal memory access was encountered"
DEAD = (
    "(APIServer pid=9) ERROR 09-01 {} [async_llm.py:1] vllm.v1.engine.exceptions.EngineDeadError: "
    "EngineCore encountered an issue. See stack trace (above) for the root cause."
)
INIT = (
    "(EngineCore pid=8) INFO 09-01 {} [core.py:93] Initializing a V1 LLM engine (v{}) with config: "
    "model='m', enforce_eager=False"
)
XID = (
    "NVRM: Xid (PCI:0000:{}:00): 31, pid=1, name=python3, Ch 00000010, intr 00000000. MMU Fault: "
    "ENGINE GRAPHICS GPC1 GPCCLIENT_T1_5 faulted @ 0x7f12_34567000. Fault is of type FAULT_PDE "
    "ACCESS_TYPE_VIRT_READ"
)


def worker(rank: str, time: str, text: str = IMA, day: str = "09-01") -> str:
    return f"(Worker_{rank} pid=1{rank[2:]}) ERROR {day} {time} [multiproc_executor.py:870] {text}"


def course(*lines: str) -> Course:
    [found] = courses(read_text("a.log", "\n".join(lines) + "\n"))
    return found


def files(folder: Path, **texts: str) -> list[Path]:
    paths = []
    for name, text in texts.items():
        paths.append(folder / f"{name}.log")
        paths[-1].write_text(text, encoding="utf-8")
    return paths


def test_ranks_that_fail_in_one_second_tie() -> None:
    found = course(worker("TP0", "10:00:00"), worker("TP1", "10:00:00"), DEAD.format("10:00:01"))
    assert [fact.rank for fact in found.first] == ["TP0", "TP1"]
    assert "a tie" in found.note
    assert [fact.kind for fact in found.cascade] == ["engine_dead"]


def test_the_earlier_second_is_first_whatever_the_order_of_the_lines() -> None:
    found = course(worker("TP1", "10:00:05"), worker("TP0", "10:00:03"))
    assert [fact.rank for fact in found.first] == ["TP0"]
    assert [fact.rank for fact in found.cascade] == ["TP1"]


def test_the_watchdog_is_never_first() -> None:
    watchdog = (
        "[rank3]:[E901 10:00:00.123456789 ProcessGroupNCCL.cpp:2057] [PG ID 2 PG GUID 3 Rank 3] "
        "Process group watchdog thread terminated with exception: CUDA error: an illegal memory "
        "access was encountered"
    )
    found = course(watchdog, worker("TP0", "10:00:02"))
    assert [fact.rank for fact in found.first] == ["TP0"]


def test_a_standstill_is_first_only_where_nothing_failed_before() -> None:
    waiting = (
        "(EngineCore pid=8) INFO 09-01 10:00:00 [shm_broadcast.py:501] No available shared memory "
        "broadcast block found in 60 seconds."
    )
    assert [f.kind for f in course(waiting).first] == ["hang"]
    timeout = (
        "(EngineCore pid=8) ERROR 09-01 10:00:00 [core.py:1] RPC call to sample_tokens timed out."
    )
    found = course(timeout, worker("TP0", "10:00:09"))
    assert [f.kind for f in found.first] == ["cuda_error"]


def test_no_order_is_told_between_an_engine_and_a_kernel_log(tmp_path: Path) -> None:
    paths = files(
        tmp_path,
        crash=worker("TP0", "10:00:00") + "\n",
        kernel=f"[12345.678901] {XID.format('41')}\n",
    )
    [found] = courses(read_all(paths))
    assert [f.kind for f in found.first] == ["cuda_error"]
    assert [f.kind for f in found.elsewhere] == ["xid"]
    assert found.cascade == ()
    assert "another clock" in found.note


def test_lines_of_two_clocks_in_one_file_are_not_ordered_by_their_numbers() -> None:
    kill = "[ 5.5] Out of memory: Killed process 4242 (VLLM::EngineCor) total-vm:1000kB"
    found = course(worker("TP0", "10:00:00"), kill)
    assert [f.rank for f in found.first] == ["TP0"]
    assert [f.kind for f in found.elsewhere] == ["oom"]


def test_the_word_that_a_start_failed_is_not_what_it_failed_of() -> None:
    start = "(EngineCore pid=8) ERROR 09-01 10:00:00 [core.py:880] EngineCore failed to start."
    memory = (
        "(EngineCore pid=8) ERROR 09-01 10:00:00 [core.py:880] torch.OutOfMemoryError: CUDA out of "
        "memory. Tried to allocate 2.00 GiB."
    )
    found = course(start, memory)
    assert [f.kind for f in found.first] == ["oom"]
    assert [f.kind for f in course(start).first] == ["start_failure"]


def test_a_kernel_log_of_another_day_is_not_of_this_crash(tmp_path: Path) -> None:
    paths = files(
        tmp_path,
        crash=worker("TP0", "10:00:00") + "\n",
        kernel=f"Aug 24 10:00:00 host kernel: {XID.format('41')}\n",
    )
    found = courses(read_all(paths))
    assert [[f.kind for f in one.first] for one in found] == [["cuda_error"], ["xid"]]
    assert all(one.elsewhere == () for one in found)


def test_a_kernel_log_in_another_zone_is_of_this_crash(tmp_path: Path) -> None:
    line = "Sep 01 12:00:01 host kernel: " + XID.format("41")
    paths = files(tmp_path, crash=worker("TP0", "10:00:00") + "\n", kernel=line + "\n")
    [found] = courses(read_all(paths))
    assert [f.kind for f in found.elsewhere] == ["xid"]
    later = "Sep 01 12:21:00 host kernel: " + XID.format("41")
    paths = files(tmp_path, crash=worker("TP0", "10:00:00") + "\n", kernel=later + "\n")
    assert len(courses(read_all(paths))) == 2


def test_of_two_crashes_a_kernel_log_goes_to_the_nearer_or_to_none(tmp_path: Path) -> None:
    crashes = "\n".join(
        (INIT.format("09:00:00", "0.26.0"), worker("TP0", "10:00:00"),
         INIT.format("11:00:00", "0.29.0"), worker("TP1", "12:00:10"))
    )  # fmt: skip
    near = "Sep 01 12:00:11 host kernel: " + XID.format("41")
    paths = files(tmp_path, crash=crashes + "\n", kernel=near + "\n")
    assert [len(one.elsewhere) for one in courses(read_all(paths))] == [0, 1]
    boot = f"[12345.678901] {XID.format('41')}"
    paths = files(tmp_path, crash=crashes + "\n", kernel=boot + "\n")
    found = courses(read_all(paths))
    assert [len(one.elsewhere) for one in found] == [0, 0, 0]


def test_each_start_of_an_engine_has_its_own_incident_and_its_own_settings() -> None:
    text = "\n".join(
        (
            INIT.format("09:00:00", "0.26.0"),
            worker("TP0", "10:00:00"),
            INIT.format("11:00:00", "0.29.0"),
            worker("TP1", "12:00:00"),
        )
    )
    one, other = diagnose(read_text("a.log", text + "\n"))
    assert [d.situation.value("release") for d in (one, other)] == ["0.26.0", "0.29.0"]
    assert [d.course.first[0].rank for d in (one, other)] == ["TP0", "TP1"]


def page(tmp_path: Path, text: str) -> list[Diagnosis]:
    path = tmp_path / "issue.md"
    path.write_text(text, encoding="utf-8")
    return diagnose(read_all([path]))


def test_blocks_of_one_page_speak_of_one_incident(tmp_path: Path) -> None:
    [found] = page(
        tmp_path,
        f"It dies.\n\n```\n{INIT.format('09:00:00', '0.27.1')}\n```\n\n```\n"
        f"{worker('TP0', '10:00:00')}\n```\n\n```\n[1.5] {XID.format('41')}\n```\n",
    )
    assert found.situation.value("release") == "0.27.1"
    assert found.situation.value("access") == "read"
    assert told(found.course.first[0]) == "CUDA error: illegal memory access"


def test_an_option_that_prose_names_is_not_how_the_engine_ran(tmp_path: Path) -> None:
    [found] = page(
        tmp_path,
        "It is clean with `--enforce-eager --max-num-seqs 1`.\n\n```\n"
        f"{INIT.format('09:00:00', '0.27.1')}\n{worker('TP0', '10:00:00')}\n```\n",
    )
    assert found.situation.value("eager") == "no"
    assert found.situation.value("max_num_seqs") is None
    assert found.situation.has("claim", "eager_works")


def test_a_variable_that_prose_names_is_not_how_the_engine_ran(tmp_path: Path) -> None:
    [found] = page(
        tmp_path,
        "With CUDA_LAUNCH_BLOCKING=1 it is clean for two days.\n\n```\n"
        f"{worker('TP0', '10:00:00')}\n```\n",
    )
    assert found.situation.value("launch_blocking") is None


def test_damaged_output_is_no_consequence_of_something_earlier() -> None:
    [found] = diagnose(read_text("a.log", "generated: " + "!" * 60 + "\n"))
    assert found.situation.get("symptom") is not None
    assert found.situation.has("symptom", "garbage")
    assert not found.situation.has("symptom", "consequence")


def test_stages_follow_from_ranks_and_from_what_is_said(tmp_path: Path) -> None:
    [found] = page(tmp_path, f"It dies.\n\n```\n{worker('PP1', '10:00:00')}\n```\n")
    assert found.situation.value("pp") == 2
    [found] = page(tmp_path, f"With PP=3 it dies.\n\n```\n{worker('PP1', '10:00:00')}\n```\n")
    assert found.situation.value("pp") == 3


def test_prose_alone_is_a_claim_and_excludes_nothing(tmp_path: Path) -> None:
    [found] = page(tmp_path, "vLLM 0.27.1 crashes with an illegal memory access under load.\n")
    assert found.course.first == () or found.course.first[0].certainty == "claimed"
    assert found.situation.value("symptom") == "illegal_access"
    # the absence of an assertion in prose is no absence
    assert {r.standing for r in found.classes if r.fault_class.id == "stale-draft-metadata"} != {
        "excluded"
    }


def test_sentences_run_over_lines_and_keep_the_line_they_begin_in() -> None:
    text = "First one. The second\nruns on\nfor long! Third\n\n- a point\n- another one\n"
    assert list(sentences(text, 10)) == [
        (10, "First one."),
        (10, "The second runs on for long!"),
        (12, "Third"),
        (14, "- a point"),
        (15, "- another one"),
    ]


@pytest.mark.parametrize(
    ("buses", "count"), [(("41", "61"), 2), (("41", "41"), 1), (("41", "61", "81"), 3)]
)
def test_gpus_that_fault_together_are_counted_once_each(buses: tuple[str, ...], count: int) -> None:
    text = "\n".join(f"[100.{n}] {XID.format(bus)}" for n, bus in enumerate(buses))
    [found] = diagnose(read_text("dmesg", text + "\n"))
    assert found.situation.value("gpus_at_once") == count


def test_gpus_that_fault_minutes_apart_do_not_fault_together() -> None:
    text = f"[100.0] {XID.format('41')}\n[500.0] {XID.format('61')}\n"
    [found] = diagnose(read_text("dmesg", text))
    assert found.situation.value("gpus_at_once") == 1
    assert found.situation.value("same_address") == "yes"


REFUSED = (
    "(APIServer pid=9) ERROR 09-01 {0} [serving.py:2] Traceback (most recent call last):",
    '(APIServer pid=9) ERROR 09-01 {0} [serving.py:2]   File "/x/vllm/entrypoints/openai/'
    'serving_chat.py", line 190, in create_chat_completion',
    "(APIServer pid=9) ERROR 09-01 {0} [serving.py:2] ValueError: maximum context length is 8192",
)


def test_a_request_that_the_server_refused_is_no_fault_of_the_engine() -> None:
    refused = [line.format("10:00:00") for line in REFUSED]
    found = course(*refused, worker("TP0", "10:00:20"), DEAD.format("10:00:21"))
    assert [fact.kind for fact in found.first] == ["cuda_error"]
    assert [fact.kind for fact in found.cascade] == ["engine_dead"]
    alone = course(*refused)
    assert [fact.kind for fact in alone.first] == ["python_exception"]
