r"""Formats of records as text, in kcat's letters and rpk's.

    %s %v    value            %S %V    its length, -1 where it is null
    %k       key              %K       its length
    %t       topic            %p       partition
    %o       offset           %T       timestamp, ms since 1970
    %h       headers: a=1,b=2 %%       a percent sign
    \n \r \t \\ \0 \x1f       that byte

Read (by `produce`), a format says where the fields of a line are: between what stands between the letters. Only
%k, %v, %s, %p, %T and %h can be read.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from attrs import define

from logkernel.errors import ConfigError

LETTERS: Final = "svSVkKtpoTh"
READABLE: Final = "svkpTh"
_ESCAPE: Final = re.compile(rb"\\(x[0-9a-fA-F]{2}|.)", re.DOTALL)
_BYTES: Final = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"\\": b"\\", b"0": b"\0"}
Render = Callable[[Any], bytes]


def unescaped(text: str) -> bytes:
    """The bytes of a text with escapes. Raises `ConfigError`."""

    def byte(found: re.Match[bytes]) -> bytes:
        code = found[1]
        if code[:1] == b"x" and len(code) == 3:
            return bytes([int(code[1:], 16)])
        if code not in _BYTES:
            raise ConfigError(
                f"there is no escape \\{code.decode(errors='replace')}; use \\n \\r \\t \\\\ \\0 or \\xHH"
            )
        return _BYTES[code]

    return _ESCAPE.sub(byte, text.encode(errors="surrogateescape"))


def parsed(text: str) -> list[bytes | str]:
    """Literals (bytes) and letters (str), in turn. Raises `ConfigError`."""
    found: list[bytes | str] = []
    parts = re.split(r"%(.?)", text, flags=re.DOTALL)
    for index, part in enumerate(parts):
        if index % 2 == 0:
            if part:
                found.append(unescaped(part))
        elif part == "%":
            found.append(b"%")
        elif part and part in LETTERS:
            found.append(part)
        else:
            raise ConfigError(f"there is no format letter %{part}; use %{' %'.join(LETTERS)} or %%")
    return found


def _text(data: bytes | None) -> bytes:
    return b"" if data is None else data


def _length(data: bytes | None) -> bytes:
    return b"-1" if data is None else b"%d" % len(data)


_FIELDS: Final[dict[str, Render]] = {
    "s": lambda row: _text(row.value),
    "v": lambda row: _text(row.value),
    "S": lambda row: _length(row.value),
    "V": lambda row: _length(row.value),
    "k": lambda row: _text(row.key),
    "K": lambda row: _length(row.key),
    "t": lambda row: row.topic.encode(),
    "p": lambda row: b"%d" % row.partition,
    "o": lambda row: b"%d" % row.offset,
    "T": lambda row: b"%d" % row.timestamp_ms,
    "h": lambda row: b",".join(name.encode() + b"=" + _text(value) for name, value in row.headers),
}


def renderer(text: str) -> Render:
    """What turns a record into the bytes that a format says."""
    steps: list[Render] = [
        _FIELDS[part] if isinstance(part, str) else (lambda row, part=part: part)  # type: ignore[misc]
        for part in parsed(text)
    ]
    return lambda row: b"".join([step(row) for step in steps])


@define
class Line:
    """What a line says of a record; -1 and None where it says nothing."""

    key: bytes | None = None
    value: bytes | None = None
    partition: int | None = None
    timestamp_ms: int = -1
    headers: tuple[tuple[str, bytes | None], ...] = ()


def reader(text: str) -> Callable[[bytes], Line]:
    """What takes the fields of a line (without its end) apart. Raises `ConfigError` here, or for a line."""
    parts = parsed(text.removesuffix("\\n"))
    pattern = b""
    letters = []
    for index, part in enumerate(parts):
        if isinstance(part, bytes):
            pattern += re.escape(part)
            continue
        if part not in READABLE:
            raise ConfigError(f"%{part} cannot be parsed from a line; use %{' %'.join(READABLE)}")
        if index and isinstance(parts[index - 1], str):
            raise ConfigError(f"nothing separates %{parts[index - 1]!s} from %{part}; put a delimiter between them")
        letters.append("v" if part == "s" else part)
        pattern += b"(.*)" if index == len(parts) - 1 else b"(.*?)"
    if len(set(letters)) != len(letters):
        raise ConfigError(f"the format {text!r} repeats a letter; use each letter once")
    match = re.compile(pattern, re.DOTALL).fullmatch

    def read(line: bytes) -> Line:
        found = match(line)
        if found is None:
            raise ConfigError(f"the line {line[:80]!r} is not in the format {text!r}; change the line or --format")
        row = Line()
        for letter, data in zip(letters, found.groups(), strict=True):
            _take(row, letter, data)
        return row

    return read


def _take(row: Line, letter: str, data: bytes) -> None:
    if letter == "k":
        row.key = data
    elif letter == "v":
        row.value = data
    elif letter == "h":
        row.headers = headers(data)
    elif not data.lstrip(b"-").isdigit():
        raise ConfigError(f"%{letter}: {data[:80]!r} is not a number; change the line or --format")
    elif letter == "p":
        row.partition = int(data)
    else:
        row.timestamp_ms = int(data)


def headers(data: bytes) -> tuple[tuple[str, bytes | None], ...]:
    """`a=1,b=2`; a name alone has the value null."""
    found = []
    for part in filter(None, data.split(b",")):
        name, equals, value = part.partition(b"=")
        found.append((name.decode(errors="surrogateescape"), value if equals else None))
    return tuple(found)
