"""A log in a running cluster: `logkernel.connect("host:9092")`, with the methods of an embedded log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from logkernel.client.cluster.bootstrap import bootstrap_addresses
from logkernel.client.cluster.bootstrap_client import BootstrapClient
from logkernel.client.cluster.permissions import explained
from logkernel.client.factory import ClientFactory
from logkernel.client.settings.producer import load_producer
from logkernel.client.settings.table import channel_settings
from logkernel.config.values import topic_settings
from logkernel.errors import error_for
from logkernel.kernel import Kernel
from logkernel.requests.cluster import MetadataRequest
from logkernel.requests.topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    DeleteTopicState,
)

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.client.consumer.consumer import Consumer
    from logkernel.client.producer.producer import Producer
    from logkernel.table import Source
    from logkernel.table.reader import ScanBounds


def create_request(
    name: str, partitions: int, replication_factor: int, config: Mapping[str, str] | None, settings: Mapping[str, Any]
) -> CreateTopicsRequest:
    rows = [CreatableTopicConfig(key, value) for key, value in topic_settings(config, settings).items()]
    return CreateTopicsRequest([CreatableTopic(name, partitions, replication_factor, [], rows)])


def delete_request(name: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000, topics=[DeleteTopicState(name)])


def raise_for(rows: Any, request: str) -> None:
    """Raise the error of the first row that has one; `request` is one of `permissions.OPERATIONS`."""
    for row in rows:
        if row.error_code:
            raise explained(error_for(row.error_code, row.error_message, about=row.name), request)


class RemoteLog:
    """A log in a running cluster, logkernel's or Apache Kafka's. Use it as a context manager, or call `close`.

    Its methods raise `KafkaError` for what a broker refuses, and `NetworkException` if no broker can be reached.
    """

    def __init__(self, servers: str, settings: Mapping[str, Any], transport: str = "tcp") -> None:
        self.kernel = Kernel()
        self._transport = transport
        self._common = {"bootstrap_servers": servers, **settings}
        self._source: Source | None = None
        self._factory = ClientFactory(self.kernel, self._common, weak=True)
        values = load_producer(self._common, "client")
        setup = "socket.connection.setup.timeout.ms"
        settings = {setup: values[setup], **channel_settings(values)}
        self._broker = BootstrapClient(self.kernel, bootstrap_addresses(values), settings, transport)

    def __enter__(self) -> RemoteLog:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close every client made here, and the connection; may be called twice."""
        for client in self._factory.let_go():
            client.close()
        if self._source is not None:
            self._source.close()
            self._source = None
        self._broker.close()

    def producer(self, **settings: Any) -> Producer:
        """Return a producer to this cluster. Keywords are Kafka's settings with `_` for `.`. Raises `ConfigError`."""
        from logkernel.client.producer.producer import Producer

        return self._factory.producer(Producer, self._driver, settings)

    def consumer(self, *topics: str, group: str | None = None, **settings: Any) -> Consumer:
        """Return a consumer of this cluster. Without a `group` it reads all partitions of `topics`.

        Keywords are Kafka's settings with `_` for `.`. Raises `ConfigError`.
        """
        from logkernel.client.consumer.consumer import Consumer

        return self._factory.consumer(Consumer, self._polling_driver, topics, group, settings)

    def admin(self, **settings: Any) -> Admin:
        """Return an admin client of this cluster. Keywords are Kafka's settings, `_` for `.`. Raises `ConfigError`."""
        from logkernel.client.admin.client import Admin

        return self._factory.admin(Admin, self._driver, settings)

    def _driver(self, machine: Any, values: Mapping[str, Any]) -> Any:
        from logkernel.client.drivers.thread_driver import ThreadDriver

        return ThreadDriver(machine, values, self.kernel, self._transport)

    def _polling_driver(self, machine: Any, values: Mapping[str, Any]) -> Any:
        from logkernel.client.drivers.polling_driver import PollingDriver

        return PollingDriver(machine, values, self.kernel, self._transport)

    # ------------------------------------------------------------ topics

    def create_topic(
        self,
        name: str,
        partitions: int = -1,
        *,
        replication_factor: int = -1,
        config: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        """Create a topic; -1 takes the broker's default. `config` has Kafka's names; keywords have `_` for `.`.

        Raises `TopicAlreadyExists`, `InvalidTopicException`, `InvalidPartitions`, `InvalidReplicationFactor`,
        `InvalidConfig`.
        """
        response = self.request(create_request(name, partitions, replication_factor, config, settings))
        raise_for(response.topics, "CreateTopics")

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records. Raises `UnknownTopicOrPartition`."""
        raise_for(self.request(delete_request(name)).responses, "DeleteTopics")

    def topics(self) -> dict[str, int]:
        """Return topic name → number of partitions, without internal topics."""
        rows = self.request(MetadataRequest(topics=None, allow_auto_topic_creation=False)).topics
        return {row.name: len(row.partitions) for row in sorted(rows, key=lambda row: row.name) if not row.is_internal}

    def table(
        self,
        topic: str,
        *,
        start: ScanBounds = "earliest",
        end: ScanBounds = "latest",
        columns: Sequence[str] | None = None,
        isolation: str = "read_uncommitted",
        partitions: Iterable[int] | None = None,
        batch_rows: int = 1 << 16,
    ) -> Any:
        """Return the topic as a `pyarrow.RecordBatchReader`, as `EmbeddedLog.table` does, over the network."""
        from logkernel.table.reader import table

        return table(
            self.source, topic, start=start, end=end, columns=columns, isolation=isolation, partitions=partitions,
            batch_rows=batch_rows,
        )  # fmt: skip

    @property
    def source(self) -> Source:
        """This cluster as a source of tables; see `logkernel.table`."""
        if self._source is None:
            from logkernel.table import open_source

            settings = {name: value for name, value in self._common.items() if name != "bootstrap_servers"}
            self._source = open_source(bootstrap=self._common["bootstrap_servers"], settings=settings)
        return self._source

    def request(self, request: Any) -> Any:
        """Return a broker's response to a versionless request. A broken connection is reopened once."""
        return self._broker.request(request)


def connect(servers: str = "127.0.0.1:9092", **settings: Any) -> RemoteLog:
    """Return a log in a running cluster; connections are opened when they are needed.

    `servers` is Kafka's bootstrap.servers ("host:port,host:port"). Keywords are settings of all clients made from the
    log, with `_` for `.`. Raises `ConfigError`.
    """
    return RemoteLog(servers, settings)
