"""Java's .properties format, as Kafka's `server.properties` is written.

Comments begin with # or !; a line that ends in an odd number of backslashes goes on in the next, whose
leading blanks are dropped; name and value part at the first unescaped =, : or blank; escapes are those of
Java (\\t \\n \\f \\r \\uXXXX, any other character stands for itself).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from logkernel.config.sources import RawConfig, RawSetting, refuse
from logkernel.errors import ConfigError

_BLANK = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "f": "\f", "r": "\r"}
_NAME = re.compile(r"(?:\\.|[^\\=: \t\f])*")
_SIGN = re.compile(r"[ \t\f]*[=:]?[ \t\f]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|u|.)", re.DOTALL)
LOOKS_LIKE = re.compile(r"\s*[A-Za-z0-9._-]+[ \t]*=")
"""A first line such as `broker.id=0`; YAML would have a colon."""


def read_properties(text: str, file: str) -> RawConfig:
    """All settings of a file, the last of a name ruling as in Java; raises ConfigError."""
    rows: dict[str, RawSetting] = {}
    for line, logical in _logical_lines(text):
        where = f"{file}:{line}"
        found = _NAME.match(logical)
        assert found is not None  # it matches the empty text
        name = _unescape(found[0], where)
        sign = _SIGN.match(logical, found.end())
        assert sign is not None
        value = _unescape(logical[sign.end() :], where).strip()
        given = RawSetting(name, value, where)
        if not name:
            raise refuse(given, "the name is missing", "write name=value, or # before a comment")
        rows[name] = given
    return RawConfig(broker=list(rows.values()), lenient=True)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """(number of the first line, the line with its continuations), without comments and empty ones."""
    whole, first = "", 0
    for number, raw in enumerate(re.split(r"\r\n|\r|\n", text), 1):
        line = raw.lstrip(_BLANK)
        if not first:
            if not line or line[0] in "#!":
                continue
            first = number
        slashes = len(line) - len(line.rstrip("\\"))
        if slashes % 2:
            whole += line[:-1]
            continue
        yield first, whole + line
        whole, first = "", 0
    if first and whole:
        yield first, whole


def _unescape(text: str, where: str) -> str:
    def one(found: re.Match[str]) -> str:
        escaped = found[1]
        if escaped == "u":
            raise ConfigError(f"{where}: \\u needs four hexadecimal digits; write \\u0041, or \\\\u for a backslash")
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _ESCAPES.get(escaped, escaped)

    return _ESCAPE.sub(one, text) if "\\" in text else text
