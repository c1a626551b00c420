"""What differs from broker to broker (racks), and what a file names (topics), in a cluster in one process."""

from __future__ import annotations

from pathlib import Path

import pytest

import logkernel
from logkernel.cluster.cluster import Cluster
from logkernel.errors import ConfigError

FILE = """\
broker: {num.partitions: 2}
topics:
  pairs: {partitions: 3, replication.factor: 2, retention.ms: 70000}
  triples: {replication.factor: 3}
  too-many: {replication.factor: 9}
"""
RETENTION = "retention.ms"


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "cluster.yaml"
    path.write_text(FILE)
    return str(path)


def topics(cluster: Cluster) -> dict[str, int]:
    with cluster.admin() as admin:
        return {name: found.replication_factor for name, found in admin.describe_topics(admin.list_topics()).items()}


def retention(cluster: Cluster, topic: str = "pairs") -> str:
    with cluster.admin() as admin:
        return str(admin.describe_configs(("topic", topic))["topic", topic][RETENTION].value)


def test_replicas_are_spread_over_the_racks_that_brokers_are_in() -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b"}
    with logkernel.open_cluster(brokers=4, racks=racks) as cluster:
        cluster.create_topic("orders", partitions=8, replication_factor=2)
        with cluster.admin() as admin:
            assert {broker.id: broker.rack for broker in admin.describe_cluster().brokers} == racks
        placed = [cluster.replicas("orders", partition) for partition in range(8)]
        assert [sorted(racks[node] for node in nodes) for nodes in placed] == [["a", "b"]] * 8


def test_a_rack_of_a_broker_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no broker 4"):
        logkernel.open_cluster(brokers=3, racks={4: "a"})


def test_the_topics_of_a_file_are_made_in_a_cluster(file: str, caplog: pytest.LogCaptureFixture) -> None:
    with logkernel.open_cluster(brokers=3, config=file) as cluster:
        for partition in range(3):
            cluster.wait_for_leader("pairs", partition)
        for partition in range(2):
            cluster.wait_for_isr("triples", partition, 3)
        assert topics(cluster) == {"pairs": 2, "triples": 3}
        assert retention(cluster) == "70000"


def test_a_topic_waits_for_the_brokers_that_its_replicas_need(file: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with logkernel.open_cluster(brokers=2, path=folder, config=file) as cluster:
        cluster.wait_for_leader("pairs", 2)
        assert topics(cluster) == {"pairs": 2}
    with logkernel.open_cluster(brokers=3, path=folder, config=file) as cluster:
        cluster.wait_for_isr("triples", 1, 3)


def test_settings_that_changed_meanwhile_outlive_the_controller_and_not_a_restart(file: str, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with logkernel.open_cluster(brokers=3, path=folder, config=file) as cluster:
        cluster.wait_for_leader("pairs", 2)
        with cluster.admin() as admin:
            admin.alter_configs({("topic", "pairs"): {RETENTION: 90000}})
        controller = cluster.controller()
        assert controller is not None
        cluster.stop(controller)
        cluster.wait_for_leader("pairs", 2)
        assert retention(cluster) == "90000"
    with logkernel.open_cluster(brokers=3, path=folder, config=file) as cluster:
        cluster.wait_for_leader("pairs", 2)
        assert retention(cluster) == "70000"
