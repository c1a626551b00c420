"""Consumer groups by the protocol of KIP-848, with librdkafka and Java, and on the way from the classic one."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupState, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from group_members import PARTITIONS, WAIT_S, fill, poll_until, shares, subscribed

import logkernel

pytestmark = pytest.mark.interop


def member(bootstrap: str, group: str, topic: str, protocol: str = "consumer", **more: str) -> Consumer:
    if protocol == "classic":
        more = {"session_timeout_ms": "45000", "heartbeat_interval_ms": "500", **more}
    return subscribed(bootstrap, group, topic, group_protocol=protocol, **more)


def described(bootstrap: str, group: str) -> Any:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    return admin.describe_consumer_groups([group])[group].result(WAIT_S)


@pytest.fixture(scope="module")
def quick(start_module_broker: Any) -> Any:
    """A broker whose members beat often, so that a rebalance takes no long time."""
    settings = {"min.heartbeat.interval.ms": 300, "heartbeat.interval.ms": 300, "min.session.timeout.ms": 6_000}
    words = [word for name, value in settings.items() for word in ("--set", f"group.consumer.{name}={value}")]
    return start_module_broker(*words)


def test_two_members_share_and_one_takes_over(quick: Any, topic: str, make_topic: Any) -> None:
    make_topic(quick.bootstrap, topic, PARTITIONS)
    fill(quick.bootstrap, topic, 400)
    members = [member(quick.bootstrap, topic, topic) for _ in range(2)]
    values = poll_until(members, lambda values: len(set(values)) == 400 and shares(members) == [2, 2])
    assert set(values) == set(range(400))
    for consumer in members:
        consumer.commit(asynchronous=False)
    seen = described(quick.bootstrap, topic)
    assert seen.state is ConsumerGroupState.STABLE
    assert seen.type.name == "CONSUMER"
    assert seen.partition_assignor == "uniform"
    assert sorted(len(row.assignment.topic_partitions) for row in seen.members) == [2, 2]
    members.pop().close()
    fill(quick.bootstrap, topic, 400, start=400)
    values = poll_until(members, lambda values: len(values) == 400)
    assert sorted(values) == list(range(400, 800))
    assert shares(members) == [PARTITIONS]
    members.pop().close()


def test_a_subscription_by_expression_finds_new_topics(quick: Any, topic: str, make_topic: Any) -> None:
    make_topic(quick.bootstrap, f"{topic}-a", PARTITIONS)
    fill(quick.bootstrap, f"{topic}-a", 40)
    consumer = member(quick.bootstrap, topic, f"^{topic}-.*")
    poll_until([consumer], lambda values: len(values) == 40)
    make_topic(quick.bootstrap, f"{topic}-b", PARTITIONS)
    fill(quick.bootstrap, f"{topic}-b", 40, start=100)
    values = poll_until([consumer], lambda values: len(values) == 40)
    assert sorted(values) == list(range(100, 140))
    consumer.close()


def test_a_static_member_comes_back_to_what_it_had(quick: Any, topic: str, make_topic: Any) -> None:
    make_topic(quick.bootstrap, topic, PARTITIONS)
    members = [member(quick.bootstrap, topic, topic, group_instance_id=f"i{number}") for number in range(2)]
    poll_until(members, lambda values: shares(members) == [2, 2])
    had = {part.partition for part in members[1].assignment()}
    members[1].close()
    members[1] = member(quick.bootstrap, topic, topic, group_instance_id="i1")
    poll_until(members, lambda values: shares(members) == [2, 2])
    assert {part.partition for part in members[1].assignment()} == had
    for consumer in members:
        consumer.close()


def committed_by(members: list[Consumer], topic: str) -> int:
    """How many records of a topic, when each member has committed; one that a rebalance took its partitions from, as
    one may where the machine stalls, has nothing to commit until it has read again."""
    for consumer in members:
        with suppress(KafkaException):
            consumer.commit(asynchronous=False)
    asked = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    return sum(max(part.offset, 0) for part in members[0].committed(asked, WAIT_S))


def test_a_live_group_goes_to_the_new_protocol_and_back(quick: Any, topic: str, make_topic: Any) -> None:
    """Members are replaced one by one; meanwhile every record is read, and offsets go on."""
    make_topic(quick.bootstrap, topic, PARTITIONS)
    members = [member(quick.bootstrap, topic, topic, "classic") for _ in range(2)]
    poll_until(members, lambda values: shares(members) == [2, 2])
    start = 0
    for protocol in ("consumer", "consumer", "classic", "classic"):
        members.append(member(quick.bootstrap, topic, topic, protocol))
        poll_until(members, lambda values: shares(members) == [1, 1, 2])
        members.pop(0).close()
        poll_until(members, lambda values: shares(members) == [2, 2])
        fill(quick.bootstrap, topic, 40, start=start)
        values = poll_until(members, lambda values, start=start: set(range(start, start + 40)) <= set(values))
        assert min(values) >= start, "read again what was committed"
        start += 40
        poll_until(members, lambda values, start=start: committed_by(members, topic) == start)
        kind = described(quick.bootstrap, topic).type.name
        assert kind == ("CLASSIC" if start == 160 else "CONSUMER")
    for consumer in members:
        consumer.close()


@pytest.mark.parametrize("by_pattern", [False, True])
def test_java_members_share(java: Any, quick: Any, topic: str, make_topic: Any, by_pattern: bool) -> None:
    """Static members: the first closes, and its partitions stay with its name until its session ends."""
    make_topic(quick.bootstrap, topic, PARTITIONS)
    with logkernel.connect(quick.bootstrap) as log, log.admin() as admin:
        admin.alter_configs({("group", topic): {"consumer.session.timeout.ms": 15_000}})
    rows = java.run("members", quick.bootstrap, topic, topic, f"{topic[:-2]}.*" if by_pattern else "")
    assert rows[:3] == [["shares", "[4]"], ["shares", "[2, 2]"], ["described", "Consumer Stable uniform 2"]]
    assert rows[3:] == [["shares", "[4]"]]
