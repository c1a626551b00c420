"""The service: what goes to which shard, how parts come together, and how a request is refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pluggy
import pytest

from logkernel import contracts, hookspecs
from logkernel.contracts import RequestContext
from logkernel.errors import BY_CODE
from logkernel.plugins.assignors.range import RangeAssignor
from logkernel.plugins.assignors.uniform import UniformAssignor
from logkernel.plugins.services import groups
from logkernel.requests import consumer_groups, streams_groups, transactions
from logkernel.requests import groups as requests
from logkernel.requests.consumer_groups import ConsumerGroupDescribeRequest
from logkernel.requests.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from logkernel.requests.streams_groups import StreamsGroupDescribeRequest

CONTEXT = RequestContext(listener="PLAINTEXT")


class OneBroker:
    nodes: Sequence[tuple[int, str, int, str | None]] = [(7, "example.org", 9092, None)]

    def __init__(self) -> None:
        self.features = {"group.version": 1, "streams.version": 1}

    def brokers(self, listener: str) -> Sequence[tuple[int, str, int, str | None]]:
        assert listener == "PLAINTEXT"
        return self.nodes

    def coordinator(self, topic: str, key: str, listener: str) -> tuple[int, str, int, str | None] | None:
        assert topic in ("__consumer_offsets", "__transaction_state")
        return next(iter(self.brokers(listener)), None)

    def partition_count(self, topic: str) -> int | None:
        return None

    topic_id = topic_name = partition_count

    def feature_level(self, name: str) -> int:
        return self.features[name]

    def task_assignor(self, name: str) -> Any:
        return None

    def assignor(self, name: str) -> Any:
        return {"uniform": UniformAssignor(), "range": RangeAssignor()}[name]


def service(cluster: Any = None) -> contracts.Service:
    manager = pluggy.PluginManager("logkernel")
    manager.add_hookspecs(hookspecs)
    manager.register(groups)
    assert ("service", "groups") in next(iter(manager.hook.logkernel_names()))
    assert manager.hook.logkernel_service(name="other", settings={}, cluster=None) is None
    found = manager.hook.logkernel_service(name="groups", settings={}, cluster=cluster or OneBroker())
    return found  # type: ignore[no-any-return]


def test_its_topic_is_kafkas() -> None:
    topic = groups.DECLARATION.topic
    assert topic is not None
    assert (topic.name, topic.partitions_setting) == ("__consumer_offsets", "offsets.topic.num.partitions")
    assert topic.config["cleanup.policy"] == "compact"


@pytest.mark.parametrize("key_type", [0, 1])
def test_this_broker_coordinates_groups_and_transactions(key_type: int) -> None:
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=["a", "b"])
    assert not service().split(request, 50)
    rows = service().join(request, [], CONTEXT).coordinators
    assert [(row.key, row.error_code, row.node_id, row.host, row.port) for row in rows] == [
        ("a", 0, 7, "example.org", 9092),
        ("b", 0, 7, "example.org", 9092),
    ]


def test_no_coordinator() -> None:
    nobody = OneBroker()
    nobody.nodes = []
    lost = service(nobody).join(FindCoordinatorRequest(coordinator_keys=["a"]), [], CONTEXT).coordinators[0]
    assert (lost.error_code, lost.node_id, lost.port) == (15, -1, -1)
    share = service().join(FindCoordinatorRequest(key_type=2, coordinator_keys=["a"]), [], CONTEXT).coordinators[0]
    assert share.error_code == 42


def test_a_part_a_group() -> None:
    ours = service()
    fetch = OffsetFetchRequest(
        require_stable=True, groups=[OffsetFetchRequestGroup("my-group"), OffsetFetchRequestGroup("a")]
    )
    parts = ours.split(fetch, 50)
    assert [(shard, [group.group_id for group in part.groups]) for shard, part in parts] == [
        (12, ["my-group"]),
        (47, ["a"]),
    ]
    assert all(part.require_stable for _, part in parts)
    responses = [ours.refusal(part, 14) for _, part in parts]
    joined = ours.join(fetch, responses, CONTEXT)
    assert [(row.group_id, row.error_code) for row in joined.groups] == [("my-group", 14), ("a", 14)]
    describe = DescribeGroupsRequest(["my-group", "a"], True)
    assert [(shard, part.groups, part.include_authorized_operations) for shard, part in ours.split(describe, 50)] == [
        (12, ["my-group"], True),
        (47, ["a"], True),
    ]
    delete = DeleteGroupsRequest(["a", "my-group"])
    assert [(shard, part.groups_names) for shard, part in ours.split(delete, 50)] == [(47, ["a"]), (12, ["my-group"])]
    assert [shard for shard, _ in ours.split(JoinGroupRequest(group_id="my-group"), 50)] == [12]


@pytest.mark.parametrize(
    ("feature", "off", "on"),
    [
        ("group.version", ConsumerGroupDescribeRequest(["a", "b"]), StreamsGroupDescribeRequest(["a"])),
        ("streams.version", StreamsGroupDescribeRequest(["a", "b"]), ConsumerGroupDescribeRequest(["a"])),
    ],
)
def test_groups_of_a_protocol_that_is_off_are_not_described(feature: str, off: Any, on: Any) -> None:
    """Kafka's `kafka-streams-groups` tells by UNSUPPORTED_VERSION that it can't know a group's internal topics."""
    cluster = OneBroker()
    ours = service(cluster)
    assert len(ours.split(off, 50)) == 2
    cluster.features[feature] = 0
    assert not ours.split(off, 50)
    assert [(row.group_id, row.error_code) for row in ours.join(off, [], CONTEXT).groups] == [("a", 35), ("b", 35)]
    assert len(ours.split(on, 50)) == 1


