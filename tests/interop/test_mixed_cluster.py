"""A broker of ours and two of Apache Kafka 3.9 in one cluster over ZooKeeper: each of them commands the others once."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kafka_with_zookeeper as kafkas
import pytest
from outside_tools import missing

import logkernel
from logkernel.admin import NewTopic
from logkernel.errors import KafkaError
from logkernel.remote import RemoteLog

pytestmark = pytest.mark.interop
SETTINGS = ("zookeeper.session.timeout.ms=6000", "replica.lag.time.max.ms=5000")


@pytest.mark.longest
def test_ours_and_kafkas_brokers_lead_follow_and_command_each_other(
    tmp_path: Path, start_broker: Callable[..., Any], eventually: Callable[..., None]
) -> None:
    try:
        with kafkas.zookeeper(tmp_path) as (keeper, _):
            mixed = Mixed(tmp_path, keeper, start_broker, eventually)
            try:
                mixed.kafka_commands()
                mixed.ours_commands()
                mixed.kafka_commands_again()
            finally:
                for server in mixed.kafkas.values():
                    server.stop()
    except subprocess.CalledProcessError as error:
        missing(f"the jars of Kafka 3.9 cannot be fetched: {error}")


class Mixed:
    """Kafka's brokers 1 and 2, ours is 3."""

    def __init__(
        self, folder: Path, keeper: Any, start_broker: Callable[..., Any], eventually: Callable[..., None]
    ) -> None:
        self.eventually = eventually
        settings = {"zookeeper_session_timeout_ms": "6000", "replica_lag_time_max_ms": "5000"}
        self.kafkas = {node: kafkas.member(folder, node, keeper, **settings) for node in (1, 2)}
        for server in self.kafkas.values():
            server.start()
        words = [word for setting in SETTINGS for word in ("--set", setting)]
        self.ours = start_broker("--coordination", f"zookeeper://{keeper.bootstrap}", "--node-id", "3", *words)

    def connect(self) -> RemoteLog:
        return logkernel.connect(",".join([*(each.bootstrap for each in self.kafkas.values()), self.ours.bootstrap]))

    def until(self, holds: Callable[[], bool], what: str) -> None:
        def tried() -> bool:
            try:
                return holds()
            except (KafkaError, OSError):
                return False

        self.eventually(tried, 120, what)

    def in_sync(self, log: RemoteLog, topic: str, count: int) -> None:
        with log.admin() as admin:
            self.until(
                lambda: all(len(row.isr) == count for row in admin.describe_topics(topic)[topic].partitions),
                f"{topic} has {count} replicas in sync",
            )

    def controller(self, log: RemoteLog, among: set[int]) -> None:
        with log.admin() as admin:
            self.until(lambda: admin.describe_cluster().controller in among, f"one of {among} is the controller")

    def write(self, log: RemoteLog, topic: str, count: int) -> None:
        with log.producer(acks="all") as producer:
            for sent in [producer.send(topic, b"%d" % number) for number in range(count)]:
                sent.result()

    def kafka_commands(self) -> None:
        with self.connect() as log, log.admin() as admin:
            self.until(lambda: len(admin.describe_cluster().brokers) == 3, "three brokers")
            self.controller(log, {1, 2})
            admin.create_topics(NewTopic("first", 3, 3, {"retention.ms": "3600000"}))
            self.in_sync(log, "first", 3)
            self.write(log, "first", 60)
            assert {row.leader for row in admin.describe_topics("first")["first"].partitions} == {1, 2, 3}
            for server in self.kafkas.values():
                server.stop()
            self.controller(log, {3})
            self.until(
                lambda: all(row.leader == 3 for row in admin.describe_topics("first")["first"].partitions), "3 leads"
            )

    def ours_commands(self) -> None:
        for server in self.kafkas.values():
            server.start()
        with self.connect() as log, log.admin() as admin:
            self.controller(log, {3})
            self.in_sync(log, "first", 3)
            admin.create_topics(NewTopic("second", 3, 3, {"retention.ms": "1800000"}))
            self.in_sync(log, "second", 3)
            self.write(log, "second", 60)
            admin.alter_partition_reassignments({("second", 0): [2, 1]})
            self.until(
                lambda: sorted(admin.describe_topics("second")["second"].partitions[0].replicas) == [1, 2], "moved"
            )
            admin.create_topics(NewTopic("third", 2, 3))
            self.in_sync(log, "third", 3)
            admin.delete_topics(["third"])
            self.until(lambda: "third" not in admin.list_topics(), "third is deleted")
            self.read(log, "first", 60)
        self.ours.kill()

    def read(self, log: RemoteLog, topic: str, count: int) -> None:
        found: list[bytes | None] = []
        with log.consumer(topic, auto_offset_reset="earliest") as consumer:

            def all_read() -> bool:
                found.extend(record.value for record in consumer.poll(1))
                return len(found) >= count

            self.until(all_read, f"{count} records of {topic}")
        assert sorted(found, key=lambda value: int(value or b"")) == [b"%d" % number for number in range(count)]

    def kafka_commands_again(self) -> None:
        with self.connect() as log:
            self.controller(log, {1, 2})
            self.in_sync(log, "first", 2)
            self.ours.restart()
            self.in_sync(log, "first", 3)
            self.read(log, "second", 60)
