"""The Python recipes of docs/testing-other-languages.md whose libraries the test extra has; those of Java, Go and Node
are in tests/interop/test_recipes.py."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import testing_plugin

PAGE = Path(__file__).parents[2] / "docs" / "testing-other-languages.md"
NOT_HERE = ("faststream", "def test_spark")
"""Tried by hand: FastStream is in no extra, and Spark takes ten seconds."""


def test_the_recipes_for_python_pass(tmp_path: Path) -> None:
    found = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    suite = [code for code in found if not any(word in code for word in NOT_HERE)]
    (tmp_path / "test_page.py").write_text("\n".join(suite))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *testing_plugin.words(), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "2 passed" in done.stdout, done.stdout + done.stderr
