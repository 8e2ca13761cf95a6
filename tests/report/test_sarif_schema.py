"""SARIF against the schema of the standard, which npm has in a package of Microsoft's."""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

GOLDEN = Path(__file__).parent / "golden"
PACKAGE = "@microsoft/jest-sarif@1.0.0-beta.0"
MEMBER = "package/lib/schemas/sarif-2.1.0-rtm.5.json"

pytestmark = pytest.mark.network


@pytest.fixture(scope="module")
def schema(tmp_path_factory: pytest.TempPathFactory) -> Any:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("schema")
    packed = subprocess.run(
        [npm, "pack", "--silent", PACKAGE], cwd=folder, capture_output=True, text=True, check=False
    )
    if packed.returncode:
        pytest.skip(f"npm cannot reach its registry: {packed.stderr[-200:]}")
    with tarfile.open(folder / packed.stdout.split()[-1]) as archive:
        member = archive.extractfile(MEMBER)
        assert member is not None
        return json.loads(member.read())


def wrong(schema: Any, document: Any) -> Iterator[str]:
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    for error in validator(schema).iter_errors(document):
        yield error.message


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.sarif")), ids=lambda path: path.stem)
def test_each_golden_file_is_valid_sarif(schema: Any, path: Path) -> None:
    assert list(wrong(schema, json.loads(path.read_text(encoding="utf-8")))) == []


def test_the_schema_refuses_what_is_none(schema: Any) -> None:
    document = json.loads((GOLDEN / "mtp-tail-overflow.sarif").read_text(encoding="utf-8"))
    broken = copy.deepcopy(document)
    broken["runs"][0]["results"][0]["level"] = "fatal"
    assert list(wrong(schema, broken))
