"""The pages of clients' settings say what the tables say."""

from __future__ import annotations

import importlib.util
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_the_pages_are_fresh() -> None:
    spec = importlib.util.spec_from_file_location("generate_client_settings", DOCS / "generate_client_settings.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    names = {"producer-settings.md", "consumer-settings.md", "client-security-settings.md"}
    assert {path.name for path in module.PAGES} == names
    for path, text in module.PAGES.items():
        assert path.read_text(encoding="utf-8") == text(), "run python docs/generate_client_settings.py"
