"""What is named twice in one request: how often it is answered."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from logkernel.requests.access import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from logkernel.requests.cluster import (
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    MetadataRequestTopic,
)
from logkernel.requests.cluster import (
    TopicRequest as NamedTopic,
)
from logkernel.requests.configs import DescribeConfigsRequest, DescribeConfigsResource
from logkernel.requests.consumer_groups import ConsumerGroupDescribeRequest
from logkernel.requests.groups import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from logkernel.requests.share_groups import ShareGroupDescribeRequest
from logkernel.requests.share_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsRequestGroup,
    DescribeShareGroupOffsetsRequestTopic,
)
from logkernel.requests.streams_groups import StreamsGroupDescribeRequest
from logkernel.requests.transactions import DescribeProducersRequest, DescribeTransactionsRequest, TopicRequest

from .asks import Steps

Places = Iterable[tuple[str, list[int]]] | None


def asked_twice(do: Steps) -> None:
    do.create("at", 2)
    do.commit("at commits", "at", topic="at", partition=0)
    do.commit("at commits another", "at", topic="at", partition=1)
    do.share_beat("at shares", "at-share", "AAAAAAAAAAAAAAAAAAAAAA", 0, "at")
    committed_offsets(do)
    share_offsets(do)
    descriptions(do)


def committed_offsets(do: Steps) -> None:
    def tell(name: str, *asked: tuple[Places, str | None, int]) -> None:
        groups = [
            OffsetFetchRequestGroup(
                "at",
                None if places is None else [OffsetFetchRequestTopics(topic, list(parts)) for topic, parts in places],
                member,
                epoch,
            )
            for places, member, epoch in asked
        ]
        answer = do.ask(9, OffsetFetchRequest(groups=groups), lambda a: [g.error_code for g in a.groups])
        do.note(
            name,
            [
                (
                    g.group_id,
                    g.error_code,
                    [(t.name, sorted(r.partition_index for r in t.partitions)) for t in g.topics],
                )
                for g in answer.groups
            ],
        )

    tell("at all, twice", (None, None, -1), (None, None, -1))
    tell("at all, for two members", (None, "a", 1), (None, "b", 2))
    tell("at two partitions, apart", ([("at", [0])], None, -1), ([("at", [1])], None, -1))
    tell("at a partition and all", ([("at", [0])], None, -1), (None, None, -1))
    tell("at a topic twice", ([("at", [0]), ("at", [0, 1])], None, -1))
    tell("at a partition twice", ([("at", [0, 0])], None, -1))


def share_offsets(do: Steps) -> None:
    def tell(name: str, *asked: Places) -> None:
        groups = [
            DescribeShareGroupOffsetsRequestGroup(
                "at-share",
                None if places is None else [DescribeShareGroupOffsetsRequestTopic(*one) for one in places],
            )
            for places in asked
        ]
        answer = do.ask(1, DescribeShareGroupOffsetsRequest(groups), lambda a: [g.error_code for g in a.groups])
        do.note(
            name,
            [
                (
                    g.group_id,
                    g.error_code,
                    [(t.topic_name, sorted(r.partition_index for r in t.partitions)) for t in g.topics],
                )
                for g in answer.groups
            ],
        )

    tell("at shared all, twice", None, None)
    tell("at shared partitions, apart", [("at", [0])], [("at", [1])])
    tell("at a shared topic twice", [("at", [0]), ("at", [0, 1])])
    tell("at a shared partition twice", [("at", [0, 0])])


def descriptions(do: Steps) -> None:
    def tell(name: str, version: int, request: Any, rows: Any) -> None:
        do.note(name, rows(do.ask(version, request)))

    twice = ["at", "at"]
    ids = lambda answer: [row.group_id for row in answer.groups]  # noqa: E731
    tell("at groups", 6, DescribeGroupsRequest(twice), ids)
    tell("at consumer groups", 1, ConsumerGroupDescribeRequest(twice), ids)
    tell("at share groups", 1, ShareGroupDescribeRequest(["at-share"] * 2), ids)
    tell("at streams groups", 0, StreamsGroupDescribeRequest(twice), ids)
    tell(
        "at coordinators", 6, FindCoordinatorRequest(coordinator_keys=twice), lambda a: [r.key for r in a.coordinators]
    )
    tell(
        "at transactions",
        0,
        DescribeTransactionsRequest(["op-a", "op-a"]),
        lambda a: [r.transactional_id for r in a.transaction_states],
    )
    tell(
        "at producers",
        0,
        DescribeProducersRequest([TopicRequest("at", [0, 0]), TopicRequest("at", [0, 1])]),
        lambda a: sorted((t.name, sorted(r.partition_index for r in t.partitions)) for t in a.topics),
    )
    tell(
        "at settings",
        4,
        DescribeConfigsRequest([DescribeConfigsResource(2, "at", ["retention.ms"])] * 2),
        lambda a: [(r.resource_name, [c.name for c in r.configs]) for r in a.results],
    )
    tell(
        "at settings apart",
        4,
        DescribeConfigsRequest(
            [DescribeConfigsResource(2, "at", ["retention.ms"]), DescribeConfigsResource(2, "at", ["segment.ms"])]
        ),
        lambda a: [(r.resource_name, [c.name for c in r.configs]) for r in a.results],
    )
    tell(
        "at a setting twice",
        4,
        DescribeConfigsRequest([DescribeConfigsResource(2, "at", ["retention.ms"] * 2)]),
        lambda a: [(r.resource_name, [c.name for c in r.configs]) for r in a.results],
    )
    tell(
        "at metadata", 12, MetadataRequest([MetadataRequestTopic(name="at")] * 2), lambda a: [t.name for t in a.topics]
    )
    tell(
        "at partitions",
        0,
        DescribeTopicPartitionsRequest([NamedTopic("at")] * 2),
        lambda a: [t.name for t in a.topics],
    )
    tell(
        "at users",
        0,
        DescribeUserScramCredentialsRequest([UserName("nobody")] * 2),
        lambda a: [(r.user, r.error_code) for r in a.results],
    )
    tell(
        "at deletions",
        2,
        DeleteGroupsRequest(["at-none", "at-none"]),
        lambda a: [(r.group_id, r.error_code) for r in a.results],
    )
