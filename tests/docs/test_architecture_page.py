"""What docs/architecture.md says of the machines' effects."""

from __future__ import annotations

import re
from pathlib import Path

from attrs import fields

from logkernel.partition.effects import Effects

DOC = Path(__file__).parents[2] / "docs" / "architecture.md"


def test_the_effects_of_a_partition_are_named_in_their_order() -> None:
    found = re.search(r"carries out its fields in their order: `([^`]+)`", DOC.read_text())
    assert found is not None
    assert re.split(r",\s+", found[1]) == [one.name for one in fields(Effects)]
