"""Draws the diagrams of docs/groups.md from the machines' own tables; a test keeps them fresh.

python docs/generate_groups.py
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from logkernel.plugins.services.groups import state as classic
from logkernel.plugins.services.groups.consumer import reconcile

PAGE = Path(__file__).resolve().parent / "groups.md"


def diagram(table: Mapping[tuple[Any, Enum], Any], attribute: str) -> str:
    """A state diagram in Mermaid, its rows in the table's order."""
    rows = [
        f"    {getattr(before, attribute)} --> {getattr(after, attribute)}: {event.value}"
        for (before, event), after in table.items()
    ]
    return "\n".join(["```mermaid", "stateDiagram-v2", *rows, "```"])


def page(text: str) -> str:
    """The page with its diagrams drawn anew, each between two comments with its name."""
    drawn = {"classic": diagram(classic.TRANSITIONS, "value"), "member": diagram(reconcile.TRANSITIONS, "name")}
    for name, block in drawn.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        text, count = re.subn(f"{begin}.*?{end}", f"{begin}\n{block}\n{end}", text, flags=re.DOTALL)
        assert count == 1, name
    return text


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
