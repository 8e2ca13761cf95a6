"""What stands before a line: carriers, processes and record headers of all ages."""

from __future__ import annotations

import json

import pytest

from specrepro.repro.diagnose.facts import Clock
from specrepro.repro.diagnose.reading.prefixes import peel

DAY = 86_400.0
# 24 August of a leap year: the days of January to July, and 23
AUGUST_24 = (31 + 29 + 31 + 30 + 31 + 30 + 31 + 23) * DAY
TEN = AUGUST_24 + 10 * 3600

RECORD = "ERROR 08-24 10:00:00 [core.py:12] EngineCore died"


@pytest.mark.parametrize(
    ("line", "process", "rank", "pid"),
    [
        (
            "(VllmWorkerProcess pid=7) ERROR 08-24 10:00:00 multiproc_worker_utils.py:9] X",
            "worker",
            None,
            7,
        ),
        ("(VllmWorker rank=1 pid=7) ERROR 08-24 10:00:00 [core.py:12] X", "worker", "rank1", 7),
        (
            "\x1b[1;36m(VllmWorker rank=1 pid=7)\x1b[0;0m ERROR 08-24 10:00:00 [core.py:12] X",
            "worker",
            "rank1",
            7,
        ),
        ("(EngineCore_0 pid=7) ERROR 08-24 10:00:00 [core.py:12] X", "engine_core", None, 7),
        ("(VllmWorker TP3 pid=7) ERROR 08-24 10:00:00 [core.py:12] X", "worker", "TP3", 7),
        ("(VllmWorker PP0_TP1 pid=7) ERROR 08-24 10:00:00 [core.py:12] X", "worker", "PP0_TP1", 7),
        (
            "(Worker_DP1_PP0_TP3_EP7 pid=7) ERROR 08-24 10:00:00 [core.py:12] X",
            "worker",
            "DP1_PP0_TP3_EP7",
            7,
        ),
        (
            "(EngineCore_DP0 pid=5) (Worker_TP2 pid=7) ERROR 08-24 10:00:00 [core.py:12] X",
            "worker",
            "TP2",
            7,
        ),
        ("(EngineCore_DP2 pid=7) ERROR 08-24 10:00:00 [core.py:12] X", "engine_core", "DP2", 7),
        (
            "(EngineCore pid=7) ERROR 08-24 10:00:00.123 [v1/engine/core.py:12] X",
            "engine_core",
            None,
            7,
        ),
        ("(APIServer pid=7) ERROR 08-24 10:00:00 [core.py:12] X", "api_server", None, 7),
        (
            "(RayWorkerWrapper pid=7, ip=fd00::1) ERROR 08-24 10:00:00 [core.py:12] X",
            "worker",
            None,
            7,
        ),
        (
            "my own prefix: (Worker_TP1 pid=7) ERROR 08-24 10:00:00 [core.py:12] X",
            "worker",
            "TP1",
            7,
        ),
        ("(Worker_TP1_DCP2 pid=7) X", "worker", "TP1_DCP2", 7),
    ],
)
def test_a_vllm_prefix_says_process_rank_and_pid(
    line: str, process: str, rank: str | None, pid: int
) -> None:
    read = peel(line, 1)
    assert read.text == "X"
    assert (read.prefix.process, read.prefix.rank, read.prefix.pid) == (process, rank, pid)
    assert read.prefix.engine == "vllm"


@pytest.mark.parametrize(
    ("wrapping", "carrier"),
    [
        ("2026-08-24T11:00:00.123456789Z {}", "docker"),
        ("2026-08-24T11:00:00.123456789+02:00 stderr F {}", "kubernetes"),
        ("[pod/vllm-0/server] {}", "kubernetes"),
        ("vllm-1  | {}", "compose"),
        ("Aug 24 11:00:00 box python3[99]: {}", "journald"),
        ("2026-08-24T11:00:00+0200 box docker[99]: {}", "journald"),
    ],
)
def test_a_carrier_is_taken_off_and_named(wrapping: str, carrier: str) -> None:
    read = peel(wrapping.format(f"(Worker_TP1 pid=7) {RECORD}"), 1)
    assert read.text == "EngineCore died"
    assert read.prefix.carriers == (carrier,)
    assert read.prefix.rank == "TP1"
    # the engine's own clock is kept, not the carrier's
    assert read.prefix.time is not None
    assert read.prefix.time.seconds == TEN


@pytest.mark.parametrize(
    ("record", "carrier"),
    [
        (
            {
                "log": f"(Worker_TP1 pid=7) {RECORD}\n",
                "stream": "stderr",
                "time": "2026-08-24T11:00:00.1Z",
            },
            "docker",
        ),
        ({"MESSAGE": f"(Worker_TP1 pid=7) {RECORD}", "_HOSTNAME": "box"}, "json"),
        (
            {"message": "EngineCore died", "level": "ERROR", "timestamp": "2026-08-24T10:00:00Z"},
            "json",
        ),
    ],
)
def test_a_json_record_is_opened(record: dict[str, str], carrier: str) -> None:
    read = peel(json.dumps(record), 1)
    assert read.text == "EngineCore died"
    assert read.prefix.carriers == (carrier,)
    assert read.prefix.time is None or read.prefix.time.seconds == TEN


