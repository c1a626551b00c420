"""What a request names again and again is looked at once: the answer would have a thousand times its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from logkernel.attrs_lite import evolve
from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.contracts import RequestContext
from logkernel.errors import InvalidRequest
from logkernel.requests import (
    cluster,
    configs,
    consumer_groups,
    groups,
    offsets,
    share_groups,
    share_offsets,
    streams_groups,
    transactions,
)
from logkernel.requests.repeated import COUNTED, MOST_NAMED, ONCE

ROOMS = (configs, consumer_groups, groups, share_groups, share_offsets, streams_groups, transactions)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    made = build(None, ["offsets.topic.num.partitions=1", "transaction.state.log.num.partitions=1"], in_memory=True)
    made.start()
    made.create_topic("t", 1, {})
    for kind, key in ((0, "g"), (1, "x")):
        ask(made, groups.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]))
    yield made
    made.close()


def ask(broker: Broker, request: Any) -> Any:
    found: list[Any] = []
    broker.submit(request, RequestContext(client_id="test"), found.append)
    (response,) = found
    return response


@pytest.mark.parametrize(
    ("request_", "rows"),
    [
        (
            cluster.MetadataRequest([cluster.MetadataRequestTopic(name=name) for name in "tu"] * 3),
            lambda answer: answer.topics,
        ),
        (
            cluster.DescribeTopicPartitionsRequest([cluster.TopicRequest(name) for name in "tu"] * 3),
            lambda answer: answer.topics,
        ),
        (groups.DeleteGroupsRequest(["none", "neither"] * 3), lambda answer: answer.results),
        (
            groups.OffsetFetchRequest(groups=[groups.OffsetFetchRequestGroup(name) for name in "gh"] * 3),
            lambda answer: answer.groups,
        ),
        (
            share_offsets.DescribeShareGroupOffsetsRequest(
                [share_offsets.DescribeShareGroupOffsetsRequestGroup(name) for name in "gh"] * 3
            ),
            lambda answer: answer.groups,
        ),
        (groups.DescribeGroupsRequest(["g", "h"] * 3), lambda answer: answer.groups),
        (consumer_groups.ConsumerGroupDescribeRequest(["g", "h"] * 3), lambda answer: answer.groups),
        (streams_groups.StreamsGroupDescribeRequest(["g", "h"] * 3), lambda answer: answer.groups),
        (share_groups.ShareGroupDescribeRequest(["g", "h"] * 3), lambda answer: answer.groups),
        (transactions.DescribeTransactionsRequest(["x", "y"] * 3), lambda answer: answer.transaction_states),
        (
            transactions.DescribeProducersRequest([transactions.TopicRequest("t", [0, 1] * 3)] * 2),
            lambda answer: answer.topics[0].partitions,
        ),
        (
            configs.DescribeConfigsRequest(
                [configs.DescribeConfigsResource(2, "t", keys) for keys in (["retention.ms"], None)] * 3
            ),
            lambda answer: answer.results,
        ),
    ],
    ids=lambda value: type(value).__name__ if not callable(value) else "",
)
def test_it_is_answered_once(broker: Broker, request_: Any, rows: Callable[[Any], list[Any]]) -> None:
    assert len(rows(ask(broker, request_))) == 2


def test_a_partition_whose_offset_is_asked_for_twice_is_refused_as_by_kafka(broker: Broker) -> None:
    """Each time a batch may have been decompressed: a request of 2 MB held the broker up for minutes."""
    once, twice = offsets.ListOffsetsPartition(1, -1, -1), offsets.ListOffsetsPartition(0, -1, -3)
    asked = [offsets.ListOffsetsTopic("t", [twice, once]), offsets.ListOffsetsTopic("t", [twice])]
    (topic,) = ask(broker, offsets.ListOffsetsRequest(topics=asked)).topics
    codes = {row.partition_index: row.error_code for row in topic.partitions}
    assert codes[0] == InvalidRequest.code != codes[1]
    assert len(topic.partitions) == 2


def committed(broker: Broker, *asked: groups.OffsetFetchRequestGroup) -> list[tuple[str, list[tuple[str, list[int]]]]]:
    """Of each row: the group, and which partitions of which topics it tells."""
    rows = ask(broker, groups.OffsetFetchRequest(groups=list(asked))).groups
    assert [row.error_code for row in rows] == [0] * len(rows)
    return [
        (row.group_id, [(one.name, [told.partition_index for told in one.partitions]) for one in row.topics])
        for row in rows
    ]


@pytest.fixture(scope="module")
def committing(broker: Broker) -> Broker:
    rows = [groups.OffsetCommitRequestPartition(0, 5, "m" * 4_000)]
    topic = groups.OffsetCommitRequestTopic("t", rows)
    ask(broker, groups.OffsetCommitRequest("committing", topics=[topic]))
    return broker


def fetch(*partitions: int, **more: Any) -> groups.OffsetFetchRequestGroup:
    return groups.OffsetFetchRequestGroup(
        "committing", [groups.OffsetFetchRequestTopics("t", list(partitions))], **more
    )


def test_a_group_is_told_all_its_offsets_once_whoever_asks(committing: Broker) -> None:
    asked = [groups.OffsetFetchRequestGroup("committing", None, member, 1) for member in "abc"]
    assert committed(committing, *asked) == [("committing", [("t", [0])])]


def test_a_committed_offset_is_told_once(committing: Broker) -> None:
    """A row of the answer has its metadata, of 4 KB; what asks for it has four bytes."""
    assert committed(committing, fetch(0, 0, 1, 0), fetch(0), fetch(1)) == [("committing", [("t", [0, 1])])]
    twice = evolve(fetch(), topics=[groups.OffsetFetchRequestTopics("t", [0])] * 3)
    assert committed(committing, twice) == [("committing", [("t", [0])])]


def test_rows_of_a_group_that_ask_for_different_offsets_are_answered_each_as_by_kafka(committing: Broker) -> None:
    assert committed(committing, fetch(0), fetch(1)) == [("committing", [("t", [0])]), ("committing", [("t", [1])])]
    everything = groups.OffsetFetchRequestGroup("committing")
    assert committed(committing, fetch(1), everything, fetch(0)) == [
        ("committing", [("t", [1])]),
        ("committing", [("t", [0])]),
    ]


def test_a_group_that_asks_for_nothing_is_answered_as_by_kafka(committing: Broker) -> None:
    assert committed(committing, groups.OffsetFetchRequestGroup("committing", [])) == [("committing", [])]
    assert committed(committing, fetch()) == [("committing", [("t", [])])]


def test_a_setting_is_told_once_however_its_names_are_grouped(broker: Broker) -> None:
    keys = [["retention.ms"], ["retention.ms", "segment.ms"], ["segment.ms", "retention.ms"], []]
    asked = [configs.DescribeConfigsResource(2, "t", one) for one in keys]
    rows = ask(broker, configs.DescribeConfigsRequest(asked)).results
    assert [[setting.name for setting in row.configs] for row in rows] == [["retention.ms"], ["segment.ms"]]


def test_the_first_question_is_asked_as_it_came(broker: Broker) -> None:
    """An empty list of settings asks for none of them, and is answered."""
    (row,) = ask(broker, configs.DescribeConfigsRequest([configs.DescribeConfigsResource(2, "t", [])])).results
    assert (row.resource_name, row.error_code) == ("t", 0)


@pytest.mark.parametrize(
    "request_",
    [
        groups.DescribeGroupsRequest([f"g{n}" for n in range(MOST_NAMED + 1)]),
        groups.OffsetFetchRequest(groups=[groups.OffsetFetchRequestGroup(f"g{n}") for n in range(MOST_NAMED + 1)]),
    ],
    ids=lambda request: type(request).__name__,
)
def test_who_names_more_than_the_thread_has_time_for_is_refused_at_once(
    broker: Broker, request_: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """A request of 6 MB held all clients up for 12 s, and took 600 MB."""
    rows = ask(broker, request_).groups
    assert {row.error_code for row in rows} == {InvalidRequest.code}
    assert "names 100001 things, and 100000 are the most; ask in parts" in caplog.text


def test_each_request_that_is_counted_names_its_field() -> None:
    kinds = {name: kind for room in ROOMS for name, kind in vars(room).items()}
    for name, field in COUNTED.items():
        assert name in ONCE
        assert getattr(kinds[name](), field) == []
