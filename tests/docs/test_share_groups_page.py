"""docs/share-groups.md says what the tables say."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest
from module_files import page_generator

from logkernel.plugins.services.shares.partitions.partition import TRANSITIONS

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    return page_generator("share_groups")


def test_the_page_is_fresh(generator: ModuleType) -> None:
    assert (DOCS / "share-groups.md").read_text() == generator.page(), "run: python docs/generate_share_groups.py"


def test_every_transition_is_drawn(generator: ModuleType) -> None:
    page = generator.page()
    for (before, event), after in TRANSITIONS.items():
        drawn = [line for line in page.splitlines() if line.strip().startswith(f"{before.name} --> {after.name}:")]
        assert any(event.name.lower() in line for line in drawn)
