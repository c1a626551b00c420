"""The metadata that the controller sends a broker."""

from __future__ import annotations

from uuid import UUID

import pytest

from logkernel.broker.received_metadata import ReceivedMetadata
from logkernel.controller.effects import Effects, LeaderChange
from logkernel.controller.image import BrokerRegistration, ClusterImage, registration_change
from logkernel.controller.orders import Orders
from logkernel.errors import UnknownTopicId
from logkernel.requests.replication import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

ONE, OTHER = UUID(int=1), UUID(int=2)


class Received(ReceivedMetadata):
    def __init__(self) -> None:
        self.image = ClusterImage()
        self.followed: list[Effects] = []
        super().__init__(self.image, {"__consumer_offsets"}, self.followed.append)


def row(
    index: int, leader: int = 1, leader_epoch: int = 0, offline: tuple[int, ...] = (), on: tuple[int, ...] = (1, 2)
) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(index, 1, leader, leader_epoch, list(on), leader_epoch, list(on), list(offline))


def update(
    name: str, topic_id: UUID, *rows: UpdateMetadataPartitionState, live: tuple[int, ...] = (1, 2)
) -> UpdateMetadataRequest:
    topics = [UpdateMetadataTopicState(name, topic_id, list(rows))] if rows else []
    brokers = [UpdateMetadataBroker(node, [UpdateMetadataEndpoint(9000 + node, "h", "P")], f"r{node}") for node in live]
    return UpdateMetadataRequest(1, 1, 1, topics, brokers)


def test_the_controller_tells_of_brokers_and_of_topics_that_come_grow_and_go() -> None:
    received = Received()
    made = received.take(update("t", ONE, row(0), row(1)))
    assert (made.created, made.grown, made.deleted) == (["t"], [], [])
    assert made.leaders == [LeaderChange("t", 0, 1, 0, (1, 2)), LeaderChange("t", 1, 1, 0, (1, 2))]
    assert received.image.brokers("P") == [(1, "h", 9001, "r1"), (2, "h", 9002, "r2")]
    moved = received.take(update("t", ONE, row(1, 2, 1)))
    assert (moved.created, moved.leaders) == ([], [LeaderChange("t", 1, 2, 1, (1, 2))])
    assert received.take(update("t", ONE, row(1, 2, 1))) == Effects()
    assert received.take(update("t", ONE, row(2))).grown == [("t", 2)]
    assert [each.leader for each in received.image.topics["t"].partitions] == [1, 2, 1]
    assert received.take(update("t", ONE, row(0, -2), row(1, -2), row(2, -2), live=(2,))).deleted == [("t", ONE)]
    assert received.image.topics == {}
    assert list(received.image.nodes) == [2]
    assert received.followed[0] == made


def test_what_there_is_at_a_start_is_no_news() -> None:
    """Plugins were told at each restart that every topic was created, and had new leaders."""
    received = Received()
    received.found([ONE])
    assert received.take(update("t", ONE, row(0), row(1))) == Effects(grown=[("t", 0)])
    assert received.take(update("t", ONE, row(1, 2, 1))) == Effects(leaders=[LeaderChange("t", 1, 2, 1, (1, 2))])
    received.take(update("t", ONE, row(0, -2), row(1, -2)))
    assert received.take(update("t", OTHER, row(0))).created == ["t"]


def test_replicas_that_are_elsewhere_are_news() -> None:
    received = Received()
    received.take(update("t", ONE, row(0), row(1)))
    assert received.take(update("t", ONE, row(1, 1, 1))).moved == []
    assert received.take(update("t", ONE, row(1, 1, 2, on=(1, 3)))).moved == ["t"]
    assert received.take(update("t", ONE, row(2))).moved == [], "it grew"


def brokers(**racks: str | None) -> UpdateMetadataRequest:
    live = [UpdateMetadataBroker(int(node[1:]), [UpdateMetadataEndpoint(9, "h", "P")], racks[node]) for node in racks]
    return UpdateMetadataRequest(1, 1, 1, [], live)


