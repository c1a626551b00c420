"""Draws the diagrams of docs/groups.md and docs/streams-groups.md from the machines' own tables; a test checks them.

python docs/generate_groups.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from logkernel.plugins.services.groups import state as classic
from logkernel.plugins.services.groups.by_epochs.steps import TRANSITIONS
from logkernel.plugins.services.groups.streams.state import STATES

PAGE = Path(__file__).resolve().parent / "groups.md"
STREAMS_PAGE = PAGE.with_name("streams-groups.md")


def diagram(table: Mapping[tuple[Any, Enum], Any], attribute: str) -> str:
    """A state diagram in Mermaid, its rows in the table's order."""
    rows = [
        f"    {getattr(before, attribute)} --> {getattr(after, attribute)}: {event.value}"
        for (before, event), after in table.items()
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", *rows, "```"])


def states() -> str:
    """How a Streams group stands, as a table."""
    rows = [f"| {standing.value} | {state.value} |" for standing, state in STATES.items()]
    return "\n".join(["| what is stored of the group | state |", "|---|---|", *rows])


def page(text: str) -> str:
    """docs/groups.md with its diagrams drawn anew."""
    return _drawn(text, {"classic": diagram(classic.TRANSITIONS, "value"), "member": diagram(TRANSITIONS, "name")})


def streams_page(text: str) -> str:
    """docs/streams-groups.md with its table of states written anew."""
    return _drawn(text, {"streams states": states()})


def _drawn(text: str, drawn: Mapping[str, str]) -> str:
    """A page with its diagrams, each between two comments with its name."""
    for name, block in drawn.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        text, count = re.subn(f"{begin}.*?{end}", f"{begin}\n{block}\n{end}", text, flags=re.DOTALL)
        assert count == 1, name
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
    STREAMS_PAGE.write_text(streams_page(STREAMS_PAGE.read_text()))
