"""Regular expressions of settings that map names, as Java has them, by RE2: its time is linear in the name. It has no
lookaround and no backreferences, which are refused."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from logkernel.errors import ConfigError

MAX_PATTERN_BYTES = 1_048_576
"""Memory that RE2 may take for one pattern."""
_LACKS = ("perl operator", "escape sequence")
"""What RE2 says of Java's constructs that it does not have."""
_PART = re.compile(r"\\(?P<literal>.)|\$(?P<group>\d+)|(?P<text>[^\\$]+)", re.DOTALL)


class Substitution:
    """A pattern, and what takes the place of its matches."""

    def __init__(self, setting: str, pattern: str, replacement: str = "") -> None:
        """Raises `ConfigError`, which names the setting, for a pattern that RE2 does not have."""
        self._pattern = _compiled(setting, pattern)
        self._parts = _parts(setting, replacement, self._pattern.groups)

    def matches(self, name: str) -> bool:
        """Whether the pattern matches the whole name."""
        return self._pattern.fullmatch(name) is not None

    def applied(self, name: str, count: int = 0) -> str:
        """The name with its matches replaced: the first `count`, or all of them."""

        def expand(found: re.Match[str]) -> str:
            return "".join((found[part] or "") if isinstance(part, int) else part for part in self._parts)

        return str(self._pattern.sub(expand, name, count))


def is_printable(name: str) -> bool:
    """Whether a name can be written to a log, and compared in ACLs: it has no control character and no separator of
    lines, which would forge both."""
    return not any(unicodedata.category(one) in ("Cc", "Zl", "Zp") for one in name)


def _compiled(setting: str, pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    options.max_mem = MAX_PATTERN_BYTES
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        reason = error.args[0].decode(errors="replace") if isinstance(error.args[0], bytes) else error
        lacks = any(words in str(reason) for words in _LACKS)
        remedy = "write it without lookaround and backreferences" if lacks else "correct it"
        raise ConfigError(f"RE2 cannot run the pattern {pattern!r} of {setting} ({reason}); {remedy}") from None


def _parts(setting: str, replacement: str, groups: int) -> list[str | int]:
    """Texts, and numbers of groups. As Java's Matcher reads it: `$` and a group's number, which takes as many digits as
    there are groups for."""
    parts: list[str | int] = []
    at = 0
    while at < len(replacement):
        found = _PART.match(replacement, at)
        if found is None:
            raise ConfigError(
                f"the replacement {replacement!r} of {setting} has a $ or \\ without what belongs "
                "to it; write \\$ or \\\\"
            )
        at = found.end()
        digits = found["group"]
        if digits is None:
            parts.append(found["literal"] or found["text"])
            continue
        count = next((size for size in range(len(digits), 0, -1) if int(digits[:size]) <= groups), 0)
        parts += [int(digits[:count]), digits[count:]] if count else [f"${digits}"]
    return parts
