"""Measure client consumers beside one another against one broker: records a CPU-second of the client's process.

python bench/consumers.py                           ours, kafka-python, aiokafka, confluent-kafka, embedded
python bench/consumers.py --runs 5 --records 1000000 --partitions 6
python bench/consumers.py --kafka                   against Apache Kafka instead of our broker

Every client reads the same topic from its first record, without a group, with its own default settings, and looks at
every value: `ours` by iteration, `ours, poll` in lists as `poll` returns them, `ours, poll_arrow` in Arrow record
batches (and again with answers of 3 MiB in place of Kafka's 1), kafka-python and aiokafka by their own lists,
confluent-kafka by `consume(500)`. The topic was written by our producer in batches of 16 KiB. `embedded` is client
and broker in one process: its CPU is that of both.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from beside import Beside, common_options, head, measured, run_child, serving
from clients import create_topic, payloads

Work = Callable[[], int]
"""Reads all that is left, and says how many records."""
QUIET_S = 60.0
LARGE_BYTES = 3 << 20


def ours(bootstrap: str, topic: str, count: int) -> Work:
    import logkernel

    return by_iteration(logkernel.connect(bootstrap), topic, count)


def by_iteration(log: Any, topic: str, count: int) -> Work:
    consumer = log.consumer(topic, auto_offset_reset="earliest")
    assert len(next(consumer).value)

    def work() -> int:
        records = size = 0
        for record in consumer:
            size += len(record.value)
            records += 1
            if records == count - 1:
                break
        return records

    return work


def ours_in_lists(bootstrap: str, topic: str, count: int) -> Work:
    import logkernel

    consumer = logkernel.connect(bootstrap).consumer(topic, auto_offset_reset="earliest")
    begun = len(consumer.poll(QUIET_S, 1))

    def work() -> int:
        records, size = begun, 0
        while records < count:
            for record in consumer.poll(QUIET_S):
                size += len(record.value)
                records += 1
        return records - begun

    return work


def arrow(bootstrap: str, topic: str, count: int, **settings: Any) -> Work:
    import logkernel

    consumer = logkernel.connect(bootstrap).consumer(topic, auto_offset_reset="earliest", **settings)
    begun = consumer.poll_arrow(QUIET_S, max_rows=1).num_rows  # imports pyarrow

    def work() -> int:
        records, size = begun, 0
        while records < count:
            batch = consumer.poll_arrow(QUIET_S)
            size += batch.column(1).nbytes
            records += batch.num_rows
        return records - begun

    return work


def arrow_in_large_answers(bootstrap: str, topic: str, count: int) -> Work:
    return arrow(bootstrap, topic, count, max_partition_fetch_bytes=LARGE_BYTES)


def embedded(folder: str, topic: str, count: int) -> Work:
    import logkernel

    return by_iteration(logkernel.open(folder), topic, count)


def kafka_python(bootstrap: str, topic: str, count: int) -> Work:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(topic, index) for index in sorted(consumer.partitions_for_topic(topic))])
    begun = sum(len(rows) for rows in consumer.poll(60_000, max_records=1).values())

    def work() -> int:
        records, size = begun, 0
        while records < count:
            for rows in consumer.poll(60_000).values():
                for record in rows:
                    size += len(record.value)
                records += len(rows)
        return records - begun

    return work


def aiokafka(bootstrap: str, topic: str, count: int) -> Work:
    from aiokafka import AIOKafkaConsumer

    loop = asyncio.new_event_loop()

    async def start() -> Any:
        made = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest")
        await made.start()
        await made.getone()
        return made

    consumer = loop.run_until_complete(start())

    async def read() -> int:
        records, size = 1, 0
        while records < count:
            for rows in (await consumer.getmany(timeout_ms=60_000)).values():
                for record in rows:
                    size += len(record.value)
                records += len(rows)
        await consumer.stop()
        return records - 1

    return lambda: loop.run_until_complete(read())


def confluent(bootstrap: str, topic: str, count: int) -> Work:
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    partitions = consumer.list_topics(topic, timeout=30).topics[topic].partitions
    consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in partitions])
    assert len(consumer.consume(1, timeout=QUIET_S)) == 1

    def work() -> int:
        records, size = 1, 0
        while records < count:
            for message in consumer.consume(min(500, count - records), timeout=QUIET_S):
                size += len(message.value())
                records += 1
        return records - 1

    return work


CLIENTS: dict[str, Callable[[str, str, int], Work]] = {
    "ours": ours,
    "ours, poll": ours_in_lists,
    "ours, poll_arrow": arrow,
    "ours, poll_arrow, 3 MiB": arrow_in_large_answers,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "confluent": confluent,
    "embedded": embedded,
}
SHARE = {"kafka-python": 5}
"""Clients that read only a part, so that a run does not take for ever."""
AIMS = {"kafka-python": 5.0, "aiokafka": 1.2}
ARROW_AIM = 2.0
"""`poll_arrow` beside confluent-kafka, in records a second."""


def fill(log: Any, topic: str, size: int, count: int) -> None:
    values = payloads(size)
    with log.producer(batch_size=16_384) as producer:
        for number in range(count):
            producer.send(topic, values[number % len(values)])


def fill_embedded(folder: Path, topic: str, size: int, count: int, partitions: int) -> None:
    import logkernel

    with logkernel.open(folder) as log:
        log.create_topic(topic, partitions=partitions)
        fill(log, topic, size, count)


def main() -> int:
    parser = common_options(__doc__, 300_000)
    parser.add_argument("--only", help=f"some of {', '.join(CLIENTS)}, with | between them")
    parser.add_argument("--child", nargs=4)
    options = parser.parse_args()
    if options.child:
        name, place, topic, count = options.child
        measured(CLIENTS[name](place, topic, int(count)))
        return 0
    with serving(options.kafka) as (server, folder):
        run(options, server, folder)
    return 0


def run(options: argparse.Namespace, server: Any, folder: Path) -> None:
    import logkernel

    names = options.only.split("|") if options.only else list(CLIENTS)
    sizes = [int(size) for size in options.sizes.split(",")]
    with logkernel.connect(server.bootstrap) as log:
        for size in sizes:
            create_topic(server.bootstrap, f"c{size}", options.partitions)
            fill(log, f"c{size}", size, options.records)
            if "embedded" in names:
                fill_embedded(folder / f"embedded-{size}", f"c{size}", size, options.records, options.partitions)
    table = Beside(AIMS)
    for turn in range(options.runs):
        for size in sizes:
            for name in names[:: 1 if turn % 2 == 0 else -1]:  # none is always the first
                alone = name == "embedded"
                place = folder / f"embedded-{size}" if alone else server.bootstrap
                count = options.records // SHARE.get(name, 1)
                table.add(
                    name, size, run_child(__file__, None if alone else server.pid, name, place, f"c{size}", count)
                )
    print(head(server, f"consumers, {options.partitions} partitions", options.runs))
    print(table.text())
    for size in sizes:
        columns, peer = table.figures("ours, poll_arrow", size), table.figures("confluent", size)
        if columns is not None and peer is not None:
            ratio = columns[-1] / peer[-1]
            verdict = "yes" if ratio >= ARROW_AIM else "NO"
            print(f"poll_arrow / confluent, {size} bytes, records a second: {ratio:.2f}  >= {ARROW_AIM:g}x: {verdict}")


if __name__ == "__main__":
    sys.exit(main())
