"""What a view asks of the log, over the control port; `kafka.broker.LogInside`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from logkernel.config.values import render
from logkernel.errors import GroupIdNotFound, LogkernelError
from logkernel.testing.child.control import ControlClient
from logkernel.testing.child.structured import structured
from logkernel.testing.kafka.security import ListenerSecurity
from logkernel.testing.server.rows import plain
from logkernel.vocabulary import Record, RecordMetadata

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.client.admin.groups import GroupDescription
    from logkernel.client.consumer.consumer import Consumer
    from logkernel.client.producer.producer import Producer
    from logkernel.remote import RemoteLog


class LogOverControl:
    """See the module."""

    def __init__(self, control: ControlClient, security: ListenerSecurity) -> None:
        self._control, self._security = control, security
        self._bootstrap = ""
        self._remote: RemoteLog | None = None

    def __getattr__(self, name: str) -> Any:
        """What else an `EmbeddedLog` has."""
        if name.startswith("_"):
            raise AttributeError(name)
        raise LogkernelError(
            f"log.{name} is not there: the log is in another process; use the methods of Kafka, its clients, or"
            " logkernel.connect(kafka.bootstrap_servers)"
        )

    def reach(self, bootstrap: str) -> None:
        """Where clients that are made here connect to."""
        self._bootstrap = bootstrap

    def close_clients(self) -> None:
        """Close those that were made here."""
        remote, self._remote = self._remote, None
        if remote is not None:
            remote.close()

    # ------------------------------------------------------------ topics

    def create_topic(
        self, name: str, partitions: int = -1, *, config: Mapping[str, str] | None = None, **settings: Any
    ) -> None:
        wanted: dict[str, Any] = {key: render(value) for key, value in {**settings, **(config or {})}.items()}
        self._control.call("POST", "topics", body={name: {**wanted, "partitions": partitions}})

    def delete_topic(self, name: str) -> None:
        self._control.call("DELETE", "topics", name)

    def topics(self) -> dict[str, int]:
        found: dict[str, int] = self._control.call("GET", "topics")
        return found

    def start_offset(self, topic: str, partition: int = 0) -> int:
        return self._offsets(topic, partition)["start"]

    def end_offset(self, topic: str, partition: int = 0) -> int:
        return self._offsets(topic, partition)["end"]

    def _offsets(self, topic: str, partition: int) -> dict[str, int]:
        found: dict[str, int] = self._control.call("GET", "topics", topic, "offsets", str(partition))
        return found

    def compact(self, topic: str) -> object:
        return self._control.call("POST", "compact", body={"topic": topic})

    def apply_retention(self, topic: str) -> object:
        return self._control.call("POST", "retention", body={"topic": topic})

    # ------------------------------------------------------------ records

    def append_many(
        self, topic: str, records: Iterable[Record], *, partition: int | None = None
    ) -> list[RecordMetadata]:
        rows = [
            {
                "key": plain(record.key),
                "value": plain(record.value),
                "headers": plain(dict(record.headers)),
                "timestamp_ms": record.timestamp_ms,
                "partition": partition,
            }
            for record in records
        ]
        return [RecordMetadata(**row) for row in self._control.call("POST", "topics", topic, "records", body=rows)]

    def read(
        self, topic: str, partition: int = 0, offset: int | None = None, *, isolation: str = "read_uncommitted"
    ) -> Iterator[Record]:
        more = True
        while more:
            page = self._control.call(
                "GET", "topics", topic, "records", partition=partition, offset=offset, isolation=isolation
            )
            more = page["more"]
            for row in page["records"]:
                yield structured(Record, {name: row[name] for name in RECORD})
                offset = row["offset"] + 1

    # ------------------------------------------------------------ groups

    def describe_group(self, group: str) -> GroupDescription | None:
        from logkernel.client.admin.groups import GroupDescription

        try:
            found: GroupDescription = structured(GroupDescription, self._control.call("GET", "groups", group=group))
        except GroupIdNotFound:
            return None
        return found

    def committed(self, group: str, topic: str, partition: int) -> int:
        offset: int = self._control.call("GET", "committed", group=group, topic=topic, partition=partition)["offset"]
        return offset

    # ------------------------------------------------------------ clients, which use sockets

    def producer(self, **settings: Any) -> Producer:
        return self._connected().producer(**settings)

    def consumer(self, *topics: str, group: str | None = None, **settings: Any) -> Consumer:
        return self._connected().consumer(*topics, group=group, **settings)

    def admin(self, **settings: Any) -> Admin:
        return self._connected().admin(**settings)

    def _connected(self) -> RemoteLog:
        if self._remote is None:
            from logkernel.remote import RemoteLog

            self._remote = RemoteLog(self._bootstrap, self._security.login())
        return self._remote


RECORD = ("key", "value", "headers", "timestamp_ms", "offset")
"""Fields of a `Record`."""
