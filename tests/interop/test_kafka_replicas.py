"""A broker of ours and one of Apache Kafka 3.9.2 replicate each other's partitions, ordered by Kafka's controller.

Our broker is registered with ZooKeeper by the test; all else that it hears and says goes over its listener.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_with_zookeeper import member, register, until, zookeeper

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.broker.governance.access import ClusterAccess
from logkernel.broker.serve import Server, new_event_loop
from logkernel.cluster.store import SharedStore
from logkernel.kernel import Kernel

pytestmark = pytest.mark.interop
SETTINGS = (
    "node.id=2", "log.dirs=/memory", "listeners=PLAINTEXT://127.0.0.1:0", "replica.fetch.backoff.ms=100",
    "offsets.topic.replication.factor=1", "offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1",
    "group.initial.rebalance.delay.ms=0",
)  # fmt: skip
COUNT = 1000
TOPICS = {"ours": [2, 1], "theirs": [1, 2]}
"""Topic → replicas of its one partition, the leader first."""


class Session:
    """A session of a coordination in which broker 1 is the controller; only the registration is ZooKeeper's."""

    def __init__(self, store: SharedStore, announce: Callable[[Any], int]) -> None:
        self._session = store.session()
        self._announce = announce

    def __getattr__(self, name: str) -> Any:
        return getattr(self._session, name)

    def announce(self, node_id: int, value: Any) -> int:
        self._session.announce(node_id, value)
        return self._announce(value)


class Ours:
    """Our broker, on a loop in a thread."""

    def __init__(self, zookeeper: Any) -> None:
        self._zookeeper = zookeeper

        def announce(value: Any) -> int:
            return register(zookeeper, 2, value["listeners"]["PLAINTEXT"][1])

        def no_log() -> Any:
            raise AssertionError("a coordination in memory keeps no log")

        store = SharedStore(Kernel(allow=()).coordination("memory", no_log))
        assert store.session().campaign(1) == 1
        self.loop = new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        access = ClusterAccess(lambda: Session(store, announce))
        self.broker: Broker = build(None, SETTINGS, in_memory=True, access=access)
        self.server: Server = self.run(self._start())

    async def _start(self) -> Server:
        self.broker.start()
        server = Server(self.broker)
        await server.start(self.broker.addresses.configured_listeners())
        server.join()
        return server

    def run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(180)

    def ask(self, work: Callable[[], Any]) -> Any:
        async def run() -> Any:
            return work()

        return self.run(run())

    def end(self, topic: str) -> int:
        """Where the log of its partition 0 ends here, -1 where there is none."""

        def found() -> int:
            replica = self.broker.replicas.find((topic, 0))  # type: ignore[arg-type]
            return -1 if replica is None else int(replica.log.end_offset)

        return int(self.ask(found))

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.server.listeners[0].port}"

    def leave(self) -> None:
        """Stop as a broker does: others lead first."""
        self.run(self.server.leave())
        self.close()
        self._zookeeper.delete("/brokers/ids/2")

    def close(self) -> None:
        async def close() -> None:
            await self.server.close()
            self.broker.close()

        if not self.thread.is_alive():
            return
        self.run(close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


@contextmanager
def both(folder: Path) -> Iterator[tuple[Any, Ours]]:
    with zookeeper(folder) as (keeper, client):
        settings = {"offsets_topic_num_partitions": "1", "group_initial_rebalance_delay_ms": "0"}
        kafka = member(folder, 1, keeper, **settings)
        kafka.start()
        ours: Ours | None = None
        try:
            ours = Ours(client)
            yield kafka, ours
        finally:
            kafka.stop()
            if ours is not None:
                ours.close()


def produce(bootstrap: str, topic: str, first: int) -> None:
    failed: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "enable.idempotence": True, "linger.ms": 5})
    for number in range(first, first + COUNT):
        producer.produce(
            topic, b"%d" % number, partition=0, on_delivery=lambda error, _: failed.append(error) if error else None
        )
    assert producer.flush(300) == 0
    assert failed == []


def leads(ours: Ours, *topics: str) -> bool:
    return bool(ours.ask(lambda: set(ours.broker.replicas.led) >= {(topic, 0) for topic in topics}))


def is_whole(admin: AdminClient, topic: str) -> bool:
    return len(admin.list_topics(topic, timeout=120).topics[topic].partitions[0].isrs) == 2


def consume(bootstrap: str, topic: str, count: int) -> list[int]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    while len(found) < count:
        message = consumer.poll(180)
        assert message is not None, f"{len(found)} of {count}, then nothing for three minutes"
        if message.error() is None:
            found.append(int(message.value()))
    consumer.close()
    return found


