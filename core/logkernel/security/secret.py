"""A value that no log, error or `repr` shows."""

from __future__ import annotations

from typing import Final

HIDDEN: Final = "[hidden]"
"""What stands for a secret, as in Kafka's `Password`."""


class Secret:
    """Text that is shown as `[hidden]`. Equal texts are equal secrets."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text, where it is used."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)
