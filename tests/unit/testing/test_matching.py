"""Which records match what a test expects, and what the difference is called."""

from __future__ import annotations

import json
import re
from unittest import mock

import pytest

from logkernel.testing import containing
from logkernel.testing.kafka.matching import ANYTHING, differences, not_found, shown
from logkernel.testing.kafka.records import KafkaRecord, encoded


def record(value: bytes | None, key: bytes | None = None, **headers: bytes | None) -> KafkaRecord:
    return KafkaRecord("orders", 0, 3, key, value, tuple(headers.items()), 1_000)


ORDER = b'{"id": 7, "lines": [{"sku": "a", "n": 2}], "paid": true, "note": null}'
PARSED = json.loads(ORDER)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (ANYTHING, None),
        (None, None),
        (b"\xff\x00", b"\xff\x00"),
        ("für", "für".encode()),
        (re.compile("^ab+$"), b"abbb"),
        (re.compile(b"\xff"), b"\x00\xff"),
        (lambda value: len(value) == 3, b"abc"),
        (mock.ANY, b"abc"),
        (mock.ANY, None),
        (7, b"7"),
        (True, b"true"),
        ([1, ANYTHING], b"[1, 2]"),
        (PARSED, ORDER),
        ({**PARSED, "id": lambda found: found > 6}, ORDER),
        ({**PARSED, "lines": [containing(sku=re.compile("a|b"))]}, ORDER),
        (containing(id=7), ORDER),
        ({**PARSED, "id": mock.ANY, "paid": mock.ANY}, ORDER),
    ],
)
def test_a_value_matches_what_is_expected(expected: object, value: bytes | None) -> None:
    assert differences(record(value), value=expected) == []


@pytest.mark.parametrize(
    ("expected", "value", "said"),
    [
        (None, b"x", "value: expected None, found 'x'"),
        ("a", None, "value: expected 'a', found None"),
        ("a", b"\xff", "value: expected 'a', found b'\\xff'"),
        (b"a", b"b", "value: expected 'a', found 'b'"),
        (re.compile("z"), b"abc", "value: expected a match of 'z', found 'abc'"),
        ({"id": 7}, b"no json", "value: expected JSON {'id': 7}, found 'no json'"),
        (True, b"1", "value: expected True, found 1"),
        (1, b"true", "value: expected 1, found True"),
        ({"id": 8}, b'{"id": 7}', "value.id: expected 8, found 7"),
        ({"id": 7, "b": 1}, b'{"id": 7}', "value.b: missing, expected 1"),
        ({"id": 7}, b'{"id": 7, "b": 1}', "value.b: not expected, found 1"),
        ([1, {"a": 2}], b'[1, {"a": 3}]', "value[1].a: expected 2, found 3"),
        ([1], b"[1, 2]", "value: expected 1 elements, found 2"),
        ({"a": 1}, b"[1]", "value: expected an object, found [1]"),
    ],
)
def test_a_difference_names_its_place(expected: object, value: bytes | None, said: str) -> None:
    assert differences(record(value), value=expected) == [said]


def test_long_texts_differ_at_a_position() -> None:
    (line,) = differences(record(b"x" * 100 + b"y" + b"x" * 100), value="x" * 201)
    assert "from position 100" in line
    assert len(line) < 200


def test_keys_and_headers_are_compared_as_values_are() -> None:
    found = differences(record(b"", b"ann", trace=b"1"), key="bob", headers={"trace": b"2", "span": "a"})
    assert found == [
        "key: expected 'bob', found 'ann'",
        "header trace: expected '2', found '1'",
        "header span: missing, expected 'a'",
    ]


def test_the_closest_record_is_shown_with_its_differences() -> None:
    records = [record(b'{"id": 1, "n": 1}'), record(b'{"id": 7, "n": 2}')]
    expected = {"id": 7, "n": 1, "m": 1}

    text = not_found(records, {"value": expected}, lambda each: differences(each, value=expected))

    closest = text.partition("closest")[2].partition("others")[0]
    assert "value.m: missing, expected 1" in closest
    assert text.count("orders-0@3") == 2


def test_what_is_shown_is_short() -> None:
    assert len(shown(b"a" * 10_000)) < 300
    many = [record(b"%d" % number) for number in range(1_000)]
    assert len(not_found(many, {"value": "x"}, lambda each: differences(each, value="x")).splitlines()) < 20


@pytest.mark.parametrize(
    ("given", "written"),
    [(None, None), (b"\xff", b"\xff"), ("ä", "ä".encode()), ({"id": 7}, b'{"id":7}'), (7, b"7")],
)
def test_what_is_produced_is_encoded(given: object, written: bytes | None) -> None:
    assert encoded(given, "value") == written
