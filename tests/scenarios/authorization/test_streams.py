"""What an application of Kafka Streams needs: READ on its group, DESCRIBE on its topics, CREATE on internal ones."""

from __future__ import annotations

from typing import Any

from logkernel import errors as e
from logkernel.requests.streams_groups import (
    StreamsGroupDescribeRequest,
    StreamsGroupHeartbeatRequest,
    Subtopology,
    TopicInfo,
    Topology,
)
from logkernel.vocabulary import AclOperation as Op
from logkernel.vocabulary import ResourceType as Kind

NO_GROUP, NO_TOPIC = e.GroupAuthorizationFailed.code, e.TopicAuthorizationFailed.code
PREFIXED = 4


def join(world: Any, user: str) -> tuple[int, str]:
    one = Subtopology("0", ["t"], state_changelog_topics=[TopicInfo("app-changelog")])
    request = StreamsGroupHeartbeatRequest(
        "app", "m", 0, rebalance_timeout_ms=60_000, process_id="p", topology=Topology(0, [one])
    )
    response = world.ask(user, request)
    return response.error_code, response.error_message or ""


def test_a_member_needs_its_group_its_topics_and_to_create_those_that_are_internal(world: Any) -> None:
    world.topic("t")
    assert join(world, "ann") == (NO_GROUP, "")
    world.allow("ann", Op.READ, Kind.GROUP, "app")
    assert join(world, "ann") == (NO_TOPIC, "")
    world.allow("ann", Op.DESCRIBE, Kind.TOPIC, "t")
    assert join(world, "ann") == (NO_TOPIC, "")
    world.allow("ann", Op.DESCRIBE, Kind.TOPIC, "app-", pattern=PREFIXED)
    assert join(world, "ann") == (NO_TOPIC, "Unauthorized to CREATE on topics app-changelog.")
    world.allow("ann", Op.CREATE, Kind.TOPIC, "app-", pattern=PREFIXED)
    assert join(world, "ann") == (0, "")
    later = StreamsGroupHeartbeatRequest("app", "m", 1)
    assert world.ask("ann", later).error_code == 0
    assert world.ask("bob", later).error_code == NO_GROUP


def test_who_may_create_on_the_cluster_may_create_internal_topics(world: Any) -> None:
    world.topic("t")
    for operation, kind, name in (
        (Op.READ, Kind.GROUP, "app"),
        (Op.DESCRIBE, Kind.TOPIC, "*"),
        (Op.CREATE, Kind.CLUSTER, "kafka-cluster"),
    ):
        world.allow("ann", operation, kind, name)
    assert join(world, "ann") == (0, "")


def test_a_topology_is_told_to_who_may_see_all_of_its_topics(world: Any) -> None:
    world.topic("t")
    assert join(world, "root") == (0, "")
    request = StreamsGroupDescribeRequest(["app"])
    assert world.ask("ann", request).groups[0].error_code == NO_GROUP
    world.allow("ann", Op.DESCRIBE, Kind.GROUP, "app")
    world.allow("ann", Op.DESCRIBE, Kind.TOPIC, "t")
    (row,) = world.ask("ann", request).groups
    assert (row.error_code, row.members, row.topology) == (NO_TOPIC, [], None)
    world.allow("ann", Op.DESCRIBE, Kind.TOPIC, "app-changelog")
    (row,) = world.ask("ann", request).groups
    assert (row.error_code, [member.member_id for member in row.members]) == (0, ["m"])