def test_brokers_in_other_racks_are_news_of_their_topics() -> None:
    """Not that one goes: its replicas are where they were, and it comes back with its rack."""
    received = Received()
    received.take(brokers(b1="r1", b2="r2", b3=None))
    received.take(update("t", ONE, row(0)))
    received.take(update("u", OTHER, row(0, on=(3,)), live=(1, 2)))
    assert received.racks == {1: "r1", 2: "r2"}
    assert received.take(brokers(b1="r1")) == Effects()
    assert received.racks == {1: "r1", 2: "r2"}
    assert received.take(brokers(b1="r1", b2="r2")) == Effects()
    assert received.take(brokers(b1="r1", b2="other")).moved == ["t"]
    assert received.take(brokers(b1="r1", b2="other", b3="r3")).moved == ["u"]
    assert received.take(brokers(b1="r1", b2=None, b3="r3")).moved == ["t"]
    assert received.racks == {1: "r1", 3: "r3"}


def test_a_topic_made_again_under_its_name_is_another() -> None:
    received = Received()
    received.take(update("t", ONE, row(0)))
    again = received.take(update("t", OTHER, row(0)))
    assert (again.deleted, again.created) == ([("t", ONE)], ["t"])
    assert received.take(update("t", ONE, row(0, -2))) == Effects()
    assert received.topic_name(OTHER) == "t"


def test_an_order_to_lead_a_later_topic_supersedes_what_was_known_of_an_earlier_one() -> None:
    received = Received()
    received.learn("t", ONE)
    received.learn("t", OTHER)
    assert (received.is_alive("t", ONE), received.is_alive("t", OTHER)) == (False, True)
    received.take(update("t", UUID(int=3), row(0)))
    assert not received.is_alive("t", OTHER)
    received.learn("t", ONE)
    assert (received.followed[-1].deleted, received.is_alive("t", ONE)) == ([("t", UUID(int=3))], True)
    received.take(update("t", OTHER, row(0, -2)))
    assert received.is_alive("t", ONE)
    received.take(update("t", ONE, row(0, -2)))
    assert not received.is_alive("t", ONE)
    with pytest.raises(UnknownTopicId):
        received.learn("t", ONE)


def test_a_topic_is_internal_by_its_name() -> None:
    received = Received()
    received.take(update("__consumer_offsets", ONE, row(0)))
    assert received.image.topics["__consumer_offsets"].internal


def test_replicas_are_offline_with_their_broker_or_their_directory() -> None:
    received = Received()
    received.take(update("t", ONE, row(0, offline=(2,)), row(1)))
    assert received.offline_replicas("t", 0, (1, 2, 3)) == [2, 3]
    assert received.offline_replicas("t", 1, (1, 2, 3)) == [3]
    received.take(update("t", ONE, row(0)))
    assert received.offline_replicas("t", 0, (1, 2)) == []


def test_an_order_teaches_a_topic_s_id_before_it_is_told_of() -> None:
    received = Received()
    received.learn("t", ONE)
    assert received.topic_name(ONE) == "t"
    received.take(update("t", ONE, row(0)))
    received.take(update("t", ONE, row(0, -2)))
    assert received.topic_name(ONE) is None


def test_what_listeners_speak_is_told_and_learned() -> None:
    """By the protocol's numbers; one that is unknown means nothing."""
    speaks = {"IN": "SASL_SSL", "MTLS": "SSL"}
    told = BrokerRegistration(1, {"IN": ("h", 1), "MTLS": ("h", 2), "OUT": ("h", 3)}, None, speaks)
    orders = Orders(2, 1, ClusterImage.of([registration_change(told)]))
    orders.broker_came(1, 1)
    order = orders.next_request(1, 0)
    assert isinstance(order, UpdateMetadataRequest)
    endpoints = order.live_brokers[0].endpoints
    assert {each.listener: each.security_protocol for each in endpoints} == {"IN": 3, "MTLS": 1, "OUT": 0}
    endpoints.append(UpdateMetadataEndpoint(4, "h", "ODD", 77))
    received = Received()
    received.take(order)
    assert received.image.nodes[1].protocols == speaks
