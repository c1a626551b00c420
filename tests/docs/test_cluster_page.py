"""docs/cluster.md keeps its word: every example runs, and says what the page says; every call is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from logkernel.cluster.cluster import Cluster

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CALLS = re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE)


def test_every_example_says_something() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") >= 5


@pytest.mark.parametrize(("code", "said"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example(code: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "docs/cluster.md", "exec"), {})
    assert capsys.readouterr().out == said


def test_every_call_of_a_test_author_is_listed() -> None:
    """Those that act on brokers, and those that ask or wait; the rest is what every log has, or has a section."""
    elsewhere = {"close", "closed", "forked", "run", "create_topic", "delete_topic", "bootstrap_servers", "kernel",
                 "producer", "consumer", "admin", "host", "gate"}  # fmt: skip
    listed = {name for name in CALLS if hasattr(Cluster, name)}
    assert {name for name in vars(Cluster) if not name.startswith("_")} - elsewhere == listed
