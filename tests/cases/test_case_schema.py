import re

import yaml

from specrepro.repro.case import case_schema, load_case
from specrepro.repro.records import Kind


def objects(schema):
    yield schema
    yield from schema["$defs"].values()


def test_the_example_of_the_schema_is_a_valid_case(write) -> None:
    (example,) = case_schema()["examples"]
    assert load_case(write(yaml.safe_dump(example))).case.id == example["id"]


def test_every_key_is_described_and_no_other_is_allowed() -> None:
    schemas = [one for one in objects(case_schema()) if one["type"] == "object"]
    known = set(case_schema()["$defs"])
    assert {"Expectation", "Control", "Reported", "Facts", "Hypothesis"} <= known
    for schema in schemas:
        assert schema["additionalProperties"] is False
        assert all(len(key["description"]) > 5 for key in schema["properties"].values())


def test_the_keys_are_those_of_the_file(good) -> None:
    properties = case_schema()["properties"]
    assert set(yaml.safe_load(good)) <= set(properties)
    assert {"class", "schema", "check", "controls", "hypotheses", "protocol"} <= set(properties)
    assert "fault_class" not in properties


def test_names_are_listed_and_forms_are_patterns() -> None:
    schema = case_schema()
    assert schema["properties"]["class"]["enum"][0] == "plan-buffer-race"
    assert "emulator" in schema["properties"]["lanes"]["items"]["enum"]
    assert schema["$defs"]["Kind"]["enum"] == [str(kind) for kind in Kind]
    assert re.search(schema["properties"]["id"]["pattern"], "a-case")
    assert not re.search(schema["properties"]["id"]["pattern"], "A case")


def test_null_stands_nowhere_for_a_file_cannot_hold_it() -> None:
    assert "null" not in str(case_schema()).replace("null block", "")
