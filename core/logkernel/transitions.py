"""The table by which a machine goes from state to state: one object that the code runs, docs draw and tests walk."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NoReturn, TypeVar

State = TypeVar("State", bound=Enum)
Event = TypeVar("Event", bound=Enum)


class Transitions(dict[tuple[State, Event], State]):
    """(state, event) → next state.

    An event without a row is a fault of the machine, never of a client: looking it up raises RuntimeError, which names
    the machine and says event and state in their enums' words.
    """

    __slots__ = ("_machine",)

    def __init__(self, machine: str, rows: Mapping[tuple[State, Event], State]) -> None:
        super().__init__(rows)
        self._machine = machine

    def __missing__(self, row: tuple[State, Event]) -> NoReturn:
        state, event = row
        raise RuntimeError(f"{self._machine}: {event.value}, while {state.value}")
