"""Kafka's command line tools beside a cluster of Apache Kafka 3.9.2: the same commands print the same of three brokers
of ours over ZooKeeper, and of both kinds in one cluster.

`kafka-3.9.2-cluster-tool-steps.txt` is what they printed of Kafka's, recorded by `record_cluster_tool_steps.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import cluster_tool_steps
import coordinator_steps
import kafka_tools
import pytest
import zookeepers
from mixed_brokers import members

HERE = Path(__file__).resolve().parent
pytestmark = [pytest.mark.interop, pytest.mark.timeout(600)]

TYPED = coordinator_steps.by_name((HERE / "kafka-3.9.2-cluster-tool-steps.txt").read_text())
WORDS = "the error is Kafka's, its text our own"
DEFAULT = "the default is told, too"
OTHERWISE = {
    "create nobody": "Kafka creates a partition on a broker that there is not",
    "create too many": "the topic was not created before",
    "list": "the topic was not created before",
    "alter nobody": WORDS,
    "alter down": WORDS,
    "elect one that is away": WORDS,
    "elect no topic": WORDS,
    "elect by file": WORDS,
    "reassign verify no topic": WORDS,
    "throttle of broker 1": DEFAULT,
    "throttle of broker 2": DEFAULT,
    "throttle of broker 3": DEFAULT,
    "features": "features of KIP-584 are supported, and none is finalized",
    "features upgrade": WORDS,
    "quorum": WORDS,
}
"""Commands that print something else here, and why. In a mixed cluster that depends on who answers."""


@pytest.mark.longest
@pytest.mark.parametrize("kinds", ["ours", "mixed"])
def test_tools_print_of_a_cluster_what_they_print_of_kafkas(
    kinds: str,
    apache_kafka: ModuleType,
    tmp_path: Path,
    start_broker: Callable[..., Any],
    patient_zookeeper: zookeepers.ZooKeeper,
) -> None:
    command = kafka_tools.command(apache_kafka, tmp_path, apache_kafka.OLDER)
    lines: list[str] = []
    address = f"{patient_zookeeper.address}/tools-{kinds}"
    with members(tmp_path, address, cluster_tool_steps.CLUSTERS[kinds], start_broker) as cluster:
        cluster_tool_steps.run(cluster, command, lines.append)
    found = coordinator_steps.by_name("\n".join(lines))
    assert list(found) == list(TYPED)
    if kinds == "ours":
        assert coordinator_steps.differing(found, TYPED, OTHERWISE) == []
    else:
        judged = {step: said for step, said in TYPED.items() if step not in OTHERWISE}
        assert coordinator_steps.differing(found, judged, {}) == []
