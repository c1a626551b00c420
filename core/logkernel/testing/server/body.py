"""What a request to the control port says: fields of its body or of its query, each checked. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

from logkernel.config.nearest import nearest
from logkernel.errors import ConfigError

MISSING: Final[Any] = object()
MAX_NAME: Final = 1000
"""Characters of a name; the broker's own bounds are smaller."""


def parse(data: bytes) -> Any:
    """The JSON in a body; an empty one is an empty object. Raises `ConfigError`."""
    try:
        return json.loads(data) if data else {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"the body is not JSON: {error}; send JSON in UTF-8") from None


class Query(dict[str, str]):
    """The query of a URL: its numbers are text."""


class Fields:
    """Each call takes one field, and raises `ConfigError` where it is not what it should be; `end` refuses others."""

    def __init__(self, given: Any) -> None:
        """`given` is what `parse` returned, or a `Query`."""
        if not isinstance(given, Mapping):
            raise ConfigError("the body is no JSON object; write one with names of fields")
        self._given = given
        self._known: list[str] = []

    def any(self, name: str, default: Any = MISSING) -> Any:
        self._known.append(name)
        found = self._given.get(name, default)
        if found is MISSING:
            raise ConfigError(f"{name} is missing; say which")
        return found

    def text(self, name: str, default: Any = MISSING) -> Any:
        found = self.any(name, default)
        if found is not default and not (isinstance(found, str) and 0 < len(found) <= MAX_NAME):
            raise ConfigError(f"{name} is {found!r}; write a text of up to {MAX_NAME} characters")
        return found

    def choice(self, name: str, choices: Iterable[str], default: str) -> str:
        found = self.any(name, default)
        if found not in choices:
            raise ConfigError(f"{name} is {found!r}; use {' or '.join(choices)}")
        return str(found)

    def number(self, name: str, low: int, high: int, default: Any = MISSING) -> Any:
        """A whole number."""
        found = self.any(name, default)
        if found is default:
            return found
        if isinstance(found, str) and isinstance(self._given, Query):
            found = int(found) if found.lstrip("-").isdecimal() and found.isascii() and len(found) < 20 else found
        if not isinstance(found, int) or isinstance(found, bool) or not low <= found <= high:
            raise ConfigError(f"{name} is {found!r}; write a whole number from {low} to {high}")
        return found

    def amount(self, name: str, high: float, default: Any) -> Any:
        """A number from 0 on, maybe with a fraction."""
        found = self.any(name, default)
        if found is not default and not _is_amount(found, high):
            raise ConfigError(f"{name} is {found!r}; write a number from 0 to {high:g}")
        return found

    def flag(self, name: str, default: Any = MISSING) -> bool:
        found = self.any(name, default)
        if not isinstance(found, bool):
            raise ConfigError(f"{name} is {found!r}; write true or false")
        return found

    def end(self) -> None:
        """Raises `ConfigError` for a field that was not taken."""
        for name in self._given:
            if name not in self._known:
                near = nearest(name, self._known)
                there = f"there are {', '.join(sorted(self._known))}" if self._known else "there are none here"
                raise ConfigError(f"there is no field {name!r}; {f'did you mean {near!r}?' if near else there}")


def _is_amount(found: Any, high: float) -> bool:
    return isinstance(found, (int, float)) and not isinstance(found, bool) and 0 <= found <= high
