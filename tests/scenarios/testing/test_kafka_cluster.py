"""`logkernel.testing.KafkaCluster` as a test uses it: leaders move and die under unmodified clients."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from logkernel.errors import ConfigError, LeaderNotAvailable, LogkernelError, UnknownTopicOrPartition
from logkernel.hookspecs import hookimpl
from logkernel.testing import Kafka, KafkaCluster
from logkernel.testing.kafka import cluster_log
from logkernel.testing.kafka.aio import AsyncKafkaCluster

HASTY = {"retry.backoff.ms": 5, "reconnect.backoff.ms": 5, "reconnect.backoff.max.ms": 20}
"""Settings of clients that try again at once."""


@pytest.fixture
def cluster() -> Iterator[KafkaCluster]:
    with KafkaCluster(topics={"orders": 1}) as kafka:
        kafka.wait_for_isr("orders", 0, 3)
        yield kafka


class Sender:
    """A producer of confluent-kafka, which knows of a new leader only by what it is told."""

    def __init__(self, kafka: KafkaCluster, **settings: Any) -> None:
        fixed = {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "shop", "log_level": 0, **HASTY}
        self.producer = confluent_kafka.Producer({**fixed, "topic.metadata.refresh.interval.ms": -1, **settings})

    def send(self, value: str, topic: str = "orders") -> confluent_kafka.KafkaError | None:
        found: list[confluent_kafka.KafkaError | None] = []
        self.producer.produce(topic, value, partition=0, on_delivery=lambda error, _: found.append(error))
        assert self.producer.flush(20) == 0
        return found[0]


def values(kafka: KafkaCluster, topic: str = "orders") -> list[str | None]:
    return [record.text for record in kafka.records(topic)]


# ---------------------------------------------------------------- what a view has


def test_what_was_written_and_asked_is_seen_whoever_leads(cluster: KafkaCluster) -> None:
    sender, first = Sender(cluster, acks="all"), cluster.leader("orders")
    assert sender.send('{"id": 1}') is None
    second = cluster.move_leader("orders")
    assert sender.send('{"id": 2}') is None
    cluster.produce("orders", {"id": 3}, key="ann", headers={"h": "1"})

    assert second != first
    assert cluster.assert_produced("orders", key="ann", value={"id": 3}, headers={"h": b"1"}).offset == 2
    assert [record.json["id"] for record in cluster.records("orders")] == [1, 2, 3]
    asked = [request.broker for request in cluster.requests.of("Produce", client_id="shop")]
    assert (asked[0], asked[-1]) == (first, second)
    assert len(cluster.requests.of("Produce", broker=second)) == 1
    assert f"broker={second}" in str(cluster.requests.of("Produce")[-1])
    assert (cluster.start_offset("orders"), cluster.end_offset("orders")) == (0, 3)
    cluster.requests.clear()
    assert cluster.requests == ()


def test_groups_and_offsets_are_waited_for(cluster: KafkaCluster) -> None:
    cluster.produce("orders", "1")
    conf = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "billing", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer(conf)
    consumer.subscribe(["orders"])
    assert consumer.poll(20).value() == b"1"
    cluster.wait_for_offset("orders", offset=1)
    assert len(cluster.wait_for_group("billing", members=1, state="Stable").members) == 1
    consumer.commit(asynchronous=False)
    cluster.wait_for_commit("billing", "orders", offset=1)
    consumer.close()
    with pytest.raises(AssertionError, match="there is no topic 'order'; did you mean 'orders'"):
        cluster.assert_produced("order")
    with pytest.raises(UnknownTopicOrPartition, match="there is no topic 'order'; did you mean 'orders'"):
        cluster.records("order")


def test_the_clock_of_all_brokers_is_moved_at_once(cluster: KafkaCluster) -> None:
    cluster.create_topic("kept", 2, config={"retention.ms": 7 * 86_400_000})
    for partition in (0, 1):
        cluster.produce("kept", "x", partition=partition)
        cluster.wait_for_isr("kept", partition, 3)
    cluster.move_leader("kept", 0, to=1)
    cluster.move_leader("kept", 1, to=2)
    cluster.clock.advance(days=8)
    assert cluster.records("kept") == []
    assert [cluster.start_offset("kept", partition) for partition in (0, 1)] == [1, 1]
    assert [len(cluster.isr("kept", partition)) for partition in (0, 1)] == [3, 3]
    assert cluster.produce("kept", "y").timestamp_ms >= cluster.clock.wall_ms() - 60_000


@pytest.mark.parametrize("moves", [False, True])
def test_what_a_jump_drops_is_gone_though_the_preferred_leader_does_not_lead(moves: bool) -> None:
    """Where the jump moved it back, it had not heard of what was dropped, and a record of a month ago was read."""
    with KafkaCluster(topics={"orders": 1}, settings={"auto.leader.rebalance.enable": moves}) as kafka:
        kafka.wait_for_isr("orders", 0, 3)
        preferred = kafka.replicas("orders")[0]
        kafka.restart(preferred)
        kafka.wait_for_isr("orders", 0, 3)
        kafka.produce("orders", "a month ago")
        kafka.clock.advance(days=30)
        assert (kafka.leader("orders") == preferred) is moves
        assert (kafka.records("orders"), kafka.start_offset("orders")) == ([], 1)


def test_a_jump_ends_the_session_of_a_member_though_another_broker_coordinates_it() -> None:
    """The jump moved the coordinator back to the preferred leader, where the session began anew."""
    with KafkaCluster(topics={"orders": 1}, settings={"offsets.topic.num.partitions": 1}) as kafka:
        kafka.produce("orders", "1")
        silent = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 40_000, "auto.offset.reset": "earliest"}
        conf = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": "billing", "log_level": 0, **silent}
        consumer = confluent_kafka.Consumer(conf)
        consumer.subscribe(["orders"])
        assert consumer.poll(20) is not None
        kafka.wait_for_isr("__consumer_offsets", 0, 3)
        kafka.restart(kafka.replicas("__consumer_offsets")[0])
        kafka.wait_for_isr("__consumer_offsets", 0, 3)
        kafka.wait_for_group("billing", members=1, state="Stable")
        kafka.clock.advance(minutes=10)
        kafka.wait_for_group("billing", members=0, state="Empty")
        consumer.close()


def test_topics_are_cleaned_where_they_are_led(cluster: KafkaCluster) -> None:
    cluster.create_topic("prices", 3, 2, cleanup_policy="compact")
    for number in range(6):
        cluster.produce("prices", number, key="a", partition=number % 3)
    cluster.compact()
    assert sorted(values(cluster, "prices")) == ["3", "4", "5"]
    cluster.apply_retention("orders")
    with pytest.raises(UnknownTopicOrPartition, match="there is no topic 'nothing'"):
        cluster.compact("nothing")


def test_settings_plugins_and_a_release_are_those_of_every_broker() -> None:
    class First:
        def partition(self, *facts: object) -> int:
            return 2

        def on_batch_full(self, partition: int) -> None:
            """It keeps no state."""

    class Plugin:
        @hookimpl
        def logkernel_partitioner(self, name: str) -> First | None:
            return First() if name == "third" else None

        @hookimpl
        def logkernel_names(self) -> list[tuple[str, str]]:
            return [("partitioner", "third")]

    options: dict[str, Any] = {"settings": {"num_partitions": 3}, "plugins": [Plugin()], "as_version": "2.8"}
    with KafkaCluster(
        2, topics={"orders": {"partitioner": "third"}, "one": {"replication.factor": 1}}, **options
    ) as kafka:
        assert kafka.topics == {"one": 3, "orders": 3}
        assert (len(kafka.replicas("orders")), len(kafka.replicas("one"))) == (2, 1)
        assert kafka.produce("orders", "1").partition == 2
        assert Sender(kafka).send("1", "one") is None
        assert kafka.requests.of("Produce")[0].version <= 9
    with pytest.raises(ConfigError, match=r"^settings: num\.partitions=x: "):
        KafkaCluster(1, settings={"num.partitions": "x"})


def test_replicas_and_leaders_are_waited_for_as_all_else(cluster: KafkaCluster) -> None:
    """They took `timeout_ms`, and did not say how things stood."""
    leader = cluster.leader("orders")
    assert leader is not None
    with pytest.raises(AssertionError, match=rf"^after 0 s: orders-0 has no leader other than {leader}$"):
        cluster.wait_for_leader("orders", other_than=leader, within=0)
    cluster.kill(leader)
    assert cluster.wait_for_leader("orders", other_than=leader) != leader
    cluster.wait_for_isr("orders", 0, 2, within=10)
    with pytest.raises(AssertionError, match=r"^after 0\.05 s: orders-0 has 2 replicas in sync \(\d, \d\), not 3$"):
        cluster.wait_for_isr("orders", 0, 3, within=0.05)
    for wait in (lambda: cluster.wait_for_isr("order", 0, 3, within=0), lambda: cluster.wait_for_leader("x", within=0)):
        with pytest.raises(AssertionError, match=r"there is no topic '(order|x)'; "):
            wait()


# ---------------------------------------------------------------- faults of requests


def test_a_fault_may_be_of_one_broker(cluster: KafkaCluster) -> None:
    leader, other = cluster.leader("orders"), cluster.move_leader("orders")
    spared = cluster.faults.error("NOT_ENOUGH_REPLICAS", api="Produce", broker=leader)
    struck = cluster.faults.error("NOT_ENOUGH_REPLICAS", api="Produce", broker=other, times=1)
    assert Sender(cluster).send("1") is None
    assert (spared.struck, struck.struck) == (0, 1)
    with pytest.raises(ConfigError, match="broker='2' fits nothing; pass a node id"):
        cluster.faults.close(broker="2")


def test_a_request_that_stalls_ends_with_its_broker(cluster: KafkaCluster) -> None:
    leader = cluster.leader("orders")
    assert leader is not None
    sender = Sender(cluster, acks="all")
    with cluster.faults.stall(api="Produce", broker=leader) as stall:
        sender.producer.produce("orders", "1")
        sender.producer.poll(0)
        while not stall.struck:
            sender.producer.poll(0.01)
        cluster.kill(leader)
    assert sender.send("2") is None
    assert values(cluster) == ["1", "2"]


# ---------------------------------------------------------------- faults of the cluster


def test_a_leader_moves_before_a_request_is_carried_out(cluster: KafkaCluster) -> None:
    sender, first = Sender(cluster, **{"enable.idempotence": True}), cluster.leader("orders")
    assert sender.send("0") is None
    fault = cluster.faults.move_leader(api="Produce", topic="orders", skip=1)
    assert [sender.send(value) for value in "123"] == [None] * 3
    assert (fault.struck, fault.failed) == (1, "")
    assert cluster.leader("orders") != first
    assert values(cluster) == ["0", "1", "2", "3"]


def test_a_leader_dies_of_a_request_and_comes_back(cluster: KafkaCluster) -> None:
    sender, first = Sender(cluster, acks="all"), cluster.leader("orders")
    assert first is not None
    killed = cluster.faults.kill(api="Produce", skip=1)
    assert [sender.send(value) for value in "12"] == [None] * 2
    assert (killed.struck, cluster.brokers[first]) == (1, "killed")
    cluster.start(first)
    cluster.wait_for_isr("orders", 0, 3)
    second = cluster.leader("orders")
    cluster.faults.restart(api="Produce", broker=second)
    assert sender.send("3") is None
    cluster.wait_for_isr("orders", 0, 3)
    assert set(cluster.brokers.values()) == {"running"}
    assert values(cluster) == ["1", "2", "3"]


def test_faults_of_a_cluster_may_stand_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(
        "- move_leader: 2\n  api: Produce\n  skip: 1\n"
        "- move_leader: true\n  topic: orders\n  api: Produce\n  client_id: late\n"
        "- restart: true\n  broker: 1\n  api: ListOffsets\n"
    )
    with KafkaCluster(topics={"orders": 1}, faults=file) as kafka:
        kafka.wait_for_isr("orders", 0, 3)
        kafka.move_leader("orders", to=1)
        sender = Sender(kafka)
        assert (sender.send("1"), kafka.leader("orders")) == (None, 1)
        assert (sender.send("2"), kafka.leader("orders")) == (None, 2)
        assert Sender(kafka, **{"client.id": "late"}).send("3") is None
        assert kafka.leader("orders") != 2
        assert [fault.times for fault in kafka.faults.active] == [1, 1, 1]


def test_the_only_broker_restarts_and_is_waited_for() -> None:
    with KafkaCluster(1, topics={"orders": 1}, faults=[{"restart": True, "api": "Produce", "times": 2}]) as kafka:
        sender = Sender(kafka, acks="all")
        for value in "12":
            assert sender.send(value) is None
            kafka.assert_produced("orders", value=value)
            assert kafka.topics == {"orders": 1}


def test_calls_on_an_event_loop_are_awaited(cluster: KafkaCluster) -> None:
    async def program() -> None:
        kafka = AsyncKafkaCluster(cluster)
        saved = await kafka.save()
        first = await kafka.move_leader("orders")
        await kafka.produce("orders", "1")
        await kafka.kill(first)
        assert await kafka.wait_for_leader("orders", other_than=first) == kafka.leader("orders")
        assert (await kafka.assert_produced("orders", within=10)).text == "1"
        await kafka.start(first)
        await kafka.restart(first)
        await kafka.wait_for_isr("orders", 0, 3)
        kafka.pause(first)
        assert kafka.brokers[first] == "paused"
        kafka.resume(first)
        await kafka.restore(saved)
        assert (await kafka.records("orders"), len(kafka.isr("orders"))) == ([], 3)

    asyncio.run(program())


def test_what_a_fault_could_not_do_is_told(cluster: KafkaCluster) -> None:
    cluster.create_topic("alone", assignment={0: [1]})
    fault = cluster.faults.move_leader(2, api="Produce", topic="alone")
    assert Sender(cluster).send("1", "alone") is None
    said = "broker 2 has no replica of alone-0; take one of 1"
    assert fault.failed == said
    assert str(fault).endswith(f"struck 1 of 1, and failed: {said}")


def test_a_single_broker_refuses_the_faults_of_a_cluster(cluster: KafkaCluster) -> None:
    with Kafka(sockets=False) as kafka:
        for ask in (kafka.faults.kill, kafka.faults.restart, kafka.faults.move_leader):
            with pytest.raises(ConfigError, match=r"is for brokers of a KafkaCluster, be it of one; of Kafka, call"):
                ask(api="Produce")
    with pytest.raises(ConfigError, match="there is no broker 9; name one of 1, 2, 3, or none"):
        cluster.faults.move_leader(9)
    with pytest.raises(ConfigError, match="kill: 2 asks for nothing; write kill: true"):
        cluster.faults.load([{"kill": 2}])
    assert str(cluster.faults.move_leader(2, topic="t")) == "move_leader 2 topic=t times=1: struck 0 of 0"


def test_a_full_disk_of_one_broker_is_borne(cluster: KafkaCluster) -> None:
    leader = cluster.leader("orders")
    assert leader is not None
    with cluster.full_disk(leader):
        assert Sender(cluster, **{"message.timeout.ms": 300}).send("1") is not None
        cluster.move_leader("orders")
        assert Sender(cluster, acks=1).send("2") is None
    cluster.wait_for_offset("orders", offset=1)
    assert values(cluster)[-1] == "2"


def test_a_process_of_its_own_is_refused() -> None:
    """It was a TypeError without a remedy; the marker was ignored."""
    with pytest.raises(
        ConfigError, match=r"^process=True: the brokers of a KafkaCluster run in the test's process; leave"
    ):
        KafkaCluster(1, process=True)


# ---------------------------------------------------------------- nobody leads


def test_a_partition_without_a_leader_says_so(cluster: KafkaCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_log, "LEADER_S", 0.05)
    cluster.create_topic("alone", assignment={0: [1]})
    cluster.kill(1)
    with pytest.raises(LeaderNotAvailable, match="alone-0 has no leader; start or resume a broker that is in sync"):
        cluster.records("alone")
    cluster.kill(2)
    cluster.kill(3)
    with pytest.raises(LogkernelError, match="no broker of this cluster runs; start one"):
        cluster.records("orders")


def test_the_end_waits_for_no_request_that_is_held() -> None:
    with KafkaCluster(1, topics=["orders"]) as kafka:
        stall = kafka.faults.stall(api="Produce")
        producer = confluent_kafka.Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        producer.produce("orders", "1")
        while not stall.struck:
            producer.poll(0.01)
    assert re.match(r"stall api=Produce: struck \d+ of \d+", str(stall))
    producer.purge()


def test_a_jump_of_days_delays_no_write(cluster: KafkaCluster) -> None:
    """Fetches of followers that are under way time out by the jump; the next ones came a second later."""

    def takes_s(number: int) -> float:
        cluster.produce("orders", number)
        cluster.clock.advance(days=8)
        begun_s = time.monotonic()
        cluster.produce("orders", number)
        return time.monotonic() - begun_s

    assert any(takes_s(number) < 0.5 for number in range(20))  # the machine may be busy at times
