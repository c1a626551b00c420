"""Whether a record is the one that a test expects, and where it is not. Pure.

| expected | matches |
|---|---|
| `ANYTHING`, or left out | everything |
| None | no value (a tombstone), no key |
| bytes | these bytes |
| text | these bytes as UTF-8 |
| a compiled pattern | text in which it is found |
| a function of the bytes | where it returns true |
| a dict, list, number or bool | equal JSON; what is inside may be any of these again, a function gets the value |
| `containing({...})` | a JSON object that has these fields, and maybe more |
| any other object | what it says is equal (`==`): to the bytes, to the text or to the JSON |
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from logkernel.testing.kafka.records import KafkaRecord

SHOWN_BYTES: Final = 200
MOST_SHOWN: Final = 10
MOST_LINES: Final = 20
"""Of differences in one record."""


class _Anything:
    def __repr__(self) -> str:
        return "anything"


ANYTHING: Final[Any] = _Anything()


class containing(dict[Any, Any]):
    """The fields that a JSON object must have; it may have more."""

    def __repr__(self) -> str:
        return f"containing({super().__repr__()})"


_MISSING: Final = object()


# ---------------------------------------------------------------- one record


def differences(
    record: KafkaRecord, *, key: Any = ANYTHING, value: Any = ANYTHING, headers: Mapping[str, Any] | None = None
) -> list[str]:
    """A line for each place where the record is not what is expected; none where it is."""
    found = [*_bytes_differ("key", key, record.key), *_bytes_differ("value", value, record.value)]
    given = dict(record.headers)
    for name, expected in (headers or {}).items():
        if name in given:
            found += _bytes_differ(f"header {name}", expected, given[name])
        else:
            found.append(f"header {name}: missing, expected {shown(expected)}")
    return found


def _bytes_differ(what: str, expected: Any, actual: bytes | None) -> list[str]:
    if expected is ANYTHING:
        return []
    if expected is None or actual is None:
        if expected is None and actual is None:
            return []
        if expected is not None and not isinstance(expected, (bytes, str, dict, list)) and _says(expected, (actual,)):
            return []
        return [f"{what}: expected {shown(expected)}, found {shown(actual)}"]
    if isinstance(expected, bytes):
        return [] if expected == actual else [_unlike(what, expected, actual)]
    text = _text(actual)
    if isinstance(expected, str):
        return [] if expected == text else [_unlike(what, expected, actual if text is None else text)]
    if isinstance(expected, re.Pattern):
        return _pattern_differs(what, expected, actual)
    if isinstance(expected, (dict, list, tuple, bool, int, float)):
        decoded = _json(text)
        if decoded is _MISSING:
            return [f"{what}: expected JSON {shown(expected)}, found {shown(actual)}"]
        return _parts_differ(what, expected, decoded)
    candidates = [actual, *([] if text is None else [text])]
    if not callable(expected):
        decoded = _json(text)
        candidates += [] if decoded is _MISSING else [decoded]
    return [] if _says(expected, candidates) else [f"{what}: expected {shown(expected)}, found {shown(actual)}"]


def _pattern_differs(what: str, expected: re.Pattern[Any], actual: bytes) -> list[str]:
    where = actual if isinstance(expected.pattern, bytes) else _text(actual)
    if where is not None and expected.search(where):
        return []
    return [f"{what}: expected a match of {expected.pattern!r}, found {shown(actual)}"]


def _says(expected: Any, candidates: Iterable[Any]) -> bool:
    if callable(expected):
        return bool(expected(next(iter(candidates))))
    return any(expected == candidate for candidate in candidates)


def _text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _json(text: str | None) -> Any:
    try:
        return _MISSING if text is None else json.loads(text)
    except (ValueError, RecursionError):
        return _MISSING


def _unlike(what: str, expected: str | bytes, actual: str | bytes) -> str:
    """Where two texts part, if they are long."""
    line = f"{what}: expected {shown(expected)}, found {shown(actual)}"
    if type(expected) is not type(actual) or min(len(expected), len(actual)) <= 40:
        return line
    pairs = enumerate(zip(expected, actual, strict=False))
    at = next((index for index, (one, other) in pairs if one != other), min(len(expected), len(actual)))
    start = max(0, at - 20)
    return (
        f"{what}: differs from position {at}: expected …{expected[start : at + 20]!r}…,"
        f" found …{actual[start : at + 20]!r}…"
    )


# ---------------------------------------------------------------- JSON


def _parts_differ(path: str, expected: Any, actual: Any) -> list[str]:
    if isinstance(expected, dict):
        return _objects_differ(path, expected, actual)
    if isinstance(expected, (list, tuple)):
        return _lists_differ(path, expected, actual)
    if isinstance(expected, re.Pattern):
        well = isinstance(actual, str) and isinstance(expected.pattern, str) and bool(expected.search(actual))
    elif isinstance(expected, bool) or isinstance(actual, bool):
        well = expected is actual or (not isinstance(expected, (bool, int, float)) and _says(expected, [actual]))
    else:
        well = expected is ANYTHING or _says(expected, [actual])
    return [] if well else [f"{path}: expected {shown(expected)}, found {shown(actual)}"]


def _objects_differ(path: str, expected: Mapping[Any, Any], actual: Any) -> list[str]:
    if not isinstance(actual, dict):
        return [f"{path}: expected an object, found {shown(actual)}"]
    found: list[str] = []
    for name, wanted in expected.items():
        if name in actual:
            found += _parts_differ(f"{path}.{name}", wanted, actual[name])
        else:
            found.append(f"{path}.{name}: missing, expected {shown(wanted)}")
    if not isinstance(expected, containing):
        found += [
            f"{path}.{name}: not expected, found {shown(actual[name])}" for name in actual if name not in expected
        ]
    return found


def _lists_differ(path: str, expected: Sequence[Any], actual: Any) -> list[str]:
    if not isinstance(actual, list):
        return [f"{path}: expected a list, found {shown(actual)}"]
    found = []
    for index, (wanted, got) in enumerate(zip(expected, actual, strict=False)):
        found += _parts_differ(f"{path}[{index}]", wanted, got)
    if len(expected) != len(actual):
        found.append(f"{path}: expected {len(expected)} elements, found {len(actual)}")
    return found


# ---------------------------------------------------------------- what is shown


def shown(what: Any) -> str:
    """A value for a person: text where it is text, cut where it is long."""
    if isinstance(what, bytes):
        text = _text(what)
        what = what if text is None else text
    if isinstance(what, re.Pattern):
        return f"a match of {what.pattern!r}"
    if callable(what) and not isinstance(what, dict):
        return f"a value that satisfies {getattr(what, '__qualname__', repr(what))}"
    line = repr(what)
    return line if len(line) <= SHOWN_BYTES else f"{line[:SHOWN_BYTES]}… ({len(line)} characters)"


def shown_record(record: KafkaRecord) -> str:
    headers = "".join(f" {name}={shown(value)}" for name, value in record.headers)
    where = f"{record.topic}-{record.partition}@{record.offset}"
    return f"{where}  key={shown(record.key)}  value={shown(record.value)}{'  headers:' if headers else ''}{headers}"


def not_found(
    records: Sequence[KafkaRecord], expected: Mapping[str, Any], differs: Callable[[KafkaRecord], list[str]]
) -> str:
    """What a test is told that expects a record which is not there: the closest one, and what there is."""
    wanted = "  ".join(f"{name}={shown(value)}" for name, value in expected.items() if value is not ANYTHING)
    lines = [f"  expected  {wanted or 'any record'}"]
    if not records:
        return "\n".join([*lines, "  found     nothing"])
    closest = min(records, key=lambda record: len(differs(record)))
    unlike = differs(closest)
    lines.append(f"  closest   {shown_record(closest)}")
    lines += [f"            {line}" for line in unlike[:MOST_LINES]]
    if len(unlike) > MOST_LINES:
        lines.append(f"            and {len(unlike) - MOST_LINES} differences more")
    others = [record for record in records if record is not closest]
    if others:
        lines.append("  others")
        lines += [f"            {shown_record(record)}" for record in others[-MOST_SHOWN:]]
        if len(others) > MOST_SHOWN:
            lines.append(f"            and {len(others) - MOST_SHOWN} before these")
    return "\n".join(lines)
