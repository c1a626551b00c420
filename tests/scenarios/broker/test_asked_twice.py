"""What a request names again and again is looked at once: the answer would have a thousand times its bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.contracts import RequestContext
from logkernel.errors import InvalidRequest
from logkernel.requests import configs, consumer_groups, groups, offsets, share_groups, streams_groups, transactions


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
        (groups.DescribeGroupsRequest(["g", "h"] * 3), lambda answer: answer.groups),
        (consumer_groups.ConsumerGroupDescribeRequest(["g", "h"] * 3), lambda answer: answer.groups),
        (streams_groups.StreamsGroupDescribeRequest(["g", "h"] * 3), lambda answer: answer.groups),
        (share_groups.ShareGroupDescribeRequest(["g", "h"] * 3), lambda answer: answer.groups),
        (transactions.DescribeTransactionsRequest(["x", "y"] * 3), lambda answer: answer.transaction_states),
        (
            transactions.DescribeProducersRequest([transactions.TopicRequest("t", [0, 1] * 3)]),
            lambda answer: answer.topics[0].partitions,
        ),
        (
            configs.DescribeConfigsRequest(
                [configs.DescribeConfigsResource(2, "t", keys) for keys in (None, ["retention.ms"])] * 3
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
