"""A key that is missing or unknown deep inside a case is named, with the keys that belong there."""

from __future__ import annotations

from pathlib import Path

import pytest

from specrepro.repro.case import load_cases
from specrepro.repro.errors import CaseError

SHIPPED = Path(load_cases(["draft-length-gate"])[0].path).read_text(encoding="utf-8")
CONTROL = "{id: k3, title: three draft tokens, settings: {k: 3}, expect: seen}"
MODEL = "{family: mimo, kind: length_canary, length: 128}"


def refused(path: Path, old: str, new: str) -> CaseError:
    assert SHIPPED.count(old) == 1
    path.write_text(SHIPPED.replace(old, new), encoding="utf-8")
    with pytest.raises(CaseError) as caught:
        load_cases([str(path)])
    return caught.value


@pytest.mark.parametrize(
    ("old", "new", "key"),
    [
        ("    oracle: draft_gate\n", "", "check.engine.oracle"),
        (MODEL, MODEL.replace("kind: length_canary, ", ""), "check.engine.checkpoint.kind"),
        (CONTROL, CONTROL.replace(", expect: seen", ""), "check.engine.controls[3].expect"),
    ],
)
def test_a_missing_key_is_named_where_it_belongs(
    old: str, new: str, key: str, tmp_path: Path
) -> None:
    error = refused(tmp_path / "case.yaml", old, new)
    assert error.key == key
    assert str(error).endswith(": is missing; the key is required")


@pytest.mark.parametrize(
    ("old", "new", "allowed", "hint"),
    [
        ("    oracle: draft_gate", "    oracel: draft_gate", "oracle, checkpoint", "`oracle`"),
        (MODEL, MODEL.replace("length:", "lenght:"), "family, kind, length", "`length`"),
        (CONTROL, CONTROL.replace("title", "titel"), "id, title, settings", "`title`"),
    ],
)
def test_an_unknown_key_is_told_the_keys_of_its_own_place(
    old: str, new: str, allowed: str, hint: str, tmp_path: Path
) -> None:
    error = refused(tmp_path / "case.yaml", old, new)
    assert f": unknown key; allowed are {allowed}" in str(error)
    assert "schema" not in str(error)
    assert hint in str(error.hint)
