"""docs/configuration.md says what the tables say."""

from __future__ import annotations

import runpy
from pathlib import Path

from logkernel.config.tables import tables

DOCS = Path(__file__).parents[3] / "docs"


def test_the_page_is_fresh() -> None:
    page = runpy.run_path(str(DOCS / "generate_configuration.py"))["page"]()
    assert (DOCS / "configuration.md").read_text(encoding="utf-8") == page, "run python docs/generate_configuration.py"


def test_every_setting_is_on_the_page() -> None:
    text = (DOCS / "configuration.md").read_text(encoding="utf-8")
    for name in (*tables().broker, *tables().topic):
        assert f"- **`{name}`** (" in text