def test_each_follows_the_other_and_leads_when_it_is_gone(apache_kafka: ModuleType, tmp_path: Path) -> None:
    with both(tmp_path) as (kafka, ours):
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        until(lambda: len(admin.list_topics(timeout=120).brokers) == 2, "our broker")
        strict = {"min.insync.replicas": "2"}
        new = [NewTopic(name, 1, replica_assignment=[nodes], config=strict) for name, nodes in TOPICS.items()]
        for future in admin.create_topics(new).values():
            future.result(180)
        for topic, nodes in TOPICS.items():
            found = admin.list_topics(topic, timeout=120).topics[topic].partitions[0]
            assert (found.leader, sorted(found.isrs)) == (nodes[0], [1, 2])
            produce(kafka.bootstrap, topic, 0)
            assert ours.end(topic) == COUNT
            assert consume(kafka.bootstrap, topic, COUNT) == list(range(COUNT))
        kafka.stop()
        until(lambda: leads(ours, *TOPICS), "that our broker leads both")
        for topic in TOPICS:
            assert consume(ours.bootstrap, topic, COUNT) == list(range(COUNT))
        kafka.start()
        until(lambda: len(admin.list_topics(timeout=120).brokers) == 2, "both brokers")
        for topic in TOPICS:
            until(partial(is_whole, admin, topic), f"that both are in sync for {topic}")
            produce(ours.bootstrap, topic, COUNT)
            assert consume(kafka.bootstrap, topic, 2 * COUNT) == list(range(2 * COUNT))


@pytest.mark.parametrize("coordinator", [1, 2], ids=["kafka-coordinates", "ours-coordinates"])
def test_a_transaction_spans_both(apache_kafka: ModuleType, tmp_path: Path, coordinator: int) -> None:
    """The leader verifies with the coordinator, which writes its markers there, whichever of the two is which."""
    with both(tmp_path) as (kafka, ours):
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        until(lambda: len(admin.list_topics(timeout=120).brokers) == 2, "our broker")
        state = NewTopic(
            "__transaction_state", 1, replica_assignment=[[coordinator, 3 - coordinator]],
            config={"cleanup.policy": "compact"},
        )  # fmt: skip
        new = [state, *(NewTopic(name, 1, replica_assignment=[nodes]) for name, nodes in TOPICS.items())]
        for future in admin.create_topics(new).values():
            future.result(180)
        producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "x", "linger.ms": 0})
        producer.init_transactions(180)
        for number, end in enumerate((producer.commit_transaction, producer.abort_transaction) * 3):
            producer.begin_transaction()
            for topic in TOPICS:
                producer.produce(topic, b"%d" % number, partition=0)
            end(180)
        for topic in TOPICS:
            assert consume(kafka.bootstrap, topic, 3) == [0, 2, 4]
        kafka.stop()
        until(partial(leads, ours, "theirs"), "that our broker leads")
        assert consume(ours.bootstrap, "theirs", 3) == [0, 2, 4], "markers were replicated"


def consume_as_group(bootstrap: str, count: int) -> list[int]:
    """So many from where the group is, committed."""
    settings = {"bootstrap.servers": bootstrap, "group.id": "g", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe(["theirs"])
    found: list[int] = []
    while len(found) < count:
        for message in consumer.consume(count - len(found), 180):
            assert message.error() is None, message.error()
            found.append(int(message.value()))
    last = TopicPartition("theirs", 0, found[-1] + 1)
    consumer.commit(offsets=[last], asynchronous=False)
    consumer.close()
    return found


@pytest.mark.parametrize("coordinator", [1, 2], ids=["kafka-goes", "ours-goes"])
def test_a_group_goes_on_with_the_other_coordinator(apache_kafka: ModuleType, tmp_path: Path, coordinator: int) -> None:
    """The offsets that one wrote, the other reads."""
    with both(tmp_path) as (kafka, ours):
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        until(lambda: len(admin.list_topics(timeout=120).brokers) == 2, "our broker")
        offsets = NewTopic(
            "__consumer_offsets", 1, replica_assignment=[[coordinator, 3 - coordinator]],
            config={"cleanup.policy": "compact"},
        )  # fmt: skip
        theirs = NewTopic("theirs", 1, replica_assignment=[[coordinator, 3 - coordinator]])
        for future in admin.create_topics([offsets, theirs]).values():
            future.result(180)
        produce(kafka.bootstrap, "theirs", 0)
        assert consume_as_group(kafka.bootstrap, 400) == list(range(400))
        if coordinator == 1:
            kafka.stop()
            until(partial(leads, ours, "theirs", "__consumer_offsets"), "that our broker leads")
        else:
            ours.leave()
        rest = ours.bootstrap if coordinator == 1 else kafka.bootstrap
        assert consume_as_group(rest, 600) == list(range(400, 1000))
