"""Kafka's command line tools beside Apache Kafka 4.3.1: the same commands print the same.

`kafka-4.3.1-tool-steps.txt` is what they printed of a KRaft node, recorded by `record_coordinator_steps.py tools`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import coordinator_steps
import kafka_tools
import pytest
import tool_steps

HERE = Path(__file__).resolve().parent
pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

TYPED = coordinator_steps.by_name((HERE / "kafka-4.3.1-tool-steps.txt").read_text())
DEFAULT = "KRaft keeps min.insync.replicas as a cluster default of its own"
WORDS = "the error is Kafka's, its text our own"
OTHERWISE = {
    "topics describe": DEFAULT,
    "topics with overrides": DEFAULT,
    "configs broker default": DEFAULT,
    "configs broker default now": DEFAULT,
    "topics alter down": WORDS,
    "metrics bad": WORDS,
    "metrics bad match": WORDS,
    "features upgrade beyond": WORDS,
    "features upgrade unknown": WORDS,
    "elect none": WORDS,
    "elect some": WORDS,
    "shares describe members": "a member is told its partitions at once, not when their state was made",
    "configs topic all": "topics have some settings more here",
    "features describe": "features of KRaft are not there",
    "acls list": "ACLs are kept and described without an authorizer",
    "quorum": "there is no quorum to describe",
}
"""Commands that print something else here, and why."""


def test_tools_print_what_they_print_of_kafka(
    start_broker: Callable[..., Any], apache_kafka: ModuleType, tmp_path: Path
) -> None:
    command = kafka_tools.command(apache_kafka, tmp_path, apache_kafka.VERSION)
    broker = start_broker(*coordinator_steps.settings())
    lines: list[str] = []
    tool_steps.run(broker.bootstrap, command, lines.append)
    found = coordinator_steps.by_name("\n".join(lines))
    assert list(found) == list(TYPED)
    assert coordinator_steps.differing(found, TYPED, OTHERWISE) == []
