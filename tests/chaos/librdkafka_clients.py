"""Clients of librdkafka (confluent-kafka) that use a cluster until their standard input ends, and record every call.

    python -m chaos.librdkafka_clients BOOTSTRAP HISTORY SEED

| client | what it does |
|---|---|
| rd-once | an idempotent producer, five batches in flight |
| rd-txn | transactions over several partitions, one in five aborted |
| rd-committed | reads all partitions, committed records only |
| rd-group | two members of a group, which commit and now and then leave and come back |

Each life of a client has a name of its own, `rd-txn.2`. A producer whose error is fatal ends its life.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

from chaos.recorder import Recorder
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

TOPICS = {"orders": 4, "moved": 2}
TRANSACTION_MS = 15_000
LONG_S = 60.0
OUTSTANDING = 100
"""Records of a producer that wait for an answer; while there are as many, it sends no more."""


class Clients:
    def __init__(self, bootstrap: str, recorder: Recorder, seed: int) -> None:
        self.recorder = recorder
        self.over = threading.Event()
        self.random = Random(seed)
        self.common = {
            "bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 1000,
            "topic.metadata.refresh.interval.ms": 5000, "log_level": 2, "error_cb": lambda error: None,
        }  # fmt: skip

    def live(self, name: str, way: Callable[[str], None]) -> None:
        """One life after another."""
        separator = "" if "." in name else "."
        for number in count(1):
            if self.over.is_set():
                return
            try:
                way(f"{name}{separator}{number}")
            except KafkaException as error:
                print(f"{name} begins again: {error}", file=sys.stderr, flush=True)
                self.over.wait(0.5)

    def rest(self, mean_ms: float) -> None:
        self.over.wait(self.random.expovariate(1000 / mean_ms))

    def place(self) -> int:
        return self.random.randrange(TOPICS["orders"])

    def sender(self, producer: Any, client: str) -> tuple[Callable[..., None], list[int]]:
        """(sends a value, how many wait for an answer)"""
        waiting = [0]

        def send(value: str, partition: int, txn: int | None = None) -> None:
            number = self.recorder.call("send", client, topic="orders", partition=partition, value=value, txn=txn)

            def told(error: KafkaError | None, message: Any) -> None:
                waiting[0] -= 1
                if error is None:
                    self.recorder.ok(number, offset=message.offset())
                else:
                    self.recorder.unknown(number, error)

            waiting[0] += 1
            producer.produce("orders", value.encode(), partition=partition, on_delivery=told)

        return send, waiting

    # ------------------------------------------------------------ producers

    def once(self, client: str) -> None:
        producer = Producer({**self.common, "enable.idempotence": True, "message.timeout.ms": 120_000, "linger.ms": 2})
        send, waiting = self.sender(producer, client)
        for number in count():
            if self.over.is_set():
                producer.flush(LONG_S)
                return
            if waiting[0] < OUTSTANDING:
                send(f"{client}:{number}", self.place())
            producer.poll(0.005)
            self.rest(20)

    def transact(self, client: str) -> None:
        settings = {"transactional.id": "rd-txn", "transaction.timeout.ms": TRANSACTION_MS, "linger.ms": 2}
        producer = Producer({**self.common, **settings})
        producer.init_transactions(LONG_S)
        send, _ = self.sender(producer, client)
        for number in count():
            if self.over.is_set():
                return
            producer.begin_transaction()
            txn = self.recorder.call("begin", client)
            self.recorder.ok(txn)
            for part in range(self.random.randint(1, 8)):
                send(f"{client}:{number}.{part}", self.place(), txn)
                producer.poll(0)
            if self.random.random() < 0.2 or not self.end(producer, client, txn, commit=True):
                self.end(producer, client, txn, commit=False)
            self.rest(100)

    def end(self, producer: Any, client: str, txn: int, *, commit: bool) -> bool:
        """Whether it is over; False where the transaction has to be aborted. Raises where the producer is done."""
        number = self.recorder.call("end", client, txn=txn, commit=commit)
        while True:
            try:
                (producer.commit_transaction if commit else producer.abort_transaction)(LONG_S)
            except KafkaException as error:
                what = error.args[0]
                if what.retriable():
                    continue
                self.recorder.unknown(number, what)
                if commit and what.txn_requires_abort():
                    return False
                raise
            self.recorder.ok(number)
            return True

    # ------------------------------------------------------------ consumers

    def consumer(self, **settings: Any) -> Any:
        given = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "isolation.level": "read_committed"}
        return Consumer({**self.common, **given, **{name.replace("_", "."): row for name, row in settings.items()}})

    def poll(self, consumer: Any, client: str, group: str | None = None) -> list[Any]:
        at = time.monotonic_ns()
        messages = [message for message in consumer.consume(200, 0.3) if message.error() is None]
        if messages:
            call = self.recorder.call("poll", client, at=at, group=group, isolation="read_committed")
            rows = [[each.topic(), each.partition(), each.offset(), each.value().decode()] for each in messages]
            self.recorder.ok(call, records=rows)
        return messages

    def committed(self, client: str) -> None:
        consumer = self.consumer(group_id="nobody")
        places = [[topic, index] for topic, size in TOPICS.items() for index in range(size)]
        consumer.assign([TopicPartition(*place, 0) for place in places])
        self.recorder.ok(self.recorder.call("assign", client, partitions=places))
        try:
            while not self.over.is_set():
                self.poll(consumer, client)
        finally:
            consumer.close()

    def member(self, client: str) -> None:
        group = "rd-group"
        consumer = self.consumer(group_id=group, session_timeout_ms=6000, max_poll_interval_ms=60_000)

        def assigned(rows: list[Any]) -> None:
            places = [[row.topic, row.partition] for row in rows]
            self.recorder.ok(self.recorder.call("assign", client, partitions=places, group=group))

        consumer.subscribe(
            ["orders"], on_assign=lambda _, rows: assigned(rows), on_revoke=lambda *_: assigned([]),
            on_lost=lambda *_: assigned([]),
        )  # fmt: skip
        ends_s = time.monotonic() + self.random.uniform(10, 60)
        try:
            while not self.over.is_set() and time.monotonic() < ends_s:
                next_of = {}
                for message in self.poll(consumer, client, group):
                    next_of[message.topic(), message.partition()] = message
                if next_of:
                    offsets = [[*place, last.offset() + 1] for place, last in next_of.items()]
                    number = self.recorder.call("commit", client, group=group, offsets=offsets)
                    try:
                        # With the epochs: else the next reader may ask a leader of yesterday.
                        rows = [
                            TopicPartition(*place, last.offset() + 1, leader_epoch=last.leader_epoch())
                            for place, last in next_of.items()
                        ]
                        told = consumer.commit(offsets=rows, asynchronous=False)
                    except KafkaException as error:
                        self.recorder.unknown(number, error)
                        continue
                    if all(row.error is None for row in told):
                        self.recorder.ok(number)
                    else:
                        self.recorder.unknown(number, [row.error for row in told])
        finally:
            consumer.close()

    def run(self) -> None:
        ways = {
            "rd-once": self.once, "rd-txn": self.transact, "rd-committed": self.committed, "rd-group.a": self.member,
            "rd-group.b": self.member,
        }  # fmt: skip
        threads = [threading.Thread(target=self.live, args=row) for row in ways.items()]
        for thread in threads:
            thread.start()
        sys.stdin.read()
        self.over.set()
        for thread in threads:
            thread.join()


def main() -> None:
    bootstrap, path, seed = sys.argv[1:]
    with open(path, "w") as sink:
        Clients(bootstrap, Recorder(sink), int(seed)).run()


if __name__ == "__main__":
    main()
