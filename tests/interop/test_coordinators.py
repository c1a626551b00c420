"""Coordinators beside Apache Kafka 4.3.1: the same requests, byte by byte, and the same answers.

`kafka-4.3.1-coordinator-steps.txt` is what a fresh KRaft node answered, recorded by `record_coordinator_steps.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import coordinator_steps
import pytest

HERE = Path(__file__).resolve().parent
pytestmark = [pytest.mark.interop, pytest.mark.timeout(900)]

ASKED = coordinator_steps.by_name((HERE / "kafka-4.3.1-coordinator-steps.txt").read_text())
TOLD_ONCE = (
    "at all, twice", "at all, for two members", "at a topic twice", "at a partition twice", "at shared all, twice",
    "at groups", "at consumer groups", "at share groups", "at streams groups", "at transactions", "at producers",
    "at settings",
)  # fmt: skip
OTHERWISE = {
    "i repeats what is forgotten": "ten batches of a producer are remembered, not five",
    "describe after bad joins": "a JoinGroup that is refused leaves no group behind",
    "op described twice": "what a request asks for again is answered once",
    **dict.fromkeys(TOLD_ONCE, "likewise"),
    "at shares": "a member is told its partitions at once, not when their state was made",
    "share fetch of no name": "an empty group id is INVALID_REQUEST, not a failure of every partition",
    "share fetch before it joined": "a share-partition that nobody reads yet is empty, not a failure",
    "share joins": "a member is told its partitions at once, not when their state was made",
    "share described": "likewise",
    "share unknown topic": "UNKNOWN_TOPIC_ID of that topic, not a failure of the request",
    "share session begins": "a partition that has nothing to tell is left out",
}
"""Steps that are answered otherwise here, and why."""


@pytest.mark.longest
def test_coordinators_answer_as_kafkas(start_broker: Callable[..., Any]) -> None:
    broker = start_broker(*coordinator_steps.settings())
    lines: list[str] = []
    coordinator_steps.run(broker.bootstrap, lines.append)
    found = coordinator_steps.by_name("\n".join(lines))
    assert list(found) == list(ASKED)
    assert coordinator_steps.differing(found, ASKED, OTHERWISE) == []
