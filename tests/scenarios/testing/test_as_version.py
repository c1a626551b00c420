"""A broker that looks like an older release of Kafka, to clients that adapt to it."""

from __future__ import annotations

import socket
import struct

import confluent_kafka
import kafka as kafka_python
import pytest

from logkernel.errors import ConfigError
from logkernel.testing import Kafka

GONE = {
    "2.8": {"Produce": 9, "Fetch": 12, "Metadata": 11, "ListOffsets": 6},
    "3.5": {"Produce": 9, "Fetch": 15, "AddPartitionsToTxn": 3},
    "4.0": {"Produce": 12, "Fetch": 17, "OffsetCommit": 9},
}


@pytest.mark.parametrize("version", GONE)
def test_clients_use_what_the_release_had(version: str) -> None:
    with Kafka(as_version=version, topics={"orders": 1}) as kafka:
        conf = {"bootstrap.servers": kafka.bootstrap_servers}
        producer = confluent_kafka.Producer({**conf, "transactional.id": "t"})
        producer.init_transactions(10)
        producer.begin_transaction()
        producer.produce("orders", b"1")
        producer.commit_transaction(10)
        consumer = confluent_kafka.Consumer({**conf, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["orders"])
        message = consumer.poll(10)
        assert message is not None
        assert message.value() == b"1"
        consumer.commit(asynchronous=False)
        consumer.close()
        for request in kafka.requests:
            assert request.version <= GONE[version].get(request.api, 99), str(request)
        assert {"Produce", "Fetch", "OffsetCommit"} <= {request.api for request in kafka.requests}


def test_our_own_clients_adapt_too() -> None:
    import logkernel

    with Kafka(as_version="2.8", topics={"orders": 1}) as kafka, logkernel.connect(kafka.bootstrap_servers) as log:
        with log.producer() as producer:
            producer.send("orders", b"1").result(60)
        with log.consumer("orders", group="g", auto_offset_reset="earliest") as consumer:
            assert [record.value for record in consumer.poll(10)] == [b"1"]
        assert max(request.version for request in kafka.requests.of("Produce")) == 9


def test_a_client_finds_out_which_release_it_is() -> None:
    with Kafka(as_version="3.7") as kafka:
        client = kafka_python.KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers)
        try:
            assert "orders" not in client.list_topics()
        finally:
            client.close()
        versions = {request.api: request.version for request in kafka.requests}
        assert versions["Metadata"] <= 12


def test_a_newer_request_is_refused() -> None:
    """Kafka closes the connection of a client that asks what it was not told of."""
    with Kafka(as_version="2.8") as kafka:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), timeout=60) as client:
            metadata_12 = struct.pack(">hhih", 3, 12, 1, -1) + b"\x00" + b"\x01" + b"\x00\x00\x00"
            client.sendall(struct.pack(">i", len(metadata_12)) + metadata_12)
            assert client.recv(100) == b""


def test_a_release_that_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"2\.8, 3\.0"):
        Kafka(as_version="2.7")
