"""A broker of Apache Kafka 3.9 that logs in to ZooKeeper."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import kafka_with_zookeeper as with_zookeeper
from secured_zookeeper import Secured

COMMON = {"offsets.topic.replication.factor": "2", "offsets.topic.num.partitions": "1"}


class Member(with_zookeeper.apache_kafka.KafkaMember):  # type: ignore[misc, name-defined]
    """Logs in by the file that Java's property names."""

    brief = True

    def command(self) -> list[str]:
        java, *words = super().command()
        return [java, f"-Djava.security.auth.login.config={self.folder / 'login.conf'}", *words]


@contextmanager
def serving(folder: Path, zookeeper: Secured, address: str, login: str, **more: str) -> Iterator[Member]:
    """Broker 1 in the chroot /kafka of the ZooKeeper at `address`, by TLS."""
    member = Member(folder, 1, f"{address}/kafka", {**zookeeper.broker(), **COMMON, **more})
    member.prepare()
    (folder / "login.conf").write_text(f"Client {{ {login} }};\n")
    member.start()
    try:
        yield member
    finally:
        member.stop()
