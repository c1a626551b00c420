"""The pages of clients' settings say what the tables say."""

from __future__ import annotations

from module_files import page_generator


def test_the_pages_are_fresh() -> None:
    module = page_generator("client_settings")
    names = {"producer-settings.md", "consumer-settings.md", "client-security-settings.md"}
    assert {path.name for path in module.PAGES} == names
    for path, text in module.PAGES.items():
        assert path.read_text(encoding="utf-8") == text(), "run python docs/generate_client_settings.py"
