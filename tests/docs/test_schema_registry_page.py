"""The page of the schema registry: its programs say what it says, and its tests pass."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import testing_plugin

PAGE = Path(__file__).resolve().parents[2] / "docs" / "schema-registry.md"
BLOCK = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)


def test_its_programs_say_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    world: dict[str, object] = {"__name__": "page"}
    said = 0
    for code, expected in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        exec(compile(code, PAGE.name, "exec"), world)
        assert capsys.readouterr().out == expected
        said += bool(expected)
    assert said == 3


def test_its_test_passes(tmp_path: Path) -> None:
    code, _ = BLOCK.findall(PAGE.read_text(encoding="utf-8"))[0]
    (tmp_path / "test_page.py").write_text(code)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *testing_plugin.words(), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "1 passed" in done.stdout, done.stdout + done.stderr
