"""The rules are data: checked, compiled as they are, and their pages are made of them."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from specrepro.repro.case import FAULT_CLASSES, shipped_cases
from specrepro.repro.diagnose import compilation, conditions
from specrepro.repro.diagnose.class_page import index, markdown
from specrepro.repro.diagnose.match import POSSIBLE, Standing, match
from specrepro.repro.diagnose.names import NAMES, SIGNS
from specrepro.repro.diagnose.rules import COMPILED, FOLDER, load
from specrepro.repro.diagnose.situation import How, Seen, Situation
from specrepro.repro.errors import UsageError

ROOT = Path(__file__).parents[2]
KNOWN = load()
CLASS_IDS = [one.id for one in KNOWN.classes]


def situation(how: How = How.OBSERVED, **values: object) -> Situation:
    seen = {n.rstrip("_"): Seen((v,), how) for n, v in values.items()}  # type: ignore[arg-type]
    return Situation(seen)


def standing(one: str, known: Situation) -> Standing:
    return next(r.standing for r in match(KNOWN.classes, known) if r.fault_class.id == one)


def test_there_is_one_file_for_each_fault_class_and_it_has_its_number() -> None:
    assert {one.number: one.id for one in KNOWN.classes} == dict(FAULT_CLASSES)
    assert {path.stem for path in FOLDER.glob("classes/*.yaml")} == set(FAULT_CLASSES.values())


def test_the_compiled_rules_are_those_of_the_files() -> None:
    assert json.loads(COMPILED.read_bytes()) == compilation.compiled(), (
        "python -m specrepro.repro.diagnose.compilation docs/classes"
    )


@pytest.mark.parametrize("one", KNOWN.classes, ids=CLASS_IDS)
def test_the_page_of_a_class_is_made_of_its_rules(one: object) -> None:
    name = one.id  # type: ignore[attr-defined]
    page = ROOT / "docs" / "classes" / f"{name}.md"
    assert page.read_text(encoding="utf-8") == markdown(one, KNOWN)  # type: ignore[arg-type]


def test_the_list_of_classes_in_the_docs_is_that_of_the_rules() -> None:
    assert index(KNOWN) in (ROOT / "docs" / "diagnose.md").read_text(encoding="utf-8")


def test_the_case_of_a_class_is_shipped_and_names_the_class() -> None:
    classes = {}
    for path in shipped_cases():
        case = yaml.safe_load(path.read_text(encoding="utf-8"))
        classes[path.stem] = case["class"]
    named = {one.case: one.id for one in KNOWN.classes if one.case}
    assert named
    assert {case: classes[case] for case in named} == named


def test_every_name_of_the_vocabulary_is_used_by_a_rule_or_shown() -> None:
    used = {
        name
        for one in KNOWN.classes
        for when in [clue.when for clue in one.clues] + [w for n in one.must for w in n.whens]
        for name in when
    }
    assert used <= NAMES.keys()
    claims = {
        claim
        for one in KNOWN.classes
        for clue in one.clues
        for claim in ([clue.when["claim"]] if "claim" in clue.when else [])
    }
    assert claims <= KNOWN.claims.keys()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"explains": ["illegal_acess"]}, "illegal_acess"),
        ({"colour": "red"}, "colour"),
        (
            {"prior": None, "for": [{"when": {"spec": "on"}, "weight": -1, "says": "x"}]},
            "weight -1",
        ),
        ({"for": [{"when": {"speck": "on"}, "weight": 1, "says": "x"}]}, "speck"),
        ({"for": [{"when": {"frame": "~("}, "weight": 1, "says": "x"}]}, "no pattern"),
        ({"for": [{"when": {"k": 1}, "weight": 1, "says": "{kk}"}]}, "kk"),
        ({"experiments": {"pray": 0.5}}, "pray"),
        ({"experiments": {"eager": 1.0}}, "certain"),
        ({"asks": ["weather"]}, "weather"),
        ({"ignores": ["moon"]}, "moon"),
        ({"cause": "sure"}, "sure"),
    ],
)
def test_a_rule_file_that_is_wrong_is_refused_and_said_why(
    change: dict[str, object], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("classes", "knowledge"):
        (tmp_path / folder).mkdir()
        for path in FOLDER.glob(f"{folder}/*.yaml"):
            (tmp_path / folder / path.name).write_bytes(path.read_bytes())
    path = tmp_path / "classes" / "hang.yaml"
    data = yaml.safe_load(path.read_text(encoding="utf-8")) | change
    path.write_text(yaml.safe_dump(data), encoding="utf-8")
    monkeypatch.setattr(compilation, "FOLDER", tmp_path)
    with pytest.raises(UsageError) as caught:
        compilation.compiled()
    assert said in str(caught.value)
    assert "hang.yaml" in str(caught.value)


def test_an_unknown_name_is_neither_true_nor_false() -> None:
    known = situation(spec="on")
    assert conditions.holds({"spec": "on"}, known) is True
    assert conditions.holds({"spec": "off"}, known) is False
    assert conditions.holds({"k": ">=2"}, known) is None
    assert conditions.holds({"k": ">=2", "spec": "off"}, known) is False
    assert conditions.holds({"k": "unknown"}, known) is True
    assert conditions.holds({"xid": 31}, Situation({}, frozenset({"xid"}))) is False


@given(
    st.tuples(*[st.integers(0, 60)] * 3),
    st.tuples(*[st.integers(0, 60)] * 3),
    st.sampled_from(["", "+cu130", ".post1"]),
)
def test_versions_compare_by_their_numbers(
    one: tuple[int, ...], other: tuple[int, ...], suffix: str
) -> None:
    known = situation(release=".".join(map(str, one)) + suffix)
    bound = ".".join(map(str, other))
    assert conditions.holds({"release": f">={bound}"}, known) is (one >= other)
    assert conditions.holds({"release": f"<{bound}"}, known) is (one < other)


def test_a_build_before_a_release_is_less_than_it() -> None:
    for text in ("0.29.0rc1", "0.29.0.dev12+gabc", "0.29.0a2"):
        assert conditions.holds({"release": "<0.29.0"}, situation(release=text)) is True


@given(st.text(max_size=40))
def test_any_text_as_a_version_is_compared_or_is_none(text: str) -> None:
    answer = conditions.holds({"release": ">=0.1.0"}, situation(release=text))
    assert answer in (True, False)


def test_what_a_class_needs_and_lacks_excludes_it_only_if_it_was_observed() -> None:
    seen = {"symptom": "illegal_access", "engine": "vllm", "spec": "on", "k": 4}
    assert standing("stale-draft-metadata", situation(**seen, runner="v1")) == Standing.EXCLUDED
    told = situation(**seen)
    claimed = Situation({**told.seen, "runner": Seen(("v1",), How.CLAIMED)})
    default = Situation({**told.seen, "runner": Seen(("v1",), How.DEFAULT)})
    assert standing("stale-draft-metadata", claimed) != Standing.EXCLUDED
    assert standing("stale-draft-metadata", default) != Standing.EXCLUDED


def test_a_version_excludes_only_where_its_code_was_read_and_nothing_beneath_has_a_copy() -> None:
    seen = {"symptom": "acceptance_loss", "engine": "vllm", "spec": "on", "runner": "v2", "k": 4}
    seen |= {"acceptance": "late"}
    one = "stale-draft-metadata"
    assert standing(one, situation(**seen, release="0.20.2")) == Standing.LIKELY
    assert standing(one, situation(**seen, release="0.21.0")) == Standing.EXCLUDED
    # from 0.28.0 backends update in the loop: not the same code
    assert standing(one, situation(**seen, release="0.28.0")) != Standing.EXCLUDED
    # nobody has read this one
    assert standing(one, situation(**seen, release="0.99.0")) != Standing.EXCLUDED
    crash = {"symptom": "illegal_access", "engine": "vllm", "spec": "on", "k": 4, "access": "read"}
    crash |= {"backend": "FLASHINFER", "gpus_at_once": 2}
    assert standing("plan-buffer-race", situation(**crash, release="0.33.0")) != Standing.EXCLUDED


def test_settings_alone_make_no_class_likely() -> None:
    for one in KNOWN.classes:
        for clue in one.clues:
            if clue.weight > 2.0:
                assert not SIGNS.keys().isdisjoint(clue.when) or one.id == "draft-length-gate"
    seen = {"symptom": "illegal_access", "engine": "vllm", "release": "0.29.0", "runner": "v2"}
    known = situation(**seen, hybrid="yes", prefix_caching="on", pp=3, explicit_block_size="yes")
    assert standing("mamba-block-addressing", known) == Standing.POSSIBLE


VALUES = {
    "symptom": ["illegal_access", "device_assert", "hang", "garbage", "acceptance_loss"],
    "access": ["read", "write"],
    "runner": ["v1", "v2"],
    "spec": ["on", "off"],
    "async": ["on", "off"],
    "hybrid": ["yes", "no"],
    "prefix_caching": ["on", "off"],
    "eager": ["yes", "no"],
    "engine": ["vllm", "sglang"],
    "release": ["0.19.1", "0.27.1", "0.33.0"],
    "acceptance": ["zero", "late", "healthy", "falling"],
    "draft_shorter": ["yes", "no"],
    "backend": ["FLASHINFER", "FLASH_ATTN"],
}
SITUATIONS = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values) for name, values in VALUES.items()}
)


@given(SITUATIONS)
def test_every_class_has_one_standing_that_follows_from_its_score(values: dict[str, str]) -> None:
    ranked = match(KNOWN.classes, situation(**values))
    assert sorted(r.fault_class.id for r in ranked) == sorted(CLASS_IDS)
    for one in ranked:
        assert math.isfinite(one.score)
        if one.standing in (Standing.LIKELY, Standing.POSSIBLE):
            assert one.score >= POSSIBLE
            assert one.pro
            assert values.get("symptom") in one.fault_class.explains
        if one.standing is Standing.LIKELY:
            assert not one.unmet
        if one.standing is Standing.EXCLUDED:
            assert one.contra


@given(SITUATIONS)
def test_what_is_claimed_never_excludes_and_weighs_less(values: dict[str, str]) -> None:
    observed = {r.fault_class.id: r for r in match(KNOWN.classes, situation(**values))}
    for one in match(KNOWN.classes, situation(How.CLAIMED, **values)):
        assert one.standing is not Standing.EXCLUDED
        if observed[one.fault_class.id].standing is not Standing.EXCLUDED:
            total = sum(s.weight or 0 for s in one.pro)
            assert total <= sum(s.weight or 0 for s in observed[one.fault_class.id].pro) + 1e-9


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        ("async_off_works", "With --no-async-scheduling the same load is clean."),
        ("async_off_works", "It works fine without async scheduling"),
        ("eager_works", "--enforce-eager hides it"),
        ("eager_fails", "It also crashes with --enforce-eager"),
        ("prefix_off_works", "Disabling prefix caching fixes it"),
        ("prefix_off_fails", "Without prefix caching it still happens"),
        ("mtp_off_works", "Without MTP it is stable"),
        ("restart_clears", "A restart clears it"),
        ("salt_clears", "With another cache_salt it is right"),
        ("prefix_second", "The second request with the same prefix dies"),
        ("threshold", "87382 good, 87383 bad"),
        ("threshold", "87382 OK, 87383 illegal memory access"),
        ("moe_skip_off_works", "VLLM_MOE_SKIP_PADDING=0 fixes it"),
        ("prefix_on", "on exact 2176-token prefix hits"),
        ("intermittent", "Random crashes after several hours"),
        ("custom_allreduce_off_works", "fixed by --disable-custom-all-reduce"),
        ("near_limit", "only near the max-model-len"),
    ],
)
def test_claims_are_known_by_their_words(claim: str, sentence: str) -> None:
    assert re.search(KNOWN.claims[claim], sentence, re.IGNORECASE)
