"""ACLs count from the next request on; what is refused stands beside what is answered; lists are filtered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from logkernel import errors as e
from logkernel.requests import cluster, consumer_groups, data, groups, offsets, topics
from logkernel.vocabulary import AclOperation as Op
from logkernel.vocabulary import ResourceType as Kind

TOPIC, GROUP, CLUSTER = Kind.TOPIC, Kind.GROUP, Kind.CLUSTER
REFUSED = e.TopicAuthorizationFailed.code
UNKNOWN = e.UnknownTopicOrPartition.code


def list_offsets(*names: str) -> offsets.ListOffsetsRequest:
    return offsets.ListOffsetsRequest(
        topics=[offsets.ListOffsetsTopic(name, [offsets.ListOffsetsPartition(0, -1)]) for name in names]
    )


def codes(response: offsets.ListOffsetsResponse) -> dict[str, int]:
    return {topic.name: row.error_code for topic in response.topics for row in topic.partitions}


def test_an_acl_counts_from_the_next_request_on(world: Any) -> None:
    world.topic("t")
    assert codes(world.ask("ann", list_offsets("t"))) == {"t": REFUSED}
    world.allow("ann", Op.DESCRIBE, TOPIC, "t")
    assert codes(world.ask("ann", list_offsets("t"))) == {"t": 0}
    assert codes(world.ask("bob", list_offsets("t"))) == {"t": REFUSED}
    world.forbid("ann")
    assert codes(world.ask("ann", list_offsets("t"))) == {"t": REFUSED}
    assert codes(world.ask("root", list_offsets("t"))) == {"t": 0}


def test_a_topic_that_is_refused_is_so_whether_it_is_there_or_not(world: Any) -> None:
    world.topic("t")
    world.allow("ann", Op.DESCRIBE, TOPIC, "seen", pattern=4)
    found = codes(world.ask("ann", list_offsets("t", "none", "seen-none")))
    assert found == {"t": REFUSED, "none": REFUSED, "seen-none": UNKNOWN}


def test_whom_no_acl_names_may_do_all_if_the_setting_says_so(start: Callable[..., Any]) -> None:
    world = start("allow.everyone.if.no.acl.found=true")
    world.topic("t")
    world.topic("u")
    world.allow("bob", Op.READ, TOPIC, "u")
    assert codes(world.ask("ann", list_offsets("t", "u"))) == {"t": 0, "u": REFUSED}


# ---------------------------------------------------------------- metadata


def metadata(*names: str, create: bool = False) -> cluster.MetadataRequest:
    asked = [cluster.MetadataRequestTopic(name) for name in names] if names else None
    return cluster.MetadataRequest(asked, create, True, True)


def rows(response: cluster.MetadataResponse) -> dict[str | None, int]:
    return {row.name: row.error_code for row in response.topics}


def test_all_topics_are_those_that_the_client_may_describe(world: Any) -> None:
    for name in ("a", "b"):
        world.topic(name)
    world.allow("ann", Op.WRITE, TOPIC, "a")
    assert rows(world.ask("ann", metadata())) == {"a": 0}
    assert rows(world.ask("ann", metadata("a", "b", "c"))) == {"a": 0, "b": REFUSED, "c": REFUSED}
    assert rows(world.ask("root", metadata())) == {"a": 0, "b": 0}


def test_the_name_of_an_id_is_not_told(world: Any) -> None:
    world.topic("a")
    topic_id = world.broker.cluster.topic_id("a")
    (row,) = world.ask("ann", cluster.MetadataRequest([cluster.MetadataRequestTopic(None, topic_id)])).topics
    assert (row.error_code, row.name, row.topic_id, row.partitions) == (REFUSED, None, topic_id, [])


def test_an_id_beside_a_name_tells_nothing_of_another_topic(world: Any) -> None:
    """The name was judged, and the topic of the id was told, with its name and partitions."""
    for name in ("a", "secret"):
        world.topic(name)
    world.allow("ann", Op.READ, TOPIC, "a")
    secret = world.broker.cluster.topic_id("secret")
    asked = [cluster.MetadataRequestTopic(name, secret) for name in ("a", "b")]
    (row,) = world.ask("ann", cluster.MetadataRequest(asked)).topics
    assert (row.error_code, row.name, row.topic_id, row.partitions) == (REFUSED, None, secret, [])


def test_a_topic_is_created_for_who_may_create_it(world: Any) -> None:
    world.allow("ann", Op.DESCRIBE, TOPIC, "*")
    assert rows(world.ask("ann", metadata("new", create=True))) == {"new": REFUSED}
    assert rows(world.ask("ann", metadata("new"))) == {"new": UNKNOWN}
    world.allow("ann", Op.CREATE, TOPIC, "n", pattern=4)
    assert rows(world.ask("ann", metadata("new", "other", create=True))) == {"new": 0, "other": REFUSED}
    world.allow("bob", Op.CREATE, CLUSTER, "kafka-cluster")
    world.allow("bob", Op.DESCRIBE, TOPIC, "*")
    assert rows(world.ask("bob", metadata("other", create=True))) == {"other": 0}


def test_allowed_operations_are_told_as_bits(world: Any) -> None:
    world.topic("a")
    world.allow("ann", Op.WRITE, TOPIC, "a")
    response = world.ask("ann", metadata("a"))
    assert response.topics[0].topic_authorized_operations == 1 << Op.WRITE | 1 << Op.DESCRIBE
    assert response.cluster_authorized_operations == 0
    world.allow("ann", Op.ALTER, CLUSTER, "kafka-cluster")
    response = world.ask("ann", cluster.DescribeClusterRequest(True))
    assert response.cluster_authorized_operations == 1 << Op.ALTER | 1 << Op.DESCRIBE


# ---------------------------------------------------------------- fetch


def fetch(*names: str, session: int = 0, epoch: int = -1) -> data.FetchRequest:
    asked = [data.FetchTopic(name, [data.FetchPartition(0, 0, 1 << 20)]) for name in names]
    return data.FetchRequest(max_wait_ms=0, min_bytes=1, topics=asked, session_id=session, session_epoch=epoch)


def fetched(response: data.FetchResponse) -> dict[str, tuple[int, bool]]:
    """Topic → error, whether there are records."""
    return {
        topic.topic: (row.error_code, bool(row.records)) for topic in response.responses for row in topic.partitions
    }


def test_a_session_tells_of_a_refused_partition_each_time(world: Any) -> None:
    for name in ("a", "b"):
        world.topic(name)
    world.allow("ann", Op.READ, TOPIC, "a")
    by_name = {"capabilities": frozenset({"zstd"})}
    first = world.ask("ann", fetch("a", "b", epoch=0), **by_name)
    assert fetched(first) == {"a": (0, False), "b": (REFUSED, False)}
    second = world.ask("ann", fetch(session=first.session_id, epoch=1), **by_name)
    assert fetched(second) == {"b": (REFUSED, False)}
    world.allow("ann", Op.READ, TOPIC, "b")
    third = world.ask("ann", fetch(session=first.session_id, epoch=2), **by_name)
    assert fetched(third) == {"b": (0, False)}


def test_a_session_loses_what_is_forbidden_meanwhile_though_nothing_is_new(world: Any) -> None:
    """The partition was caught up, and a fetch looked only at those with news."""
    world.topic("a")
    world.allow("ann", Op.READ, TOPIC, "a")
    by_name = {"capabilities": frozenset({"zstd"})}
    first = world.ask("ann", fetch("a", epoch=0), **by_name)
    assert fetched(world.ask("ann", fetch(session=first.session_id, epoch=1), **by_name)) == {}
    world.forbid("ann")
    second = world.ask("ann", fetch(session=first.session_id, epoch=2), **by_name)
    assert fetched(second) == {"a": (REFUSED, False)}


def heartbeat(epoch: int, **given: Any) -> Any:
    return consumer_groups.ConsumerGroupHeartbeatRequest("app", "m1", epoch, **given)


def test_a_regular_expression_finds_what_its_member_may_describe(start: Callable[..., Any]) -> None:
    """Topics that come later as well: the group looks at them with a heartbeat, and so knows who asks."""
    world = start("group.consumer.assignment.interval.ms=0")
    for name in ("orders-eu", "orders-secret"):
        world.topic(name)
    world.allow("ann", Op.READ, GROUP, "app")
    world.allow("ann", Op.READ, TOPIC, "orders-eu")
    first = world.ask("ann", heartbeat(0, subscribed_topic_regex="orders-.*", topic_partitions=[],
                                       rebalance_timeout_ms=60_000))  # fmt: skip
    assert first.error_code == 0, first
    ids = {name: world.broker.cluster.topic_id(name) for name in ("orders-eu", "orders-secret")}
    assert [row.topic_id for row in first.assignment.topic_partitions] == [ids["orders-eu"]]

    for name in ("orders-us", "orders-hidden"):
        world.topic(name)
    world.allow("ann", Op.DESCRIBE, TOPIC, "orders-us")
    ids["orders-us"] = world.broker.cluster.topic_id("orders-us")
    later = world.ask("ann", heartbeat(first.member_epoch))
    assert {row.topic_id for row in later.assignment.topic_partitions} == {ids["orders-eu"], ids["orders-us"]}


def test_a_follower_has_to_act_for_the_cluster(world: Any) -> None:
    world.topic("a")
    world.allow("ann", Op.READ, TOPIC, "a")
    asked = fetch("a")
    asked.replica_id = 2
    found = fetched(world.ask("ann", asked, capabilities=frozenset({"zstd"}), commands=False))
    assert found == {"a": (REFUSED, False)}


def test_a_follower_may_look_where_a_log_begins(world: Any) -> None:
    world.topic("a")
    world.allow("broker", Op.CLUSTER_ACTION, CLUSTER, "kafka-cluster")
    asked = list_offsets("a")
    asked.replica_id = 2
    assert codes(world.ask("broker", asked, commands=True)) == {"a": 0}
    assert codes(world.ask("broker", asked)) == {"a": REFUSED}
    assert codes(world.ask("ann", asked, commands=True)) == {"a": REFUSED}


def test_brokers_create_topics_for_their_clients(world: Any) -> None:
    world.allow("broker", Op.CLUSTER_ACTION, CLUSTER, "kafka-cluster")
    asked = topics.CreateTopicsRequest([topics.CreatableTopic("a", 1, 1)], 1_000, True)
    assert [row.error_code for row in world.ask("broker", asked, commands=True).topics] == [0]
    assert [row.error_code for row in world.ask("broker", asked).topics] == [REFUSED]
    assert [row.error_code for row in world.ask("ann", asked, commands=True).topics] == [REFUSED]


def test_acting_for_the_cluster_allows_nothing_else_over_an_inter_broker_listener(world: Any) -> None:
    """Clients and brokers may share the one listener, and everybody may act where no ACL names the cluster."""
    world.topic("a")
    world.allow("broker", Op.CLUSTER_ACTION, CLUSTER, "kafka-cluster")
    assert codes(world.ask("broker", list_offsets("a"), commands=True)) == {"a": REFUSED}
    found = world.ask("broker", fetch("a"), capabilities=frozenset({"zstd"}), commands=True)
    assert fetched(found) == {"a": (REFUSED, False)}
    assert rows(world.ask("broker", metadata("a"), commands=True)) == {"a": REFUSED}


def test_what_the_broker_asks_of_itself_passes(world: Any) -> None:
    world.topic("a")
    assert codes(world.ask("nobody", list_offsets("a"), internal=True)) == {"a": 0}


# ---------------------------------------------------------------- topics, groups


def test_topics_are_created_one_by_one_and_their_settings_told_to_who_may_see_them(world: Any) -> None:
    world.allow("ann", Op.CREATE, TOPIC, "a")
    asked = topics.CreateTopicsRequest([topics.CreatableTopic(name, 1, 1) for name in ("a", "b")])
    found = {row.name: row for row in world.ask("ann", asked).topics}
    assert (found["a"].error_code, found["b"].error_code) == (0, REFUSED)
    assert (found["a"].topic_config_error_code, found["a"].num_partitions, found["a"].configs) == (REFUSED, -1, [])
    assert set(world.broker.cluster.topics) == {"a"}


def test_a_topic_is_not_deleted_by_who_may_only_see_it(world: Any) -> None:
    world.topic("a")
    world.topic("b")
    world.allow("ann", Op.DESCRIBE, TOPIC, "*")
    world.allow("ann", Op.DELETE, TOPIC, "b")
    ids = [world.broker.cluster.topic_id(name) for name in ("a", "b")]
    asked = topics.DeleteTopicsRequest([], 0, [topics.DeleteTopicState(None, topic_id) for topic_id in ids])
    found = {row.name: row.error_code for row in world.ask("ann", asked).responses}
    assert found == {"a": REFUSED, "b": 0}
    (row,) = world.ask("bob", topics.DeleteTopicsRequest([], 0, [topics.DeleteTopicState(None, ids[0])])).responses
    assert (row.name, row.topic_id, row.error_code) == (None, ids[0], REFUSED)
    (row,) = world.ask("bob", topics.DeleteTopicsRequest(["a"])).responses
    assert (row.name, row.error_code) == ("a", REFUSED)
    assert set(world.broker.cluster.topics) == {"a"}


def test_offsets_of_topics_that_a_client_may_not_see_are_left_out(world: Any) -> None:
    for name in ("a", "b"):
        world.topic(name)
    commit = groups.OffsetCommitRequest(
        "app", topics=[
            groups.OffsetCommitRequestTopic(name, [groups.OffsetCommitRequestPartition(0, 7)]) for name in ("a", "b")
        ],
    )  # fmt: skip
    by_name = {"capabilities": frozenset[str]()}
    world.allow("ann", Op.READ, GROUP, "app")
    world.allow("ann", Op.READ, TOPIC, "a")
    response = world.ask("ann", commit, **by_name)
    assert {t.name: r.error_code for t in response.topics for r in t.partitions} == {"a": 0, "b": REFUSED}
    assert {r.error_code for t in world.ask("bob", commit, **by_name).topics for r in t.partitions} == {30}
    world.ask("root", commit, **by_name)
    asked = groups.OffsetFetchRequest(groups=[groups.OffsetFetchRequestGroup("app")])
    (group,) = world.ask("ann", asked, **by_name).groups
    assert [topic.name for topic in group.topics] == ["a"]
    (group,) = world.ask("bob", asked, **by_name).groups
    assert (group.error_code, group.topics) == (e.GroupAuthorizationFailed.code, [])


@pytest.mark.parametrize(("operation", "kind", "name", "seen"), [
    (Op.DESCRIBE, GROUP, "app", ["app"]), (Op.DESCRIBE, CLUSTER, "kafka-cluster", ["app", "other"]),
    (Op.DELETE, GROUP, "other", ["other"]), (Op.READ, TOPIC, "*", []),
])  # fmt: skip
def test_groups_are_listed_to_who_may_describe_them(
    world: Any, operation: Op, kind: Kind, name: str, seen: list[str]
) -> None:
    world.topic("a")
    for group in ("app", "other"):
        topic = groups.OffsetCommitRequestTopic("a", [groups.OffsetCommitRequestPartition(0, 7)])
        world.ask("root", groups.OffsetCommitRequest(group, topics=[topic]), capabilities=frozenset())
    world.allow("ann", operation, kind, name)
    assert sorted(row.group_id for row in world.ask("ann", groups.ListGroupsRequest()).groups) == seen
