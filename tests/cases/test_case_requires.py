"""`requires`: what a GPU must be, held to its form, and as what it is looked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from specrepro.repro.case import LoadedCase, load_cases
from specrepro.repro.device_lanes import needs
from specrepro.repro.errors import CaseError
from specrepro.repro.execution.task import Needs

SHIPPED = Path(load_cases(["draft-length-gate"])[0].path).read_text(encoding="utf-8")


def loaded(folder: Path, requires: str) -> LoadedCase:
    path = folder / "case.yaml"
    path.write_text(f"{SHIPPED}requires: {requires}\n", encoding="utf-8")
    [case] = load_cases([str(path)])
    return case


@pytest.mark.parametrize(
    ("requires", "wanted"),
    [
        ("{}", Needs(1)),
        ("{gpu: H100}", Needs(1, ("H100",))),
        ("{gpu: [H100, A100-SXM4-80GB], gpus: 2}", Needs(2, ("H100", "A100-SXM4-80GB"))),
        ('{free_memory: "40 GiB"}', Needs(1, free_memory=40 << 30)),
        ('{free_memory: "1.5GiB"}', Needs(1, free_memory=3 << 29)),
        ('{free_memory: "512 MiB", driver: ">=570,<590"}', Needs(1, (), 512 << 20, ">=570,<590")),
    ],
)
def test_what_is_required_becomes_the_needs_of_gpu_trials(
    requires: str, wanted: Needs, tmp_path: Path
) -> None:
    assert needs(loaded(tmp_path, requires).case) == wanted


def test_a_case_without_it_needs_any_gpu() -> None:
    [case] = load_cases(["draft-length-gate"])
    assert needs(case.case) == Needs(1)


@pytest.mark.parametrize(
    ("requires", "key", "said"),
    [
        ("{gpus: 0}", "requires.gpus", "greater than or equal to 1"),
        ("{gpu: []}", "requires.gpu", "must be a type of GPU such as H100"),
        ('{gpu: "H100; rm"}', "requires.gpu", "must be a type of GPU such as H100"),
        ("{free_memory: 40}", "requires.free_memory", "must be text, not 40"),
        ('{free_memory: "40 GB"}', "requires.free_memory", "must be an amount such as 40 GiB"),
        ('{driver: "570"}', "requires.driver", "must be a comparison such as >=570"),
        ('{gpu: H100, memory: "1 GiB"}', "requires.memory", "unknown key; allowed are gpu, gpus"),
    ],
)
def test_another_form_is_refused_with_its_key(
    requires: str, key: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(CaseError) as caught:
        loaded(tmp_path, requires)
    assert caught.value.key == key
    assert said in str(caught.value)


def test_a_misspelt_key_has_the_nearest_as_a_hint(tmp_path: Path) -> None:
    with pytest.raises(CaseError) as caught:
        loaded(tmp_path, '{freememory: "1 GiB"}')
    assert "free_memory" in str(caught.value.hint)
