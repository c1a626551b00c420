"""docs/consumer.md keeps its word: every example runs, and says what it should."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "consumer.md"
EXAMPLES = re.findall(r"^## (.+?)$|```python\n(.+?)```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
SAID = [
    "at least once: [b'0', b'1', b'2', b'3', b'4', b'5']",
    "at most once: b'hello'",
    "exactly once: [b'invoice of 0', b'invoice of 1', b'invoice of 2']",
    "mine now: [TopicPartition(topic='orders', partition=0), TopicPartition(topic='orders', partition=1)]",
    "['shop-a', 'shop-b'] ['shop-a', 'shop-b']",
    "1000 ['offset', 'value']",
    "{TopicPartition(topic='orders', partition=0): 6} 6",
    "all partitions can be read",
]
CODE = [code for _, code in EXAMPLES if code]


def test_every_example_is_here() -> None:
    assert len(CODE) == len(SAID)


@pytest.mark.parametrize("number", range(len(SAID)))
def test_an_example(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    if "poll_arrow" in CODE[number]:
        pytest.importorskip("pyarrow")
    exec(compile(CODE[number], "docs/consumer.md", "exec"), {})
    assert SAID[number] in capsys.readouterr().out


def test_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", PAGE.read_text()):
        assert (PAGE.parent / target).exists(), target
