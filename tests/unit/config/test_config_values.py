"""Text to values and back."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkernel.config import values as v


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (v.BOOLEAN, " TRUE ", True),
        (v.BOOLEAN, "false", False),
        (v.INT, "+7", 7),
        (v.INT, "-2147483648", -(2**31)),
        (v.SHORT, "32767", 32767),
        (v.LONG, "9223372036854775807", 2**63 - 1),
        (v.LONG, "0000000000000000000000000000009", 9),
        (v.DOUBLE, "1.7976931348623157E308", 1.7976931348623157e308),
        (v.DOUBLE, "-1", -1.0),
        (v.LIST, " a , b ", ("a", "b")),
        (v.LIST, "  ", ()),
        (v.STRING, " x ", "x"),
        (v.PASSWORD, "s", "s"),
    ],
)
def test_text_is_parsed_by_its_type(kind: int, text: str, expected: Any) -> None:
    assert v.parse(kind, text) == expected


@pytest.mark.parametrize(
    ("kind", "text", "remedy"),
    [
        (v.BOOLEAN, "yes", "true or false"),
        (v.INT, "1_000", "type INT"),
        (v.INT, "", "type INT"),
        (v.INT, "-", "type INT"),
        (v.INT, "1.5", "type INT"),
        (v.INT, "٣", "type INT"),
        (v.INT, "2147483648", "Not a number of type INT"),
        (v.SHORT, "40000", "Not a number of type SHORT"),
        (v.LONG, "9" * 5_000, "Not a number of type LONG"),
        (v.DOUBLE, "nan", "type DOUBLE"),
        (v.DOUBLE, "inf", "number"),
        (v.DOUBLE, "1_0", "number"),
    ],
)
def test_parse_refuses_and_says_what_is_right(kind: int, text: str, remedy: str) -> None:
    with pytest.raises(ValueError, match=remedy):
        v.parse(kind, text)


@pytest.mark.parametrize(
    ("validator", "good", "bad", "said"),
    [
        (v.Between(0), [0, 9], [-1], "at least 0"),
        (v.Between(None, 5), [5, -9], [6], "at most 5"),
        (v.Between(1, 3), [1, 3], [0, 4], "between 1 and 3"),
        (v.Either(-1, v.Between(1, 9)), [-1, 1, 9], [0, -2, 10], "-1, or between 1 and 9"),
        (v.OneOf("a", "b"), ["a"], ["c", ""], "one of a, b"),
        (v.Each(v.OneOf("a", "b")), [(), ("a", "b")], [("c",), ("a", "a"), ("a", "")], "a list of a, b"),
        (v.Each(empty=False), [("x",)], [()], "a list of names, not empty"),
        (v.Each(v.OneOf("a"), repeats=True), [("a", "a")], [("a", "b")], "a list of a"),
        (v.NonEmpty(), ["x"], [""], "not empty"),
        (v.Throttled(), [(), ("*",), ("0:1", "2:3")], [("0",), ("*", "0:1"), ("a:1",)], "*, or partition:broker"),
    ],
)
def test_a_validator_takes_good_values_and_refuses_bad_ones(
    validator: v.Validator, good: list[Any], bad: list[Any], said: str
) -> None:
    assert str(validator).startswith(said)
    for value in good:
        validator(value)
    for value in bad:
        with pytest.raises(ValueError):
            validator(value)


word = st.text(st.characters(codec="utf-8", exclude_characters=",", exclude_categories=("Z", "C")), min_size=1)
TYPED = st.one_of(
    st.tuples(st.just(v.BOOLEAN), st.booleans()),
    st.tuples(st.just(v.INT), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just(v.LONG), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(v.DOUBLE), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just(v.STRING), word),
    st.tuples(st.just(v.LIST), st.lists(word).map(tuple)),
)


@given(TYPED)
def test_round_trip(pair: tuple[int, Any]) -> None:
    kind, value = pair
    assert v.parse(kind, v.render(value)) == value


@given(st.sampled_from(sorted(v.TYPE_NAMES)), st.text())
def test_any_text_is_a_value_or_a_value_error(kind: int, text: str) -> None:
    said = ""
    try:
        v.parse(kind, text)
    except ValueError as error:
        said = str(error)
    assert not said or said.startswith(("Expected value to be", "Not a number of type"))
