"""The types of settings: text to value, value to text, and the bounds that a value must keep.

Kafka's types with the codes that DescribeConfigs uses, and types of a plugin's own. A setting travels as text (files,
the wire, the metadata log); it is parsed where it is used. What a type or validator raises begins as Apache Kafka words
it, because clients' test suites match those words.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

BOOLEAN: Final = 1
STRING: Final = 2
INT: Final = 3
SHORT: Final = 4
LONG: Final = 5
DOUBLE: Final = 6
LIST: Final = 7
CLASS: Final = 8
PASSWORD: Final = 9

TYPE_NAMES: Final = {
    BOOLEAN: "boolean",
    STRING: "string",
    INT: "int",
    SHORT: "short",
    LONG: "long",
    DOUBLE: "double",
    LIST: "list",
    CLASS: "class",
    PASSWORD: "password",
}
_BITS: Final = {SHORT: 15, INT: 31, LONG: 63}
_MAX_DIGITS: Final = 19
"""Digits of the largest LONG: longer text is refused before it is converted."""

Validator = Callable[[Any], None]
"""Raises ValueError, with what is valid, for a value out of bounds; its `str()` names the bounds."""


class OwnType:
    """A plugin's own type, e.g. `OwnType("region", Region.parse)`. Clients see such a setting as a string.

    `name` is used in docs and errors. `parse` gets the text, stripped, and returns the value, or raises ValueError with
    what is valid.
    """

    __slots__ = ("name", "parse")

    def __init__(self, name: str, parse: Callable[[str], Any]) -> None:
        self.name = name
        self.parse = parse


Type = int | OwnType
"""One of the constants above, or a plugin's own."""


def type_name(kind: Type) -> str:
    return TYPE_NAMES[kind] if isinstance(kind, int) else kind.name


def type_code(kind: Type) -> int:
    """DescribeConfigs' code."""
    return kind if isinstance(kind, int) else STRING


def parse(kind: Type, text: str) -> Any:
    """The typed value of `text`; raises ValueError that says what would be right. Lists give tuples."""
    text = text.strip()
    if not isinstance(kind, int):
        return kind.parse(text)
    if kind in _BITS:
        return _whole(kind, text)
    if kind == BOOLEAN:
        lowered = text.lower()
        if lowered not in ("true", "false"):
            raise ValueError("Expected value to be either true or false")
        return lowered == "true"
    if kind == DOUBLE:
        return _double(text)
    if kind == LIST:
        return tuple(part.strip() for part in text.split(",")) if text else ()
    return text


def _whole(kind: int, text: str) -> int:
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()):
        raise not_a_number(kind)
    value = int(text) if len(digits.lstrip("0")) <= _MAX_DIGITS else 2**64
    limit = 1 << _BITS[kind]
    if not -limit <= value < limit:
        raise not_a_number(kind)
    return value


def not_a_number(kind: int) -> ValueError:
    return ValueError(f"Not a number of type {TYPE_NAMES[kind].upper()}")


def _double(text: str) -> float:
    try:
        value = float(text) if "_" not in text else math.nan
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise not_a_number(DOUBLE)
    return value


def render(value: Any) -> str:
    """The text of a typed value, so that `parse(kind, render(value)) == value`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(str(part) for part in value)
    return str(value)


def topic_settings(config: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, str]:
    """The settings of a topic as a call gives them, as text: by `keywords`, with `_` for `.`, and over them `config`,
    by Kafka's names."""
    wanted = {key.replace("_", "."): render(value) for key, value in keywords.items()}
    wanted.update({key: render(value) for key, value in (config or {}).items()})
    return wanted


class Between:
    """A number from `low` to `high`, both included; None is no bound."""

    __slots__ = ("high", "low")

    def __init__(self, low: float | None = None, high: float | None = None) -> None:
        self.low = low
        self.high = high

    def __call__(self, value: Any) -> None:
        if self.low is not None and value < self.low:
            raise ValueError(f"Value must be at least {self.low}")
        if self.high is not None and value > self.high:
            raise ValueError(f"Value must be no more than {self.high}")

    def __str__(self) -> str:
        if self.high is None:
            return f"at least {self.low}"
        return f"at most {self.high}" if self.low is None else f"between {self.low} and {self.high}"


class Either:
    """One odd value, or what another validator takes, e.g. -1 or 1 to 9."""

    __slots__ = ("odd", "rest")

    def __init__(self, odd: Any, rest: Validator) -> None:
        self.odd = odd
        self.rest = rest

    def __call__(self, value: Any) -> None:
        if value != self.odd:
            try:
                self.rest(value)
            except ValueError:
                raise ValueError(f"Value must be {self.rest} or equal to {self.odd}") from None

    def __str__(self) -> str:
        return f"{self.odd}, or {self.rest}"


class OneOf:
    """One of some words."""

    __slots__ = ("words",)

    def __init__(self, *words: str) -> None:
        self.words = words

    def __call__(self, value: Any) -> None:
        if not self.words:
            raise ValueError("no installed plugin provides one")
        if value not in self.words:
            raise ValueError(f"String must be one of: {self._shown()}")

    def __str__(self) -> str:
        return f"one of {self._shown()}"

    def _shown(self) -> str:
        """Without the empty word, which is a default that no one writes."""
        return ", ".join(filter(None, self.words))


class Each:
    """A list of words, none of them empty; each must pass `bounds`, if given. No word may stand twice, unless
    `repeats`: then a repeated word counts once, as in Kafka's cleanup.policy."""

    __slots__ = ("bounds", "empty", "repeats")

    def __init__(self, bounds: OneOf | None = None, *, empty: bool = True, repeats: bool = False) -> None:
        self.bounds = bounds
        self.empty = empty
        self.repeats = repeats

    def __call__(self, value: Any) -> None:
        if not value and not self.empty:
            raise ValueError("List must not be empty")
        for part in value:
            if not part:
                raise ValueError("List must not have an empty element, as between two commas")
            if self.bounds is not None:
                self.bounds(part)
        if not self.repeats and len(set(value)) < len(value):
            raise ValueError("List must not name an element twice")

    def __str__(self) -> str:
        what = f"of {', '.join(self.bounds.words)}" if self.bounds and self.bounds.words else "of names"
        return f"a list {what}{'' if self.empty else ', not empty'}"


class NonEmpty:
    """Text that is not empty."""

    __slots__ = ()

    def __call__(self, value: Any) -> None:
        if not value:
            raise ValueError("String must be non-empty")

    def __str__(self) -> str:
        return "not empty"


class Throttled:
    """`*`, or pairs partition:broker (KIP-73)."""

    __slots__ = ()

    def __call__(self, value: Any) -> None:
        if value in ((), ("*",)):
            return
        for part in value:
            partition, _, broker = part.partition(":")
            if not (partition.isascii() and partition.isdigit() and broker.isascii() and broker.isdigit()):
                raise ValueError(f"Value must be {self}")

    def __str__(self) -> str:
        return "*, or partition:broker pairs such as 0:101,1:102"
