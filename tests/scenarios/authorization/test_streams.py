"""What an application of Kafka Streams needs: READ on its group, DESCRIBE on its topics, CREATE on those that are
missing and internal."""

from __future__ import annotations

from typing import Any

from streams_members import NO_TASKS

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
PREFIXED, MISSING_INTERNAL = 4, 3


def heartbeat(world: Any, user: str, epoch: int = 0, member: str = "m") -> Any:
    one = Subtopology("0", ["t"], state_changelog_topics=[TopicInfo("app-changelog")])
    more = {**NO_TASKS, "rebalance_timeout_ms": 60_000, "process_id": "p", "topology": Topology(0, [one])}
    return world.ask(user, StreamsGroupHeartbeatRequest("app", member, epoch, **(more if epoch == 0 else {})))


def join(world: Any, user: str) -> tuple[int, list[str]]:
    """The error, and what is wrong with topics."""
    response = heartbeat(world, user)
    topics = [row.status_detail for row in response.status or () if row.status_code == MISSING_INTERNAL]
    return response.error_code, topics


def test_a_member_needs_its_group_its_topics_and_to_create_those_that_are_missing(world: Any) -> None:
    """The one that may not create them stays in the group, and is told why nothing runs, as by Apache Kafka."""
    world.topic("t")
    assert join(world, "ann") == (NO_GROUP, [])
    world.allow("ann", Op.READ, Kind.GROUP, "app")
    assert join(world, "ann") == (NO_TOPIC, [])
    world.allow("ann", Op.DESCRIBE, Kind.TOPIC, "t")
    assert join(world, "ann") == (NO_TOPIC, [])
    world.allow("ann", Op.DESCRIBE, Kind.TOPIC, "app-", pattern=PREFIXED)
    told = "Internal topics are missing: app-changelog"
    refused = (0, [f"{told}; Unauthorized to CREATE on topics app-changelog."])
    assert join(world, "ann") == refused
    assert join(world, "ann") == refused, "nothing was made"
    world.allow("ann", Op.CREATE, Kind.TOPIC, "app-", pattern=PREFIXED)
    assert join(world, "ann") == (0, [told])
    assert join(world, "ann") == (0, [])
    assert heartbeat(world, "ann", 1, "x").error_code == e.UnknownMemberId.code
    assert heartbeat(world, "bob", 1).error_code == NO_GROUP


def test_who_may_create_on_the_cluster_may_create_internal_topics(world: Any) -> None:
    world.topic("t")
    for operation, kind, name in (
        (Op.READ, Kind.GROUP, "app"),
        (Op.DESCRIBE, Kind.TOPIC, "*"),
        (Op.CREATE, Kind.CLUSTER, "kafka-cluster"),
    ):
        world.allow("ann", operation, kind, name)
    assert join(world, "ann")[0] == 0
    assert join(world, "ann") == (0, [])


def test_internal_topics_that_exist_need_no_leave_to_create_them(world: Any) -> None:
    world.topic("t")
    assert join(world, "root")[0] == 0
    world.allow("ann", Op.READ, Kind.GROUP, "app")
    world.allow("ann", Op.DESCRIBE, Kind.TOPIC, "*")
    assert join(world, "ann") == (0, [])


def test_a_topology_is_told_to_who_may_see_all_of_its_topics(world: Any) -> None:
    world.topic("t")
    assert join(world, "root")[0] == 0
    request = StreamsGroupDescribeRequest(["app"])
    assert world.ask("ann", request).groups[0].error_code == NO_GROUP
    world.allow("ann", Op.DESCRIBE, Kind.GROUP, "app")
    world.allow("ann", Op.DESCRIBE, Kind.TOPIC, "t")
    (row,) = world.ask("ann", request).groups
    assert (row.error_code, row.members, row.topology) == (NO_TOPIC, [], None)
    world.allow("ann", Op.DESCRIBE, Kind.TOPIC, "app-changelog")
    (row,) = world.ask("ann", request).groups
    assert (row.error_code, [member.member_id for member in row.members]) == (0, ["m"])