def test_every_shard_is_asked_for_its_groups() -> None:
    ours = service()
    request = ListGroupsRequest(states_filter=["Stable"])
    assert [shard for shard, _ in ours.split(request, 3)] == [0, 1, 2]
    rows = [requests.ListGroupsResponse(groups=[requests.ListedGroup(name)]) for name in "abc"]
    assert [row.group_id for row in ours.join(request, rows, CONTEXT).groups] == ["a", "b", "c"]
    rows[1] = ours.refusal(request, 16)
    assert ours.join(request, rows, CONTEXT).error_code == 16


def test_nothing_asked_nothing_answered() -> None:
    ours = service()
    for request in (OffsetFetchRequest(), DescribeGroupsRequest(), DeleteGroupsRequest()):
        assert not ours.split(request, 50)
        ours.join(request, [], CONTEXT)


def test_a_group_id_that_cannot_be_kept() -> None:
    ours = service()
    request = JoinGroupRequest(group_id="x" * 40_000)
    assert not ours.split(request, 50)
    assert ours.join(request, [], CONTEXT).error_code == 24


def test_every_request_can_be_refused_with_every_code() -> None:
    ours = service()
    for name in groups.DECLARATION.requests:
        for code in BY_CODE:
            family = next(f for f in (requests, transactions, consumer_groups, streams_groups) if hasattr(f, name))
            ours.refusal(getattr(family, name)(), code)
    with pytest.raises(TypeError):
        ours.refusal(object(), 1)


def test_what_the_log_refuses_becomes_what_a_client_understands() -> None:
    ours = service()
    commit = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("t", [OffsetCommitRequestPartition(3)])])
    told = {code: ours.refusal(commit, code).topics[0].partitions[0].error_code for code in (10, 19, 7, 6, 56, 16)}
    assert told == {10: 28, 19: 15, 7: 15, 6: 16, 56: 16, 16: 16}
    assert ours.refusal(JoinGroupRequest(member_id="m"), 6).member_id == "m"
    assert ours.refusal(requests.HeartbeatRequest(), 14).error_code == 0
