"""docs/consumer-settings.md says what the table says."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_page_is_fresh() -> None:
    spec = importlib.util.spec_from_file_location("generate_consumer_settings", DOCS / "generate_consumer_settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.PAGE.read_text(encoding="utf-8") == module.page(), "run python docs/generate_consumer_settings.py"
