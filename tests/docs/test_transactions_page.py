"""docs/transactions.md shows the states and settings that the code has."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from attrs import fields
from module_files import page_generator

from logkernel.plugins.services.transactions.settings import NAMES, TransactionSettings
from logkernel.plugins.services.transactions.state import TRANSITIONS, State

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return page_generator("transactions")


def test_the_diagram_is_fresh(generator: ModuleType) -> None:
    text = (DOCS / "transactions.md").read_text()
    assert text == generator.page(text), "run: python docs/generate_transactions.py"


def test_the_diagram_has_every_state_and_arrow(generator: ModuleType) -> None:
    drawn = generator.diagram()
    for state in State:
        assert f" {state.value}" in drawn
    for (before, event), after in TRANSITIONS.items():
        (line,) = [line for line in drawn.splitlines() if f" {before.value} --> {after.value}:" in line]
        assert event.value in line


def test_every_setting_is_named_with_its_default() -> None:
    text = (DOCS / "transactions.md").read_text()
    for attribute in fields(TransactionSettings):
        if attribute.name != "offsets_partitions":  # the groups'
            assert f"| `{NAMES[attribute.name]}` | {attribute.default} |" in text
