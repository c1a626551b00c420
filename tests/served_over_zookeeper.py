"""Brokers of ours in processes of their own over one ZooKeeper, as tests start, harm and ask them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import logkernel
from logkernel.admin import NewTopic
from logkernel.errors import KafkaError
from logkernel.remote import RemoteLog

TIMEOUT_MS = 3_000
SETTINGS = (
    f"zookeeper.session.timeout.ms={TIMEOUT_MS}", "zookeeper.connection.timeout.ms=120000",
    "offsets.topic.num.partitions=2", "controlled.shutdown.retry.backoff.ms=100",
)  # fmt: skip


class Reached:
    """Brokers of one cluster that run, by node id, and how a test asks them."""

    patience_s = 180

    def __init__(self, eventually: Callable[..., None]) -> None:
        self._eventually = eventually
        self.brokers: dict[int, Any] = {}

    def connect(self) -> RemoteLog:
        return logkernel.connect(",".join(broker.bootstrap for broker in self.brokers.values()))

    def until(self, holds: Callable[[], bool], what: str) -> None:
        def tried() -> bool:
            try:
                return holds()
            except (KafkaError, OSError):
                return False

        self._eventually(tried, self.patience_s, what)


class Served(Reached):
    """Brokers that the test starts."""

    def __init__(self, url: str, start_broker: Callable[..., Any], eventually: Callable[..., None]) -> None:
        super().__init__(eventually)
        self.url = url
        self._start = start_broker

    def start_with(self, node: int, *arguments: str) -> None:
        self.brokers[node] = self._start(*arguments)

    def start(self, node: int, *arguments: str, data: Path | None = None, listen: str = "127.0.0.1:0") -> Any:
        words = [word for setting in SETTINGS for word in ("--set", setting)]
        given = ("--coordination", self.url, "--node-id", str(node), *words, *arguments)
        made = self._start(*given, data=data, listen=listen)
        self.brokers[node] = made
        return made

    def create(self, log: RemoteLog, name: str, partitions: int, replicas: int) -> None:
        with log.admin() as admin:
            self.until(lambda: len(admin.describe_cluster().brokers) == len(self.brokers), "all brokers are known")
            admin.create_topics(NewTopic(name, partitions, replicas, {"min.insync.replicas": "1"}))
        self.in_sync(log, name, replicas)

    def in_sync(self, log: RemoteLog, name: str, count: int) -> None:
        with log.admin() as admin:
            self.until(
                lambda: all(len(row.isr) == count for row in admin.describe_topics(name)[name].partitions),
                f"{name} has {count} replicas in sync",
            )
