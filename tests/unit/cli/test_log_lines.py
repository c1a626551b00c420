"""Lines of the broker's log, whatever clients name."""

from __future__ import annotations

import logging
import re
import sys

import pytest

from logkernel.cli.log_lines import LogLines

FORGED = "x\ntime=2026-01-01T00:00:00.000 level=info logger=logkernel.authorizer event=forged"
HEAD = r"time=\S+ level=warning broker=7 logger=logkernel\.test event="


def line(text: str, *arguments: object, error: BaseException | None = None) -> str:
    details = None if error is None else (type(error), error, error.__traceback__)
    record = logging.LogRecord("logkernel.test", logging.WARNING, "file.py", 1, text, arguments, details)
    return LogLines(7).format(record)


def test_an_event_is_a_line() -> None:
    assert re.fullmatch(HEAD + '"user=ann näme=ü"', line("user=%s näme=ü", "ann"))


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x0c", "\x1b[2K", "\x85", "\u2028", "\u2029"])
def test_what_a_client_names_begins_no_line(end: str) -> None:
    """A client id with a line end wrote lines of its own into the log."""
    told = line("client_id=%s", FORGED.replace("\n", end))
    assert len(told.splitlines()) == 1
    assert end not in told
    assert re.match(HEAD, told)


@pytest.mark.parametrize(
    "group", ['g" level=error logger=logkernel.controller event="broker gone', 'g\\" x=y', "g\\", '"']
)
def test_what_a_client_names_ends_no_field(group: str) -> None:
    """A group id with a quote wrote fields of its own into the log."""
    told = line("group=%s", group)
    found = re.fullmatch(HEAD + r'"((?:[^"\\]|\\.)*)"', told)
    assert found is not None
    assert re.sub(r"\\(.)", r"\1", found[1]) == f"group={group}"


def test_a_line_end_is_not_the_two_characters_of_its_escape() -> None:
    assert line("a\nb").endswith(r'"a\nb"')
    assert line(r"a\nb").endswith(r'"a\\nb"')


def test_what_a_client_names_begins_no_line_of_a_traceback() -> None:
    try:
        raise ValueError(FORGED)
    except ValueError as error:
        first, *others = line("failed", error=error).splitlines()
    assert re.fullmatch(HEAD + '"failed"', first)
    assert others[0].strip() == "Traceback (most recent call last):"
    assert [one for one in others if not one.startswith("    ")] == []
    assert any("event=forged" in one for one in others)


def test_a_traceback_of_the_present_error_is_told() -> None:
    try:
        raise OSError("disk")
    except OSError:
        record = logging.LogRecord("a", logging.ERROR, "file.py", 1, "failed", (), sys.exc_info())
    assert LogLines(None).format(record).endswith("OSError: disk")
