"""docs/plugins says which settings the hook of each kind gets."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from logkernel import hookspecs

PAGE = Path(__file__).parents[2] / "docs" / "plugins" / "index.md"
ANNOTATIONS = {"the topic's": "Mapping[str, Any]", "the client's": "Mapping[str, Any]", "the broker's": "Settings"}
"""How the page's cell begins → the annotation of the argument `settings`; none where the hook has no such argument."""


def told() -> dict[str, str]:
    """Kind → whose settings its hook gets, as the page says."""
    section = PAGE.read_text().split("## Which settings a hook gets", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| ([^|`]+) \| ([^|]+) \|$", section, re.MULTILINE)
    return {kind: cell for kinds, cell in rows if kinds != "kind" for kind in kinds.split(", ")}


def test_the_table_has_every_kind() -> None:
    assert sorted(told()) == sorted(hookspecs.KINDS)


@pytest.mark.parametrize("kind", hookspecs.KINDS)
def test_the_hook_takes_what_the_table_says(kind: str) -> None:
    hook = "logkernel_service" if kind == "service" else hookspecs.KINDS[kind]
    argument = inspect.signature(getattr(hookspecs, hook)).parameters.get("settings")
    cell = told()[kind]
    expected = next((one for start, one in ANNOTATIONS.items() if cell.startswith(start)), None)
    assert (None if argument is None else argument.annotation) == expected
    assert (expected is None) == cell.startswith("none")