@pytest.mark.parametrize(
    ("line", "clock", "seconds", "year"),
    [
        ("[12345.678901] NVRM: x", Clock.BOOT, 12345.678901, None),
        ("[Mon Aug 24 10:00:00 2026] NVRM: x", Clock.WALL, TEN, 2026),
        ("Aug 24 10:00:00 box kernel: NVRM: x", Clock.WALL, TEN, None),
        ("2026-08-24T10:00:00,500000+00:00 NVRM: x", Clock.WALL, TEN + 0.5, 2026),
        ("3,1234,12345678901,-;NVRM: x", Clock.BOOT, 12345.678901, None),
        ("kern  :err   : [12345.678901] NVRM: x", Clock.BOOT, 12345.678901, None),
        ("<3>[12345.678901] NVRM: x", Clock.BOOT, 12345.678901, None),
        ("[12345.678901][ T1234] NVRM: x", Clock.BOOT, 12345.678901, None),
    ],
)
def test_the_kernel_log_is_read_in_each_of_its_time_formats(
    line: str, clock: Clock, seconds: float, year: int | None
) -> None:
    read = peel(line, 1)
    assert read.text == "NVRM: x"
    assert read.prefix.time is not None
    assert read.prefix.time.clock is clock
    assert read.prefix.time.seconds == pytest.approx(seconds)
    assert read.prefix.time.year == year
    assert read.prefix.process == "kernel"


@pytest.mark.parametrize(
    ("line", "engine", "rank", "text"),
    [
        ("[2026-08-24 10:00:00 DP1 TP0] Decode batch.", "sglang", "DP1_TP0", "Decode batch."),
        ("[2026-08-24 10:00:00] server_args=X", "sglang", None, "server_args=X"),
        ("[08/24/2026-10:00:00] [TRT-LLM] [RANK 3] [E] bad", "tensorrt-llm", "rank3", "bad"),
        ("[08/24/2026-10:00:00] [TRT-LLM] [I] good", "tensorrt-llm", None, "good"),
        ("[rank3]:[E824 10:00:00.1 X.cpp:1] y", None, "rank3", "[E824 10:00:00.1 X.cpp:1] y"),
        ("[rank3]:[E0824 10:00:00.123456789 X.cpp:1] y", None, "rank3", "y"),
        (
            "[rank0]: Traceback (most recent call last):",
            None,
            "rank0",
            "Traceback (most recent call last):",
        ),
        ("[1,2]<stderr>: bad", None, "rank2", "bad"),
        ("box:123:456 [2] NCCL WARN bad", None, None, "NCCL WARN bad"),
    ],
)
def test_prefixes_of_other_engines_and_of_torch(
    line: str, engine: str | None, rank: str | None, text: str
) -> None:
    read = peel(line, 1)
    assert (read.text, read.prefix.engine, read.prefix.rank) == (text, engine, rank)


def test_indentation_behind_a_record_header_is_kept() -> None:
    line = '(Worker_TP0 pid=7) ERROR 08-24 10:00:00 [core.py:12]   File "a.py", line 3, in f'
    assert peel(line, 1).text == '  File "a.py", line 3, in f'


def test_rays_repetitions_are_counted() -> None:
    line = "(RayWorkerWrapper pid=7, ip=fd00::1) CUDA error: x [repeated 7x across cluster]"
    read = peel(line, 1)
    assert (read.text, read.prefix.repeats) == ("CUDA error: x", 7)


def test_of_a_line_drawn_over_the_last_drawing_counts() -> None:
    drawn = "Capturing: 10%|#  | 1/3\rCapturing: 99%|###| 3/3"
    assert peel(drawn, 1).text == "Capturing: 99%|###| 3/3"


def test_a_date_that_is_none_gives_no_time() -> None:
    for stamp in ("13-24 10:00:00", "02-30 10:00:00", "08-24 25:00:00"):
        assert peel(f"ERROR {stamp} [core.py:12] X", 1).prefix.time is None
    leap = peel("ERROR 02-29 10:00:00 [core.py:12] X", 1).prefix.time
    assert leap is not None
    assert leap.seconds == (31 + 28) * DAY + 10 * 3600


def test_plain_text_keeps_all_of_itself() -> None:
    for text in ("hello", "", "[x] y", "{not json", "(no pid) z", "12 monkeys"):
        read = peel(text, 1)
        assert read.text == text
        assert read.prefix.key == (None, None)
