"""Unmodified clients of a topic whose filter lets one record in a thousand pass: they take empty batches and go on."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")

pytestmark = pytest.mark.interop

TOPIC = "orders"
EACH = 1_000
PASSING = [999, 1_999, 2_999, 3_999]
LAST = 4_500
"""The records behind the last that passes are filtered, too."""
WAIT_S = 180.0
PARTITION_EOF = -191
CONFIG = """\
topics:
  orders: {partitions: 1, fetch.filters: match, fetch.match.rules: "*: header:keep=1"}
"""


def fill(bootstrap: str, codec: str = "none") -> None:
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": bootstrap, "batch.num.messages": 40, "linger.ms": 5, "compression.type": codec}
    )
    for number in range(LAST):
        headers = [("keep", b"1")] if number % EACH == EACH - 1 else []
        producer.produce(TOPIC, b"%d " % number + b"x" * 1_000, headers=headers, partition=0)
        producer.poll(0)
    assert producer.flush(WAIT_S) == 0


@pytest.fixture
def broker(start_broker: Any, tmp_path: Path) -> Any:
    path = tmp_path / "logkernel.yaml"
    path.write_text(CONFIG)
    found = start_broker("--config", str(path))
    fill(found.bootstrap)
    return found


def test_librdkafka_gets_what_passes_and_reaches_the_end(broker: Any) -> None:
    reader = confluent_kafka.Consumer(
        {"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest",
         "enable.partition.eof": True}
    )  # fmt: skip
    reader.assign([confluent_kafka.TopicPartition(TOPIC, 0, 0)])
    seen: list[int] = []
    deadline_s = time.monotonic() + WAIT_S
    while True:
        assert time.monotonic() < deadline_s, seen
        message = reader.poll(1)
        if message is None:
            continue
        if message.error():
            assert message.error().code() == PARTITION_EOF
            assert message.offset() == LAST, "it is at the log's end, though nothing passed there"
            break
        seen.append(message.offset())
    reader.close()
    assert seen == PASSING


def test_kcat_reads_to_the_end(broker: Any, kcat: str) -> None:
    done = subprocess.run(
        [kcat, "-C", "-b", broker.bootstrap, "-t", TOPIC, "-o", "beginning", "-e", "-f", "%o\n"],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert [int(line) for line in done.stdout.split()] == PASSING


def test_python_clients_read_what_passes(broker: Any, clients: Any) -> None:
    for name in ("kafka-python", "aiokafka"):
        got = clients[name].consume(broker.bootstrap, TOPIC, len(PASSING))
        assert [record.offset for record in got] == PASSING, name


def test_java_reads_what_passes(broker: Any, java: Any) -> None:
    rows = java.run("group", broker.bootstrap, TOPIC, "g", str(len(PASSING)))
    assert [row["offset"] for row in rows] == PASSING


def test_a_share_consumer_gets_what_passes(broker: Any) -> None:
    from test_share_confluent import consumer, from_the_start, poll_until

    from_the_start(broker.bootstrap, "shared")
    with consumer(broker.bootstrap, "shared", TOPIC) as reader:
        got = poll_until(reader, lambda seen: len(seen) >= len(PASSING))
    assert [message.offset() for message in got] == PASSING
