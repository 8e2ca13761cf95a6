import hashlib

import pytest

from specrepro.repro.case import load_case
from specrepro.repro.check.defects import Defect, Route
from specrepro.repro.errors import CaseError, Exit
from specrepro.repro.records import Cause, Kind

# old text → new text, line:column, key, words of the message, words of the hint
REFUSED = {
    "unknown key": ("sweep:", "sweeps:", "10:1", "sweeps", "unknown key; allowed", "`sweep`"),
    "misspelt required key": ("cause:", "cuase:", "6:1", "cuase", "unknown key", "`cause`"),
    "missing key": ("cause: contested\n", "", "1:1", "cause", "is missing", None),
    "schema of the future": ("schema: 1", "schema: 2", "1:1", "schema", "must be 1, not 2", None),
    "schema as text": ("schema: 1", "schema: '1'", "1:1", "schema", "must be 1, not `1`", None),
    "number for text": ("A small case", "12", "3:1", "title", "must be text, not 12", None),
    "title of two lines": ("A small case", '"a\\nb"', "3:1", "title", "on one line", None),
    "empty claim": ("It is small.", '""', "5:1", "claim", "at least 1 characters", None),
    "long claim": ("It is small.", "x" * 4001, "5:1", "claim", "at most 4000 characters", None),
    "id in capitals": ("small-case", "Small_Case", "2:1", "id", "joined by -", None),
    "id of a path": ("small-case", "../x", "2:1", "id", "not `../x`", None),
    "http report": ("https://github", "http://github", "4:1", "report", "https://", None),
    "report with a password": ("github.com/", "u:p@github.com/", "4:1", "report", "https", None),
    "cause": ("contested", "contestet", "6:1", "cause", "confirmed, contested", "`contested`"),
    "class by number": ("mtp-tail-overflow", "C22", "7:1", "class", "one of", "C22 is `mtp-tail"),
    "class": ("mtp-tail-overflow", "mtp-tail", "7:1", "class", "one of", "`mtp-tail-overflow`"),
    "scenario": ("stairs", "stair", "8:1", "scenario", "unknown scenario `stair`", "`stairs`"),
    "params as a list": ("{length: 8, step: 2}", "[1]", "9:1", "params", "a mapping, not", None),
    "list for a parameter": ("length: 8", "length: [8]", "9:10", "params.length", "single", None),
    "unknown parameter": ("length: 8", "lenght: 8", "9:10", "params.lenght", "known", "`length`"),
    "text for a number": ("length: 8", "length: '8'", "9:10", "params.length", "1..100", None),
    "true for a number": ("length: 8", "length: true", "9:10", "params.length", "true", None),
    "out of range": ("length: 8", "length: 101", "9:10", "params.length", "in 1..100", None),
    "not a choice": ("step: 2", "step: 3", "9:21", "params.step", "one of 1, 2, 4, not 3", None),
    "sweep of a stranger": ("{length: [", "{depth: [", "10:9", "sweep.depth", "unknown", None),
    "unknown variant": (
        "{variant: sound,",
        "{variant: broken, clean: true}\n  - {variant: sounds,",
        "13:3",
        "variants.sound",
        "no entry of `expect` says what this variant must show (and 1 more problem)",
        None,
    ),
    "sweep range": ("[6, 8, 10]", "6-10", "10:9", "sweep.length", '"56..64"', None),
    "downward sweep": ("[6, 8, 10]", "10..6", "10:9", "sweep.length", "downwards", None),
    "empty sweep": ("[6, 8, 10]", "[]", "10:9", "sweep.length", "range", None),
    "sweep out of range": ("[6, 8, 10]", "90..101", "10:9", "sweep.length", "not 101", None),
    "endless sweep": ("[6, 8, 10]", "0..999999999999999", "10:1", "sweep", "at most 10,000", None),
    "sweep of text": (
        "length: [6, 8, 10]",
        'mode: "6..10"',
        "10:9",
        "sweep.mode",
        "list its values",
        None,
    ),
    "setting": ("guard: none", "gard: none", "12:12", "variants.broken.gard", "set", "`guard`"),
    "setting's value": ("guard: full", "guard: ful", "13:11", "variants.sound.guard", "", "`full`"),
    "meta key": ("guard: full", "fix: true", "13:11", "variants.sound.fix", "unknown", None),
    "one variant": ("  sound: {guard: full}\n", "", "11:1", "variants", "at least 2", None),
    "variant's name": ("  sound:", "  So-und:", "13:3", "variants.So-und", "a-z", None),
    "unjudged variant": (
        "variant: sound",
        "variant: broken",
        "13:3",
        "variants.sound",
        "no entry",
        None,
    ),
    "neither": (", clean: true", "", "16:5", "expect[1]", "either `finding` or `clean", None),
    "both": ("finding:", "clean: true, finding:", "15:5", "expect[0]", "either", None),
    "clean: false": ("clean: true", "clean: false", "16:22", "expect[1].clean", "true", None),
    "all clean": (
        "finding: {kind: trap, op: kv_write}",
        "clean: true",
        "14:1",
        "expect",
        "a fault",
        None,
    ),
    "none clean": ("clean: true", "finding: {kind: trap}", "14:1", "expect", "sound", None),
    "kind": ("kind: trap", "kind: trop", "15:50", "expect[0].finding.kind", "one of", "`trap`"),
    "finding without kind": (
        "kind: trap, ",
        "",
        "15:40",
        "expect[0].finding.kind",
        "missing",
        None,
    ),
    "key of a finding": ("op: kv", "opp: kv", "15:62", "expect[0].finding.opp", "unknown", "`op`"),
    "op": ("kv_write", "kv_writ", "15:62", "expect[0].finding.op", "unknown op", "`kv_write`"),
    "when": ("{step: 2}, f", "{stp: 2}, f", "15:30", "expect[0].when.stp", "unknown", "`step`"),
    "when's value": (
        "{step: 2}, f",
        "{step: 3}, f",
        "15:30",
        "expect[0].when.step",
        "1, 2, 4",
        None,
    ),
    "when's list": ("{step: 2}, f", "{step: []}, f", "15:30", "expect[0].when.step", "empty", None),
    "tensor of a finding": (
        "op: kv_write",
        "tensor: cash",
        "15:62",
        "expect[0].finding.tensor",
        "unknown tensor `cash`; known are cache, rows, out",
        "`cache`",
    ),
    "point of a sweep": (
        "[6, 8, 10]",
        "[6, 8, 9]",
        "10:1",
        "sweep",
        "variant broken: 2 does not divide length 9 (length=9, step=2)",
        None,
    ),
    "more points of a when than are allowed": (
        "{step: 2}, f",
        f"{{length: {list(range(1, 101))}, rate: {[n / 100 for n in range(101)]}}}, f",
        "15:23",
        "expect[0].when",
        "more than 10,000 points",
        None,
    ),
    "point of a when": (
        "{step: 2}, f",
        "{step: 2, length: [8, 10, 7]}, f",
        "15:30",
        "expect[0].when.step",
        "variant broken: 2 does not divide length 7 (step=2, length=7)",
        None,
    ),
    "lane": ("emulator]", "emulater]", "17:20", "lanes[1]", "one of reference", "`emulator`"),
    "lane twice": ("emulator]", "reference]", "17:20", "lanes[1]", "second time", None),
    "no lane": ("[reference, emulator]", "[]", "17:1", "lanes", "at least 1", None),
    "tensor": ("cache: block", "cash: block", "18:10", "owners.cash", "tensor", "`cache`"),
    "unit": ("cache: block", "cache: blok", "18:10", "owners.cache", "block, row", "`block`"),
    "of a setting": ("guard: full", "guard: half", "13:11", "variants.sound.guard", "half a", None),
    "check as text": ("owners:", "check: rm\nowners:", "18:1", "check", "a mapping", None),
    "check without defects": (
        "owners:",
        "check: {}\nowners:",
        "18:1",
        "check.defects",
        "missing",
        None,
    ),
    "probe": (
        "owners:",
        "check: {defects: {a: {says: x, acts: [{code: {draft_gat: L-k}}]}}}\nowners:",
        "18:47",
        "check.defects.a.acts[0].code.draft_gat",
        "unknown probe",
        "`draft_gate`",
    ),
    "answer of a probe": (
        "owners:",
        "check: {defects: {a: {says: x, acts: [{code: {draft_gate: too lat}}]}}}\nowners:",
        "18:47",
        "check.defects.a.acts[0].code.draft_gate",
        "draft_gate answers L-k",
        "`too late`",
    ),
    "setting of an engine": (
        "owners:",
        "check: {defects: {a: {says: x, acts: [{code: {draft_gate: L-k}, settings: {runer: v1}}]}}}"
        "\nowners:",
        "18:76",
        "check.defects.a.acts[0].settings.runer",
        "unknown setting",
        "`runner`",
    ),
    "value of an engine's setting": (
        "owners:",
        "check: {defects: {a: {says: x, acts: [{code: {draft_gate: L-k}, settings: {k: 0}}]}}}"
        "\nowners:",
        "18:76",
        "check.defects.a.acts[0].settings.k",
        "a number from 1",
        None,
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_an_invalid_case_is_refused_with_line_column_and_key(name, good, write, scenarios) -> None:
    old, new, place, key, words, hint = REFUSED[name]
    assert old in good
    path = write(good.replace(old, new, 1))
    with pytest.raises(CaseError) as caught:
        load_case(path, scenarios)
    error = caught.value
    assert (error.where, error.key) == (f"{path}:{place}", key)
    assert words in error.message
    assert (error.hint is None) == (hint is None)
    assert hint is None or hint in error.hint
    assert error.exit_status is Exit.USAGE


def test_a_contradiction_of_parameters_is_blamed_on_the_key_the_scenario_names(
    good, write, scenarios
) -> None:
    path = write(good.replace("length: 8", "length: 7"))
    with pytest.raises(CaseError) as caught:
        load_case(path, scenarios)
    assert str(caught.value) == f"{path}:9:21: 2 does not divide length 7"
    assert caught.value.key == "params.step"


def test_a_contradiction_with_a_default_is_blamed_on_params(good, write, scenarios) -> None:
    path = write(good.replace("{length: 8, step: 2}", "{length: 7}"))
    with pytest.raises(CaseError) as caught:
        load_case(path, scenarios)
    assert (caught.value.where, caught.value.key) == (f"{path}:9:1", "params.step")


def test_a_point_of_a_when_must_go_with_every_variant_that_runs_there(
    good, write, scenarios
) -> None:
    text = good.replace("step: 2}\nsw", "step: 1}\nsw").replace("guard: full", "guard: half")
    path = write(text)
    with pytest.raises(CaseError) as caught:
        load_case(path, scenarios)
    assert caught.value.key == "expect[0].when"
    assert "variant sound: half a guard needs another step (step=2)" in caught.value.message
    narrow = text.replace("{variant: sound, clean", "{variant: sound, when: {step: 1}, clean")
    assert load_case(write(narrow), scenarios).case.expect[0].when == {"step": 2}


def test_of_several_problems_the_first_by_line_is_reported_with_their_number(
    good, write, scenarios
) -> None:
    text = good.replace("emulator]", "emulater]").replace("step: 2}\n", "step: 2, x: 1}\n")
    text = text.replace("cause: contested", "cause: open")
    path = write(text.replace("id: small-case", "id: small case"))
    with pytest.raises(CaseError) as caught:
        load_case(path, scenarios)
    assert caught.value.where == f"{path}:2:1"
    assert caught.value.message.endswith("(and 2 more problems)")


def test_a_hostile_value_is_quoted_short_and_printable(good, write, scenarios) -> None:
    text = good.replace("cause: contested", f'cause: "\\e[2J\\u202e{"x" * 5000}"')
    with pytest.raises(CaseError) as caught:
        load_case(write(text), scenarios)
    assert "`\\x1b[2J\\u202exxx" in caught.value.message
    assert caught.value.message.isprintable()
    assert len(caught.value.message) < 200


def test_a_valid_case_is_loaded_with_its_hash_and_lines(good, write, scenarios) -> None:
    loaded = load_case(write(good), scenarios)
    case = loaded.case
    assert (case.id, case.cause, case.fault_class) == (
        "small-case",
        Cause.CONTESTED,
        "mtp-tail-overflow",
    )
    assert case.expect[0].finding.kind is Kind.TRAP
    assert case.expect[0].finding.tensor is None
    assert case.expect[1].clean is True
    assert case.lanes == ("reference", "emulator")
    assert loaded.sha256 == hashlib.sha256(good.encode()).hexdigest()
    assert "\n".join(loaded.lines) + "\n" == good


def test_defects_of_a_case_become_records(good, write, scenarios) -> None:
    extra = """check:
  also: [gate_log]
  defects:
    a-defect:
      says: it is wrong
      latent: true
      acts:
        - code: {draft_gate: [too late, early], shut_gate: zeros}
          settings: {async: "on", k: 2}
        - code: {auto_fit: stale}
"""
    case = load_case(write(good + extra), scenarios).case
    assert case.check.also == ("gate_log",)
    code = {"draft_gate": ("too late", "early"), "shut_gate": ("zeros",)}
    routes = (Route(code, {"async": "on", "k": 2}), Route({"auto_fit": ("stale",)}, {}))
    assert case.check.records() == (Defect("a-defect", "it is wrong", routes, latent=True),)
    assert case.controls == case.hypotheses == ()


@pytest.mark.parametrize(
    ("step", "loud", "applies"),
    [(2, True, True), (4, True, True), (1, True, False), (2, False, False)],
)
def test_an_expectation_applies_where_every_name_of_when_has_one_of_its_values(
    good, write, scenarios, step, loud, applies
) -> None:
    text = good.replace("when: {step: 2}", "when: {step: [2, 4], loud: true}")
    expectation = load_case(write(text), scenarios).case.expect[0]
    assert expectation.applies({"step": step, "loud": loud, "length": 8}) is applies


def test_true_is_not_one(good, write, scenarios) -> None:
    text = good.replace("when: {step: 2}", "when: {step: 1}")
    expectation = load_case(write(text), scenarios).case.expect[0]
    assert not expectation.applies({"step": True})
    assert expectation.applies({"step": 1})
