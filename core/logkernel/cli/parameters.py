"""Types of options and arguments, with the words that help and errors use. click's own say "integer range"."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def with_options(options: Sequence[Callable[[F], F]]) -> Callable[[F], F]:
    """A decorator for options and arguments that a command has in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


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


def host_and_port(option: str, text: str) -> tuple[str, int]:
    """`text` as HOST:PORT; without a host, the local one. Raises `click.UsageError`, which names the option."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdecimal() and len(port) < 6 and int(port) < 65536):
        raise click.UsageError(f"{option} {text!r} is not of the form HOST:PORT; port 0 takes a free one")
    return host.strip("[]") or "127.0.0.1", int(port)
