"""Types of options and arguments, with the words that help and errors use. click's own say "integer range"."""

from __future__ import annotations

from typing import Any

import click


class IntRange(click.IntRange):
    """A whole number within bounds."""

    name = "integer"


class FloatRange(click.FloatRange):
    """A number within bounds."""

    name = "number"


class AnyCase(click.Choice[str]):
    """One of some words, whatever the case. The error shows the words as they are."""

    def __init__(self, words: tuple[str, ...]) -> None:
        super().__init__(words, case_sensitive=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        for word in self.choices:
            if str(value).lower() == word.lower():
                return word
        self.fail(f"{value!r} is not one of {', '.join(self.choices)}.", param, ctx)
