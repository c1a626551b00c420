"""Draws the states of a transaction in docs/transactions.md from the table of the code; a test keeps the page fresh.

python docs/generate_transactions.py
"""

from __future__ import annotations

from pathlib import Path

from logkernel.plugins.services.transactions.state import TRANSITIONS, Event, State

PAGE = Path(__file__).resolve().parent / "transactions.md"
BEGIN, END = "<!-- states: written by docs/generate_transactions.py -->\n", "<!-- end of states -->\n"


def diagram() -> str:
    """Mermaid; the events between two states share an arrow."""
    arrows: dict[tuple[State, State], list[Event]] = {}
    for (before, event), after in TRANSITIONS.items():
        arrows.setdefault((before, after), []).append(event)
    lines = [f"    [*] --> {State.EMPTY.value}"]
    for (before, after), events in arrows.items():
        lines.append(f"    {before.value} --> {after.value}: {'<br/>'.join(event.value for event in events)}")
    lines.append(f"    {State.DEAD.value} --> [*]")
    return "```mermaid\nstateDiagram-v2\n" + "\n".join(lines) + "\n```\n"


def page(text: str) -> str:
    """`text` with a fresh diagram."""
    head, rest = text.split(BEGIN)
    return head + BEGIN + diagram() + END + rest.split(END)[1]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
