"""Measure client producers beside one another against one broker: records a CPU-second of the client's process.

python bench/producers.py                           ours, kafka-python, aiokafka, confluent-kafka, embedded
python bench/producers.py --runs 5 --records 500000 --partitions 6
python bench/producers.py --kafka                   against Apache Kafka instead of our broker

Every client: acks=all, idempotent, linger 5 ms, else its own defaults (batch.size: 16 KiB, confluent-kafka 1 MB). What
a batch costs is most of what large records cost, so that ours and confluent-kafka stand beside one another at both of
these batch sizes as well. `embedded` is client and broker in one process: its CPU is that of both, and stands beside
the sum of client and broker of the others in the last column.
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

WAIT_S = 120.0
Work = Callable[[list[bytes], int], None]


def sending(producer: Any, topic: str) -> Work:
    def work(values: list[bytes], count: int) -> None:
        for number in range(count):
            producer.send(topic, values[number % len(values)])
        producer.flush(WAIT_S)

    return work


def ours(bootstrap: str, topic: str, **more: Any) -> Work:
    import logkernel

    producer = logkernel.connect(bootstrap).producer(**more)
    producer.send(topic, b"warm").result(WAIT_S)
    return sending(producer, topic)


def embedded(folder: str, topic: str) -> Work:
    import logkernel

    log = logkernel.open(folder)
    log.create_topic(topic, partitions=1)
    producer = log.producer()
    producer.send(topic, b"warm").result(WAIT_S)
    return sending(producer, topic)


def kafka_python(bootstrap: str, topic: str) -> Work:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=5)
    producer.send(topic, b"warm").get(WAIT_S)
    return sending(producer, topic)


def aiokafka(bootstrap: str, topic: str) -> Work:
    from aiokafka import AIOKafkaProducer

    loop = asyncio.new_event_loop()

    async def start() -> Any:
        made = AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=5)
        await made.start()
        await made.send_and_wait(topic, b"warm")
        return made

    producer = loop.run_until_complete(start())

    async def send(values: list[bytes], count: int) -> None:
        for number in range(count):
            await producer.send(topic, values[number % len(values)])
        await producer.flush()

    return lambda values, count: loop.run_until_complete(send(values, count))


def confluent(bootstrap: str, topic: str, **more: Any) -> Work:
    from confluent_kafka import Producer

    failed: list[Any] = []
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "enable.idempotence": True,
            "on_delivery": lambda error, _: error is not None and failed.append(error),
            **more,
        }
    )
    producer.produce(topic, b"warm")
    producer.flush(WAIT_S)

    def work(values: list[bytes], count: int) -> None:
        for number in range(count):
            while True:
                try:
                    producer.produce(topic, values[number % len(values)])
                    break
                except BufferError:
                    producer.poll(0.05)
            if number % 1000 == 0:
                producer.poll(0)
        if producer.flush(WAIT_S) or failed:
            raise RuntimeError(f"not all was delivered: {failed[:1]}")

    return work


CLIENTS: dict[str, Callable[[str, str], Work]] = {
    "ours": ours,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "confluent": confluent,
    "confluent 16K": lambda bootstrap, topic: confluent(bootstrap, topic, **{"batch.size": 16384}),
    "ours 1M": lambda bootstrap, topic: ours(bootstrap, topic, batch_size=1_000_000),
    "embedded": embedded,
}
SHARE = {"kafka-python": 10}
"""Clients that get only a part of the records, so that a run does not take for ever."""
AIMS = {"kafka-python": 5.0, "aiokafka": 1.5, "confluent": 0.5}
ALIKE = (("16K", "ours", "confluent 16K"), ("1M", "ours 1M", "confluent"))
"""Rows of ours and of confluent-kafka with one batch.size."""


def child(name: str, place: str, topic: str, size: int, count: int) -> None:
    """Runs in a process of its own."""
    values = payloads(size)
    work = CLIENTS[name](place, topic)

    def send() -> int:
        work(values, count)
        return count

    measured(send)


def main() -> int:
    parser = common_options(__doc__, 200_000)
    parser.add_argument("--only", default=",".join(CLIENTS))
    parser.add_argument("--child", nargs=5)
    options = parser.parse_args()
    if options.child:
        name, place, topic, size, count = options.child
        child(name, place, topic, int(size), int(count))
        return 0
    with serving(options.kafka) as (server, folder):
        run(options, server, folder)
    return 0


def run(options: argparse.Namespace, server: Any, folder: Path) -> None:
    names = options.only.split(",")
    table = Beside(AIMS)
    for turn in range(options.runs):
        for size in map(int, options.sizes.split(",")):
            for name in names[:: 1 if turn % 2 == 0 else -1]:  # none is always the first
                topic = f"p{turn}-{size}-{names.index(name)}"
                count = options.records // SHARE.get(name, 1)
                if name == "embedded":
                    spent = run_child(__file__, None, name, folder / f"embedded-{topic}", topic, size, count)
                else:
                    create_topic(server.bootstrap, topic, options.partitions)
                    spent = run_child(__file__, server.pid, name, server.bootstrap, topic, size, count)
                table.add(name, size, spent)
    print(head(server, f"producers, acks=all, idempotent, {options.partitions} partitions", options.runs))
    print(table.text())
    for size in map(int, options.sizes.split(",")):
        for batches, mine, its in ALIKE:
            found, peer = table.figures(mine, size), table.figures(its, size)
            if found is not None and peer is not None:
                print(f"ours / confluent, batch.size {batches} both, {size} bytes: {found[0] / peer[0]:.2f}")


if __name__ == "__main__":
    sys.exit(main())
