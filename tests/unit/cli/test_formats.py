"""Formats of records as text, both ways."""

from __future__ import annotations

import pytest

from logkernel.cli.formats import Line, headers, reader, renderer, unescaped
from logkernel.client.consumer.positions import ConsumerRecord
from logkernel.errors import ConfigError

RECORD = ConsumerRecord("t", 3, 7, 1000, b"k", b"val", (("a", b"1"), ("n", None)), 0)
EMPTY = ConsumerRecord("t", 0, 0, -1, None, None, (), 0)


@pytest.mark.parametrize(
    ("text", "full", "empty"),
    [
        (r"%v\n", b"val\n", b"\n"),
        (r"%s\n", b"val\n", b"\n"),
        ("%k %K", b"k 1", b" -1"),
        ("%S/%V", b"3/3", b"-1/-1"),
        ("%t-%p@%o %T", b"t-3@7 1000", b"t-0@0 -1"),
        ("[%h]", b"[a=1,n=]", b"[]"),
        (r"100%%\t\x41\0\\é", "100%\tA\0\\é".encode(), "100%\tA\0\\é".encode()),
        ("", b"", b""),
    ],
)
def test_records_are_rendered(text: str, full: bytes, empty: bytes) -> None:
    assert renderer(text)(RECORD) == full
    assert renderer(text)(EMPTY) == empty


@pytest.mark.parametrize("text", ["%z", "%", r"\q", r"a\x4"])
def test_a_format_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        renderer(text)


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("%v", b"all of it", Line(value=b"all of it")),
        (r"%k\t%v\n", b"k\tv\tw", Line(b"k", b"v\tw")),
        ("%p %T %k=%s", b"2 99 a=b=c", Line(b"a", b"b=c", 2, 99)),
        ("%h|%v", b"a=1,b|v", Line(value=b"v", headers=(("a", b"1"), ("b", None)))),
        ("<%k>%v", b"<>", Line(b"", b"")),
    ],
)
def test_lines_are_read(text: str, line: bytes, found: Line) -> None:
    assert reader(text)(line) == found


@pytest.mark.parametrize("text", ["%k%v", "%v %v", "%v %s", "%o %v", "%V"])
def test_what_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(ConfigError):
        reader(text)


@pytest.mark.parametrize(("text", "line"), [("%k=%v", b"nothing"), ("%p %v", b"one v"), ("%T %v", b" v")])
def test_a_line_in_another_form_is_refused(text: str, line: bytes) -> None:
    with pytest.raises(ConfigError):
        reader(text)(line)


def test_bytes_pass_through_unchanged() -> None:
    every = bytes(range(256))
    assert reader("%v")(every).value == every
    assert renderer("%v")(ConsumerRecord("t", 0, 0, 0, None, every, (), 0)) == every
    assert unescaped(r"\xff\n") == b"\xff\n"
    assert headers(b"") == ()
