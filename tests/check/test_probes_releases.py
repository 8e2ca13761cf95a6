"""What the probes say of 35 releases, against what was read in them: value, file and line.

The tables in releases/ were written down from the wheels before there were probes, in words of
their own; `WORDS` says which answer a word stands for. "—" is a release without the subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from specrepro.repro.check.builds import Builds
from specrepro.repro.check.probes import PROBES
from specrepro.repro.check.source import Reading, Source, look
from specrepro.repro.errors import SpecreproError

pytestmark = pytest.mark.network

TABLES = Path(__file__).parent / "releases"
V2 = "v1/worker/gpu"
FILES = {
    "ARG": "engine/arg_utils.py",
    "EAG": "v1/spec_decode/eagle.py",
    "GDN": "v1/attention/backends/gdn_attn.py",
    "GMR": "v1/worker/gpu_model_runner.py",
    "GUM": f"{V2}/sample/gumbel.py",
    "KVM": "v1/core/kv_cache_manager.py",
    "LBP": "v1/spec_decode/llm_base_proposer.py",
    "MCF": "model_executor/models/config.py",
    "MH": f"{V2}/model_states/mamba_hybrid.py",
    "MU": "v1/worker/mamba_utils.py",
    "SCH": "v1/core/sched/scheduler.py",
    "SDU": "v1/spec_decode/utils.py",
    "SPC": "config/speculative.py",
    "V2BT": f"{V2}/block_table.py",
    "V2ar/": f"{V2}/spec_decode/autoregressive/speculator.py",
    "V2eagle": f"{V2}/spec_decode/eagle.py",
    "V2eagle/": f"{V2}/spec_decode/eagle/speculator.py",
    "V2tdar/": f"{V2}/spec_decode/target_dependent_ar/speculator.py",
    "VCF": "config/vllm.py",
}
PLACE = re.compile(r"(?P<file>[A-Z][A-Za-z0-9]*/?):(?P<line>\d+)")
NONE = "no runner V2"
# probe → word of the table → the answers that agree with it
WORDS: dict[str, dict[str, tuple[str | None, ...]]] = {
    "schedule_trim": {"": ("trimmed",)},
    "allocation_clamp": {"": ("clamped",)},
    "draft_gate": {"": ("L-k",), "+dflash": ("L-k, one less for DFlash",)},
    "shut_gate": {"—": ("no drafts",), "async-only": ("async zeros",), "always": ("zeros",)},
    "v1_draft_position": {"inline": ("masked",), "kernel, wraps": ("starts again",)},
    "auto_fit": {"n/a": ("no auto-fit",), "stale": ("stale",)},
    "v2_draft_position": {"—": (NONE,), "clamp": ("clamped",)},
    # the table counts as — what writes silently
    "v2_row": {"—": (NONE, "silent"), "raise": ("raises",)},
    "rank_dummy_step": {"—": ("no step",), "": ("dummy step",)},
    "plan_buffers": {"yes": ("pinned",), "no": ("pageable",)},
    "draft_length": {"": ("own",)},
    "lowered_target": {"—": (NONE, "kept"), "warn + lower target": ("lowered",)},
    "gate_log": {"no": ("silent",)},
    "v2_fused_update": {"—": (NONE, "no fused path"), "": ("each step",)},
    "v2_logits_column": {
        "—": (NONE,),
        "no cached logits": ("no cache",),
        "python slice (processed_logits_out)": ("slice",),
        "device col (output_processed_logits_col)": ("device",),
        "device col (logits_cache_col)": ("device",),
    },
    "v1_metadata": {"": ("each step",)},
    "state_copy_tables": {
        "—": (NONE, "no state copy"),
        "gathered": ("gathered",),
        "per-request": ("per request",),
    },
    "state_copy_row": {
        "—": (NONE, "no state copy"),
        "BATCH ROW (0)": ("batch",),
        "REQ SLOT (5)": ("request",),
    },
    "zero_draft_rows": {"lost": ("lost",), "ok": ("kept",)},
    "first_chunk": {"no": ("by length",), "yes": ("prefill",)},
    "v2_aligned_state": {
        "—": (NONE, "no hybrid state"),
        "no": ("not aligned",),
        "yes": ("aligned",),
    },
    # the table counts as unguarded what has no mapping that could be -1
    "padding_row": {"—": (NONE,), "no": ("looked up", "no mapping"), "yes": ("guarded",)},
    "state_metadata": {"no": ("built",), "yes": ("reused",)},
    "cache_layout": {"shared_by": ("shared",), "strided layers": ("strided",)},
    "stage_without_state": {"—": (None,), "kept": ("kept",), "dropped/assert": ("left out",)},
    "draft_group": {"no": ("not known",), "yes": ("known",)},
    "draft_group_stage": {"—": (None,), "lost": ("lost",), "kept": ("kept",)},
}


@dataclass(frozen=True)
class Row:
    release: str
    cells: dict[str, str]


def rows(name: str) -> list[Row]:
    lines = (TABLES / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    head, *body = [[cell.strip() for cell in line.split("|")] for line in lines]
    return [Row(cells[0], dict(zip(head[1:], cells[1:], strict=True))) for cells in body]


TAIL, GATE, STALE, GDN = (
    {row.release: row.cells for row in rows(name)} for name in ("tail", "gate", "stale", "gdn")
)


@pytest.fixture(scope="module")
def builds() -> Iterator[Builds]:
    with Builds() as opened:
        try:
            opened.versions("0.11.0..0.33.0")
        except SpecreproError as error:
            pytest.skip(f"the package index cannot be read: {error}")
        yield opened


@pytest.fixture(scope="module", params=list(TAIL))
def release(request: pytest.FixtureRequest, builds: Builds) -> tuple[str, Source]:
    tree = builds.open(request.param)
    try:
        return request.param, look(tree, PROBES)
    finally:
        tree.close()


def place(cell: str) -> tuple[str, int] | None:
    match = PLACE.search(cell)
    return (f"vllm/{FILES[match['file']]}", int(match["line"])) if match else None


def differences(probe: str, cell: str, reading: Reading) -> Iterator[str]:
    word = " ".join(PLACE.sub("", cell).split())
    allowed = WORDS[probe][word]
    if reading.value not in allowed:
        yield f"{probe}: {reading.value} ({reading.detail}), the table has {cell!r}"
    wanted = place(cell)
    if wanted is not None and (reading.path, reading.line) != wanted:
        yield f"{probe}: at {reading.path}:{reading.line}, the table has {cell!r}"


def test_a_release_answers_as_it_was_read(release: tuple[str, Source]) -> None:
    version, source = release
    said = source.readings
    found = [
        line
        for table in (TAIL, GATE, STALE, GDN)
        for probe, cell in table[version].items()
        if probe in WORDS
        for line in differences(probe, cell, said[probe])
    ]
    assert found == []


def test_overrides_reach_the_draft_as_it_was_read(release: tuple[str, Source]) -> None:
    version, source = release
    cell = GATE[version]["overrides"]
    for probe, word in zip(("dict_override", "callable_override"), cell.split(" / "), strict=True):
        reading = source.readings[probe]
        assert reading.value == {"no": "lost", "yes": "applied"}[word.split()[0]]
        assert (reading.path, reading.line) == place(cell)


def test_the_rope_table_of_a_draft_is_as_it_was_read(release: tuple[str, Source]) -> None:
    version, source = release
    cell, reading = GATE[version]["draft_rope_length"], source.readings["draft_rope_length"]
    assert isinstance(reading.value, dict)
    raised = {key for key, value in reading.value.items() if value == "raised"}
    if cell == "—":
        assert raised == set()
        return
    methods, ropes = cell.split(" (")
    wanted = {f"{method} default" for method in methods.split("+")}
    if ropes.startswith("any rope"):
        wanted |= {f"{method} yarn" for method in methods.split("+")}
    assert raised == wanted
    assert (reading.path, reading.line) == place(cell)
    # a wrapper of a text_config is passed over by all of them
    assert reading.detail.endswith("in a text_config of its own it is kept")


def test_layers_of_qwen_are_built_of_the_targets_configuration(
    release: tuple[str, Source],
) -> None:
    version, source = release
    value = source.readings["draft_rope_source"].value
    # Qwen3.5 came with 0.17.0
    later = {"qwen3_5": "target"} if tuple(map(int, version.split("."))) >= (0, 17) else {}
    assert value == {"qwen3_next": "target"} | later


# of whose configuration a family's MTP layers are built, and since when it is the draft's
BUILT_OF = {
    "target": ("qwen3_5", "qwen3_next", "mimo", "glm4_moe", "ernie", "exaone_moe", "hy_v3",
               "longcat_flash"),
    "draft": ("deepseek", "glm4_moe_lite", "glm_ocr", "openpangu", "gemma4"),
}  # fmt: skip
MOVED_TO_DRAFT = {"deepseek": (0, 11, 1), "nemotron_h": (0, 30), "step3p5": (0, 32)}


def test_layers_of_each_family_are_built_of_the_configuration_that_was_read(
    release: tuple[str, Source],
) -> None:
    version, source = release
    value = source.readings["draft_rope_families"].value
    assert isinstance(value, dict)
    number = tuple(map(int, version.split(".")))
    expected = {family: whose for whose, families in BUILT_OF.items() for family in families}
    expected |= {
        family: "draft" if number >= first else "target" for family, first in MOVED_TO_DRAFT.items()
    }
    assert {f: whose for f, whose in value.items() if f in expected} == {
        f: whose for f, whose in expected.items() if f in value
    }
    assert {"deepseek", "mimo", "qwen3_next", "glm4_moe", "ernie", "longcat_flash"} <= value.keys()
    # asks the same question of two of these files
    assert source.readings["draft_rope_source"].value == {
        family: value[family] for family in value if family in ("qwen3_5", "qwen3_next")
    }


def test_metadata_of_draft_steps_is_built_as_it_was_read(release: tuple[str, Source]) -> None:
    version, source = release
    eager, graph = (source.readings[f"v2_{mode}_metadata"] for mode in ("eager", "graph"))
    cell = STALE[version]["v2_metadata"]
    number = tuple(map(int, version.split(".")))
    if cell == "—":
        assert (eager.value, graph.value) == (NONE, NONE)
    elif cell.startswith("NO"):
        # full graphs: nothing is built before the replay up to 0.18.1
        assert (eager.value, graph.value) == ("once", "never" if number < (0, 19) else "once")
        assert (eager.path, eager.line) == place(cell)
    else:
        assert cell.startswith("yes (3 of 3)")
        assert (eager.value, graph.value) == ("each step", "each step")
        assert "3 builds for 3 draft steps" in eager.detail
        assert (eager.path, eager.line) == (graph.path, graph.line) == place(cell)


def test_the_host_builds_for_fused_steps_as_often_as_was_counted(
    release: tuple[str, Source],
) -> None:
    version, source = release
    cell, detail = STALE[version]["fused_builds"], source.readings["v2_fused_update"].detail
    counts = re.fullmatch(r"NONE:(\d)b/\S+ FULL:(\d)b/\S+", cell)
    assert (counts is None) == (cell == "—")
    if counts is None:
        assert "the host builds" not in detail
    else:
        said = "builds it {} times before an eager loop, {} before a full graph"
        assert said.format(*counts.groups()) in detail


def test_drafts_can_be_scheduled_again_in_0_11_0_alone(release: tuple[str, Source]) -> None:
    version, source = release
    expected = "kept" if version == "0.11.0" else "cleared"
    assert source.readings["old_drafts"].value == expected


def test_every_probe_is_asked_of_every_release() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    by_mode = {"v2_eager_metadata", "v2_graph_metadata"}
    assert [probe for probe in PROBES if f'"{probe}"' not in text and probe not in by_mode] == []


def test_defaults_are_as_they_were_read(release: tuple[str, Source]) -> None:
    version, source = release
    cells, said = GDN[version], source.readings
    runner = said["default_runner"]
    assert isinstance(runner.value, dict)
    hybrid = cells["default_runner"].split()[0].lower()
    assert [runner.value[f"hybrid pp{n}"] for n in (1, 2)] == [hybrid, hybrid]
    dense = "v1" if tuple(map(int, version.split("."))) < (0, 25) else "v2"
    assert [runner.value[f"dense pp{n}"] for n in (1, 2)] == [dense, dense]
    if place(cells["default_runner"]):
        assert (runner.path, runner.line) == place(cells["default_runner"])

    caching = said["default_prefix_caching"]
    hybrid = cells["default_prefix_caching"].split()[0]
    assert caching.value == {"dense": "on", "hybrid": hybrid}
    assert (caching.path, caching.line) == place(cells["default_prefix_caching"])

    scheduling = said["default_async"].value
    assert isinstance(scheduling, dict)
    if cells["default_async"] != "—/—":
        words = {"T": "on", "F": "off"}
        wanted = [words[word] for word in cells["default_async"].split("/")]
        assert [scheduling[f"{r} pp2 align"] for r in ("v1", "v2")] == wanted
        # in one stage with MTP: on since 0.14.0, but not with cached recurrent state in 0.16.0
        on = "on" if tuple(map(int, version.split("."))) >= (0, 14) else "off"
        aligned = "off" if version == "0.16.0" else on
        assert [scheduling[f"v1 pp1{kind}"] for kind in ("", " align")] == [on, aligned]
    else:
        assert set(scheduling.values()) == {"off"}


def test_no_release_bounds_the_accepted_count(release: tuple[str, Source]) -> None:
    _, source = release
    reading = source.readings["accepted_count"]
    assert (reading.value, reading.how) == ("unchecked", "ran")
    assert "count 0: index -1" in reading.detail


def test_the_library_is_not_part_of_a_wheel(release: tuple[str, Source]) -> None:
    _, source = release
    assert source.readings["library_plan_buffer"].value is None
