from pathlib import Path

import pytest

from specrepro.repro.case.text import MAX_NODES, compose
from specrepro.repro.errors import CaseError

REFUSED = {
    "empty": ("", "1:1", None, "is empty"),
    "only a comment": ("# nothing\n", "2:1", None, "is empty"),
    "list at the top": ("- a\n", "1:1", None, "mapping of keys"),
    "text at the top": ("hello\n", "1:1", None, "mapping of keys"),
    "unclosed quote": ("a: 1\nb: 'x\n", "3:1", None, "not valid YAML"),
    "tab as indent": ("a:\n\tb: 1\n", "2:1", None, "not valid YAML"),
    "colon in plain text": ("a: b: c\n", "1:5", None, "not valid YAML"),
    "escape out of range": ('a: "\\UFFFFFFFF"\n', "1:7", None, "out of range"),
    "version out of range": ("%YAML 9.1\n---\na: 1\n", "1:1", None, "not valid YAML"),
    "control character": ("a: 1\nb: x\x1b[31m\n", "2:5", None, "U+001B"),
    "anchor": ("a: 1\nb: &bomb [1]\n", "2:4", "b", "anchors (&bomb)"),
    "alias": ("a: 1\nb: {c: *bomb}\n", "2:8", "b.c", "aliases (*bomb)"),
    "alias as a key": ("a: {*bomb : 1}\n", "1:5", "a", "aliases (*bomb)"),
    "tag": ("a: !!python/object:os.system x\n", "1:4", "a", "tags (tag:yaml.org,2002:python"),
    "local tag": ("a: [1, !run x]\n", "1:8", "a[1]", "tags (!run)"),
    "tag on the case": ("!!map {a: 1}\n", "1:1", None, "tags"),
    "merge key": ("a: 1\nb:\n  <<: {c: 1}\n", "3:3", "b", "merge keys"),
    "duplicate key": ("a: 1\nb: 2\na: 3\n", "3:1", "a", "second time; the first is on line 1"),
    "duplicate inner key": ("a: {b: 1, b: 1}\n", "1:11", "a.b", "second time"),
    "second document": ("a: 1\n---\nb: 2\n", "2:1", None, "second document"),
    "list as a key": ("? [a]\n: 1\n", "1:3", None, "a key must be text"),
    "key `on`": ("a: {on: 1}\n", "1:5", "a", "`on` reads as true or false"),
    "key `1`": ("1: 1\n", "1:1", None, "`1` reads as a whole number"),
    "key of nothing": ("~: 1\n", "1:1", None, "`~` reads as nothing"),
    "value `no`": ("a: no\n", "1:4", "a", "`no` is not read alike"),
    "octal": ("a: 010\n", "1:4", "a", "`010` is not read alike"),
    "sexagesimal": ("a: 1:30\n", "1:4", "a", "`1:30` is not read alike"),
    "underscores": ("a: 1_000\n", "1:4", "a", "`1_000` is not read alike"),
    "date": ("a: 2026-01-01\n", "1:4", "a", "not read alike"),
    "exponent without a point": ("a: 1e5\n", "1:4", "a", "not read alike"),
    "infinity": ("a: -.inf\n", "1:4", "a", "not a finite"),
    "not a number": ("a: .NaN\n", "1:4", "a", "not a finite"),
    "float overflow": ("a: 1.0e+999\n", "1:4", "a", "not a finite"),
    "int beyond 64 bits": ("a: 9223372036854775808\n", "1:4", "a", "beyond 64-bit"),
    "int of 5000 digits": (f"a: {'9' * 5000}\n", "1:4", "a", "beyond 64-bit"),
    "null": ("a: null\n", "1:4", "a", "has no value"),
    "nothing after the colon": ("a: 1\nb:\n", "2:3", "b", "has no value"),
    "half a surrogate pair": ('a: "\\ud800"\n', "1:4", "a", "surrogate"),
    "21 levels": ("a: " + "[" * 21, "1:24", "a[0][0]", "deeper than 20"),
    "100,000 levels": ("a: " + "[" * 100_000, "1:24", "a[0][0]", "deeper than 20"),
    "too many values": ("a: [" + "1," * MAX_NODES + "]", None, f"a[{MAX_NODES - 3}]", "more than"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_yaml_that_is_not_plain_data_is_refused_at_its_place(name: str) -> None:
    text, place, key, words = REFUSED[name]
    with pytest.raises(CaseError) as caught:
        compose(Path("f.yaml"), text)
    error = caught.value
    assert words in error.message
    assert error.key == key
    assert place is None or error.where == f"f.yaml:{place}"
    assert str(error).isprintable()


def test_scalars_are_read_as_yaml_1_2_reads_them() -> None:
    text = "{t: true, i: -7, z: 0, f: 1.5, e: 1.0e+3, s: text, q: 'no', n: \"10\", u: 0x}"
    assert compose(Path("f"), text).data == {
        "t": True,
        "i": -7,
        "z": 0,
        "f": 1.5,
        "e": 1000.0,
        "s": "text",
        "q": "no",
        "n": "10",
        "u": "0x",
    }


def test_64_bit_borders_are_inside() -> None:
    text = "a: 9223372036854775807\nb: -9223372036854775808\n"
    assert compose(Path("f"), text).data == {"a": 2**63 - 1, "b": -(2**63)}


def test_20_levels_are_inside() -> None:
    data = compose(Path("f"), "a: " + "[" * 20 + "]" * 20).data["a"]
    for _ in range(19):
        (data,) = data
    assert data == []


def test_positions_are_those_of_keys_and_of_list_entries() -> None:
    document = compose(Path("f"), "a:\n  - 1\n  - {b: 2,\n     ü: 3, c: 4}\n")
    places = {
        ("a",): (1, 1),
        ("a", 0): (2, 5),
        ("a", 1): (3, 5),
        ("a", 1, "b"): (3, 6),
        ("a", 1, "c"): (4, 12),
    }
    assert {p: (at.line, at.column) for p in places if (at := document.position(p))} == places


def test_position_of_a_missing_key_is_that_of_what_should_hold_it() -> None:
    document = compose(Path("f"), "a: 1\nb: {c: 1}\n")
    assert document.position(("b", "d", "e")).line == 2
    assert document.position(("nothing",)).line == 1
