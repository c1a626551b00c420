"""docs/producer.md keeps its word: every example runs, and says what it should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "producer.md"
CODE = re.findall(r"```python\n(.+?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
SAID = [
    "told: None\n0 1\n",
    "at 0\nat 1\n",
    "[1, 1, 2, 1]\n",
    "written at 0\nb'ann' b'{\"total\":3}' (('stamp', b'1'),)\n",
    "[b'paid']\n",
]


def test_every_example_is_here() -> None:
    assert len(CODE) == len(SAID)


@pytest.mark.parametrize("number", range(len(SAID)))
def test_an_example(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(CODE[number], "docs/producer.md", "exec"), {})
    assert capsys.readouterr().out == SAID[number]


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", PAGE.read_text(encoding="utf-8")):
        assert (PAGE.parent / target).exists(), target
