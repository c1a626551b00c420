"""Requests of users who may each do one thing, or few, and what of the answers says what they may.

Apache Kafka is asked by `record.py`, our broker by tests/scenarios/authorization/test_beside_kafka.py: the same
requests, in the same order.

Every grant is on these resources; nobody but `root` has one on another:

    topic              orders, fresh and auto-USER, of which only orders exists
    group              app (classic, empty, with offsets), live, plain (KIP-848), share, share-plain (KIP-932), gone
    transactional id   tx (open), tx2
    user               User:owner, who has a delegation token that `root` asked for
    token              this token
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from uuid import UUID

from logkernel.record.encode import encode_batch
from logkernel.requests import (
    access,
    cluster,
    configs,
    consumer_groups,
    data,
    groups,
    offsets,
    placement,
    producers,
    quorum,
    share_delivery,
    share_groups,
    share_offsets,
    share_state,
    streams_groups,
    topics,
    transactions,
)
from logkernel.vocabulary import NO_ID, AclOperation, Record, ResourceType

ROOT, OWNER, KEY = "root", "owner", b"hush"
"""`KEY` is the broker's delegation.token.secret.key."""
TOPICS, GROUPS = ("orders", "fresh"), ("app", "live", "plain", "share", "share-plain", "gone")
IDS = ("tx", "tx2")
OPERATIONS = {
    "topic": "READ WRITE CREATE DELETE ALTER DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS",
    "group": "READ DELETE DESCRIBE DESCRIBE_CONFIGS ALTER_CONFIGS",
    "cluster": "CREATE CLUSTER_ACTION DESCRIBE_CONFIGS ALTER_CONFIGS IDEMPOTENT_WRITE ALTER DESCRIBE",
    "id": "DESCRIBE WRITE TWO_PHASE_COMMIT",
    "user": "CREATE_TOKENS DESCRIBE_TOKENS",
    "token": "DESCRIBE",
}
TOGETHER = (
    "group-READ+topic-READ", "group-READ+topic-DESCRIBE", "group-DESCRIBE+topic-DESCRIBE", "group-DELETE+topic-READ",
    "id-WRITE+topic-WRITE", "id-WRITE+group-READ", "id-WRITE+group-READ+topic-READ", "id-DESCRIBE+topic-DESCRIBE",
    "topic-CREATE+topic-DESCRIBE", "topic-CREATE+topic-DESCRIBE_CONFIGS", "topic-DESCRIBE+cluster-CREATE",
    "topic-ALL-DENY-READ", "topic-ALL+group-ALL+id-ALL",
)  # fmt: skip
USERS = ("none", *(f"{kind}-{one}" for kind, words in OPERATIONS.items() for one in words.split()), *TOGETHER)
"""A user's name says what it may do."""
KINDS = {
    "topic": ResourceType.TOPIC, "group": ResourceType.GROUP, "cluster": ResourceType.CLUSTER,
    "id": ResourceType.TRANSACTIONAL_ID, "user": ResourceType.USER, "token": ResourceType.DELEGATION_TOKEN,
}  # fmt: skip
CODES = {
    29: "TOPIC_AUTHORIZATION_FAILED", 30: "GROUP_AUTHORIZATION_FAILED", 31: "CLUSTER_AUTHORIZATION_FAILED",
    53: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", 55: "OPERATION_NOT_ATTEMPTED",
    65: "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
}  # fmt: skip
MEMBER = {name: f"AAAAAAAAAAAAAAAAAAAA{index:02}" for index, name in enumerate(GROUPS)}
"""Member ids: URL-safe base64 of 16 bytes."""
IN_ROWS = ("name", "topic", "topic_name", "group_id", "transactional_id", "key", "resource_name", "user", "feature")
INDEXES = ("partition_index", "index", "partition", "partition_id")

Ask = Callable[[str, Any], Any]
"""(user, request) → response."""


def acls(user: str, token: str) -> Iterator[access.AclCreation]:
    if user == "none":
        return
    for grant in user.split("+"):
        kind, *words = grant.split("-")
        names = {
            "topic": (*TOPICS, f"auto-{user}"), "group": GROUPS, "cluster": ("kafka-cluster",), "id": IDS,
            "user": (f"User:{OWNER}",), "token": (token,),
        }[kind]  # fmt: skip
        for permission, operation in ((3, words[0]), *((2, word) for word in words[2:])):
            for name in names:
                code = int(AclOperation[operation])
                yield access.AclCreation(int(KINDS[kind]), name, 3, f"User:{user}", "*", code, permission)


# ---------------------------------------------------------------- what an answer says


def outcome(response: Any, names: dict[UUID, str], shows: Callable[[Any], Any] | None = None) -> str:
    """Where an authorization error stands, and what `shows` finds; "-" for neither."""
    found = sorted(_errors(response, "", names))
    if shows is not None:
        found.append(f"shows {shows(response)}")
    said = "; ".join(found) or "-"
    for topic_id, name in names.items():
        said = said.replace(_text(topic_id), name).replace(str(topic_id), name)
    return said


def _errors(value: Any, path: str, names: dict[UUID, str]) -> Iterator[str]:
    if isinstance(value, list):
        for one in value:
            yield from _errors(one, path + _label(one, names), names)
        return
    for field in getattr(type(value), "__fields__", ()):
        inner = getattr(value, field.name)
        if field.name.endswith("error_code") and inner in CODES:
            yield f"{path or 'response'} {field.name}={CODES[inner]}"
        elif field.name.endswith("authorized_operations") and inner != -(2**31):
            yield f"{path or 'response'} {field.name}={inner}"
        elif not isinstance(inner, (str, bytes, int, float, UUID, type(None))):
            yield from _errors(inner, path, names)


def _label(row: Any, names: dict[UUID, str]) -> str:
    topic_id = getattr(row, "topic_id", NO_ID)
    name = next((str(getattr(row, one)) for one in IN_ROWS if getattr(row, one, None)), names.get(topic_id, ""))
    if hasattr(row, "resource_type") and hasattr(row, "resource_name"):
        name = f"{row.resource_type}:{name}"
    index = next((f"[{getattr(row, one)}]" for one in INDEXES if hasattr(row, one)), "")
    return f"/{name}" if name else index


# ---------------------------------------------------------------- what there is


def set_up(ask: Ask, retried: Callable[[Callable[[], bool]], None]) -> dict[UUID, str]:
    """Make the world as `root`, for which `retried` repeats what is not ready; returns the names of topic ids."""
    made = ask(ROOT, topics.CreateTopicsRequest([topics.CreatableTopic(name, 1, 1) for name in ("orders", "secret")]))
    assert [row.error_code for row in made.topics] == [0, 0]
    names = {row.topic_id: row.name for row in made.topics}
    token = ask(ROOT, access.CreateDelegationTokenRequest("User", OWNER, [], -1))
    assert token.error_code == 0
    retried(lambda: len(ask(ROOT, access.DescribeDelegationTokenRequest()).tokens) == 1)
    for user in USERS:
        creations = list(acls(user, token.token_id))
        if creations:
            assert {row.error_code for row in ask(ROOT, access.CreateAclsRequest(creations)).results} == {0}
    finds = [
        (0, ["app", "other", *GROUPS]),
        (1, ["tx", "other-tx", "tx2"]),
        (2, [f"share:{_text(made.topics[0].topic_id)}:0"]),
    ]
    for kind, keys in finds:  # makes the topics of the coordinators
        retried(lambda kind=kind, keys=keys: _found(ask, kind, keys))  # type: ignore[misc]
    for group in ("app", "other"):
        retried(lambda group=group: _committed(ask, group))  # type: ignore[misc]
    for name in ("tx", "other-tx"):
        retried(lambda name=name: _open_transaction(ask, name))  # type: ignore[misc]
    for group, seen in (("live", ["orders", "secret"]), ("plain", ["orders"])):
        retried(_Joining(ask, group, seen, consumer_groups.ConsumerGroupHeartbeatRequest).is_assigned)
    for group, seen in (("share", ["orders", "secret"]), ("share-plain", ["orders"])):
        retried(_Joining(ask, group, seen, share_groups.ShareGroupHeartbeatRequest).is_assigned)
    return names


class _Joining:
    """A member that heartbeats until it has partitions of all its topics."""

    def __init__(self, ask: Ask, group: str, names: list[str], kind: type[Any]) -> None:
        self._ask, self._group, self._names, self._kind, self._epoch = ask, group, names, kind, 0

    def is_assigned(self) -> bool:
        request = self._kind(self._group, MEMBER[self._group], self._epoch, subscribed_topic_names=self._names)
        if self._epoch == 0 and hasattr(request, "topic_partitions"):
            request.topic_partitions, request.rebalance_timeout_ms = [], 60_000
        response = self._ask(ROOT, request)
        if not response.error_code:
            self._epoch = response.member_epoch
        given = response.assignment
        return given is not None and len(given.topic_partitions) == len(self._names)


def _found(ask: Ask, kind: int, keys: list[str]) -> bool:
    response = ask(ROOT, groups.FindCoordinatorRequest(key_type=kind, coordinator_keys=keys))
    return all(row.error_code == 0 for row in response.coordinators)


def _committed(ask: Ask, group: str) -> bool:
    rows = [groups.OffsetCommitRequestPartition(0, 0)]
    asked = [groups.OffsetCommitRequestTopic(name, rows) for name in ("orders", "secret")]
    response = ask(ROOT, groups.OffsetCommitRequest(group, topics=asked))
    return all(row.error_code == 0 for topic in response.topics for row in topic.partitions)


def _open_transaction(ask: Ask, name: str) -> bool:
    begun = ask(ROOT, producers.InitProducerIdRequest(name, 900_000))
    if begun.error_code:
        return False
    response = ask(ROOT, _add(name, begun.producer_id, begun.producer_epoch, "orders", "secret"))
    results = response.results_by_transaction[0].topic_results
    return all(row.partition_error_code == 0 for topic in results for row in topic.results_by_partition)


def _add(name: str, producer_id: int, epoch: int, *written: str) -> transactions.AddPartitionsToTxnRequest:
    parts = [transactions.AddPartitionsToTxnTopic(topic, [0]) for topic in written]
    return transactions.AddPartitionsToTxnRequest(
        [transactions.AddPartitionsToTxnTransaction(name, producer_id, epoch, topics=parts)]
    )


# ---------------------------------------------------------------- what is asked


class Case(NamedTuple):
    name: str
    request: Callable[[str, dict[str, UUID]], Any]
    """(user, topic → id) → what it asks."""
    shows: Callable[[Any], Any] | None = None


def _topics(kind: type[Any], rows: Callable[[], list[Any]], *names: str) -> list[Any]:
    return [kind(name, rows()) for name in names or ("orders", "secret")]


def batch(producer_id: int = -1) -> bytes:
    """One record; of a transaction where there is a producer."""
    epoch, sequence = (-1, -1) if producer_id < 0 else (0, 0)
    return bytes(
        encode_batch(
            [Record(None, b"v", (), 1)], producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence,
            transactional=producer_id >= 0,
        )
    )  # fmt: skip


def produce(transactional_id: str | None = None, producer_id: int = -1) -> data.ProduceRequest:
    rows = _topics(data.TopicProduceData, lambda: [data.PartitionProduceData(0, batch(producer_id))])
    return data.ProduceRequest(transactional_id, -1, 5_000, rows)


def fetch(replica: int = -1) -> data.FetchRequest:
    rows = _topics(data.FetchTopic, lambda: [data.FetchPartition(0, 0, 1 << 20)], "orders", "secret", "fresh")
    return data.FetchRequest(replica, 0, 0, topics=rows)


def _config(kind: type[Any]) -> list[Any]:
    pairs = [(2, "orders"), (2, "secret"), (4, "1"), (8, "1"), (16, "m"), (32, "app"), (32, "other")]
    return [kind(code, name, []) for code, name in pairs]


def _of_names(response: Any) -> list[str]:
    return sorted(row.name for row in response.topics if not row.error_code and not row.name.startswith("__"))


def _of_offsets(response: Any) -> list[str]:
    return sorted(topic.name or str(topic.topic_id) for group in response.groups for topic in group.topics)


CASES = (
    Case("Produce", lambda user, ids: produce()),
    Case("Produce in a transaction", lambda user, ids: produce("tx", 9_999)),
    Case("Produce in a transaction without an id", lambda user, ids: produce(None, 9_999)),
    Case("Produce with an id alone", lambda user, ids: produce("tx")),
    Case("Fetch", lambda user, ids: fetch()),
    Case("Fetch by id", lambda user, ids: data.FetchRequest(topics=[
        data.FetchTopic("", [data.FetchPartition(0, 0, 1 << 20)], ids[name]) for name in ("orders", "secret")
    ])),
    Case("ListOffsets", lambda user, ids: offsets.ListOffsetsRequest(topics=_topics(
        offsets.ListOffsetsTopic, lambda: [offsets.ListOffsetsPartition(0, -1)], "orders", "secret", "fresh", "none"
    ))),
    Case("OffsetForLeaderEpoch", lambda user, ids: offsets.OffsetForLeaderEpochRequest(_topics(
        offsets.OffsetForLeaderTopic, lambda: [offsets.OffsetForLeaderPartition(0, -1, 0)]
    ), -1)),
    Case("DeleteRecords", lambda user, ids: offsets.DeleteRecordsRequest(_topics(
        offsets.DeleteRecordsTopic, lambda: [offsets.DeleteRecordsPartition(0, 0)]
    ), 5_000)),
    Case("Metadata of all topics", lambda user, ids: cluster.MetadataRequest(None, False), _of_names),
    Case("Metadata", lambda user, ids: cluster.MetadataRequest(
        [cluster.MetadataRequestTopic(name) for name in ("orders", "secret", "fresh", "none")], False
    )),
    Case("Metadata by id", lambda user, ids: cluster.MetadataRequest(
        [cluster.MetadataRequestTopic(None, ids[name]) for name in ("orders", "secret")], False
    )),
    Case("Metadata with operations", lambda user, ids: cluster.MetadataRequest(
        [cluster.MetadataRequestTopic(name) for name in ("orders", "secret", "fresh", "none")], False, False, True
    )),
    Case("Metadata that creates", lambda user, ids: cluster.MetadataRequest(
        [cluster.MetadataRequestTopic(f"auto-{user}"), cluster.MetadataRequestTopic(f"other-{user}")], True
    )),
    Case("DescribeCluster", lambda user, ids: cluster.DescribeClusterRequest(True)),
    Case("DescribeTopicPartitions", lambda user, ids: cluster.DescribeTopicPartitionsRequest(
        [cluster.TopicRequest(name) for name in ("orders", "secret", "fresh", "none")]
    )),
    Case("CreateTopics", lambda user, ids: topics.CreateTopicsRequest(
        [topics.CreatableTopic(name, 1, 1) for name in ("fresh", "none", "orders")], 5_000, True
    )),
    Case("DeleteTopics", lambda user, ids: topics.DeleteTopicsRequest(
        [], 5_000, [topics.DeleteTopicState(name) for name in ("fresh", "none")]
    )),
    Case("CreatePartitions", lambda user, ids: topics.CreatePartitionsRequest(
        [topics.CreatePartitionsTopic(name, 1) for name in ("orders", "secret", "none")], 5_000, True
    )),
    Case("DescribeConfigs", lambda user, ids: configs.DescribeConfigsRequest(_config(configs.DescribeConfigsResource))),
    Case("AlterConfigs", lambda user, ids: configs.AlterConfigsRequest(
        [configs.AlterConfigsResource(code, name) for code, name in ((2, "orders"), (2, "secret"), (4, "1"))], True
    )),
    Case("IncrementalAlterConfigs", lambda user, ids: configs.IncrementalAlterConfigsRequest(
        _config(configs.IncrementalAlterConfigsAlterConfigsResource), True
    )),
    Case("ListConfigResources", lambda user, ids: configs.ListConfigResourcesRequest()),
    Case("FindCoordinator of groups", lambda user, ids: groups.FindCoordinatorRequest(
        key_type=0, coordinator_keys=["app", "other"]
    )),
    Case("FindCoordinator of transactions", lambda user, ids: groups.FindCoordinatorRequest(
        key_type=1, coordinator_keys=["tx", "other-tx"]
    )),
    Case("FindCoordinator of share groups", lambda user, ids: groups.FindCoordinatorRequest(
        key_type=2, coordinator_keys=[f"share:{_text(ids['orders'])}:0"]
    )),
    Case("JoinGroup", lambda user, ids: groups.JoinGroupRequest(
        "gone", 6_000, "", "consumer", [groups.JoinGroupRequestProtocol("range", b"")], 6_000
    )),
    Case("JoinGroup of another", lambda user, ids: groups.JoinGroupRequest(
        "other", 6_000, "", "consumer", [groups.JoinGroupRequestProtocol("range", b"")], 6_000
    )),
    Case("SyncGroup", lambda user, ids: groups.SyncGroupRequest(
        "app", 1, "m", protocol_type="consumer", protocol_name="range"
    )),
    Case("Heartbeat", lambda user, ids: groups.HeartbeatRequest("app", 1, "m")),
    Case("LeaveGroup", lambda user, ids: groups.LeaveGroupRequest("app", members=[groups.MemberIdentity("m")])),
    Case("OffsetCommit", lambda user, ids: groups.OffsetCommitRequest("app", topics=_topics(
        groups.OffsetCommitRequestTopic, lambda: [groups.OffsetCommitRequestPartition(0, 0)]
    ))),
    Case("OffsetFetch", lambda user, ids: groups.OffsetFetchRequest(groups=[
        groups.OffsetFetchRequestGroup(group, _topics(groups.OffsetFetchRequestTopics, lambda: [0]))
        for group in ("app", "other")
    ])),
    Case("OffsetFetch of all", lambda user, ids: groups.OffsetFetchRequest(
        groups=[groups.OffsetFetchRequestGroup("app")]
    ), _of_offsets),
    Case("OffsetDelete", lambda user, ids: groups.OffsetDeleteRequest("app", _topics(
        groups.OffsetDeleteRequestTopic, lambda: [groups.OffsetDeleteRequestPartition(7)]
    ))),
    Case("DescribeGroups", lambda user, ids: groups.DescribeGroupsRequest(["app", "other"], True)),
    Case("ListGroups", lambda user, ids: groups.ListGroupsRequest(),
         lambda response: sorted(row.group_id for row in response.groups)),
    Case("DeleteGroups", lambda user, ids: groups.DeleteGroupsRequest(["gone", "none"])),
    Case("ConsumerGroupHeartbeat", lambda user, ids: _member("gone", "orders", "secret")),
    Case("ConsumerGroupHeartbeat of one topic", lambda user, ids: _member("gone", "orders")),
    Case("StreamsGroupHeartbeat", lambda user, ids: _application("orders", "secret"),
         lambda response: response.error_code in CODES and response.error_message),
    Case("StreamsGroupHeartbeat of one topic", lambda user, ids: _application("orders"),
         lambda response: response.error_code in CODES and response.error_message),
    Case("ConsumerGroupDescribe", lambda user, ids: consumer_groups.ConsumerGroupDescribeRequest(
        ["live", "plain", "other"], True
    )),
    Case("ShareGroupHeartbeat", lambda user, ids: _sharer("gone", "orders", "secret")),
    Case("ShareGroupHeartbeat of one topic", lambda user, ids: _sharer("gone", "orders")),
    Case("ShareGroupDescribe", lambda user, ids: share_groups.ShareGroupDescribeRequest(
        ["share", "share-plain", "other"], True
    )),
    Case("ShareFetch", lambda user, ids: share_delivery.ShareFetchRequest(
        "share", MEMBER["share"], 0, 0, 0, 1 << 20, 10, 10, topics=[
            share_delivery.FetchTopic(ids[name], [share_delivery.FetchPartition(0)]) for name in ("orders", "secret")
        ],
    )),
    Case("ShareAcknowledge", lambda user, ids: share_delivery.ShareAcknowledgeRequest(
        "share", MEMBER["share"], 99, topics=[
            share_delivery.AcknowledgeTopic(ids[name], [share_delivery.AcknowledgePartition(0)]) for name in ("orders",)
        ],
    )),
    Case("DescribeShareGroupOffsets", lambda user, ids: share_offsets.DescribeShareGroupOffsetsRequest([
        share_offsets.DescribeShareGroupOffsetsRequestGroup(
            group, _topics(share_offsets.DescribeShareGroupOffsetsRequestTopic, lambda: [0])
        )
        for group in ("share", "other")
    ])),
    Case("AlterShareGroupOffsets", lambda user, ids: share_offsets.AlterShareGroupOffsetsRequest("gone", _topics(
        share_offsets.AlterShareGroupOffsetsRequestTopic,
        lambda: [share_offsets.AlterShareGroupOffsetsRequestPartition(7, 0)],
    ))),
    Case("DeleteShareGroupOffsets", lambda user, ids: share_offsets.DeleteShareGroupOffsetsRequest(
        "gone", [share_offsets.DeleteShareGroupOffsetsRequestTopic(name) for name in ("orders", "secret")]
    )),
    Case("ReadShareGroupState", lambda user, ids: share_state.ReadShareGroupStateRequest(
        "share", [share_state.ReadStateData(ids["orders"], [share_state.ReadStateDataPartitionData(0, 0)])]
    )),
    Case("ReadShareGroupStateSummary", lambda user, ids: share_state.ReadShareGroupStateSummaryRequest("share", [
        share_state.ReadStateSummaryData(ids["orders"], [share_state.ReadStateSummaryDataPartitionData(0, 0)])
    ])),
    Case("ListTransactions", lambda user, ids: transactions.ListTransactionsRequest(),
         lambda response: sorted(row.transactional_id for row in response.transaction_states)),
    Case("DescribeTransactions", lambda user, ids: transactions.DescribeTransactionsRequest(["tx", "other-tx"]),
         lambda response: sorted(t.topic for row in response.transaction_states for t in row.topics)),
    Case("DescribeProducers", lambda user, ids: transactions.DescribeProducersRequest(
        _topics(transactions.TopicRequest, lambda: [0], "orders", "secret", "none")
    )),
    Case("AddPartitionsToTxn", lambda user, ids: _add("tx", 9_999, 0, "orders", "secret")),
    Case("AddPartitionsToTxn of one topic", lambda user, ids: _add("tx", 9_999, 0, "orders")),
    Case("AddOffsetsToTxn", lambda user, ids: transactions.AddOffsetsToTxnRequest("tx", 9_999, 0, "app")),
    Case("EndTxn", lambda user, ids: transactions.EndTxnRequest("tx", 9_999, 0, True)),
    Case("TxnOffsetCommit", lambda user, ids: transactions.TxnOffsetCommitRequest("tx", "app", 9_999, 0, topics=_topics(
        transactions.TxnOffsetCommitRequestTopic, lambda: [transactions.TxnOffsetCommitRequestPartition(0, 0)]
    ))),
    Case("WriteTxnMarkers", lambda user, ids: transactions.WriteTxnMarkersRequest([transactions.WritableTxnMarker(
        9_999, 0, False, [transactions.WritableTxnMarkerTopic("orders", [7])]
    )])),
    Case("InitProducerId", lambda user, ids: producers.InitProducerIdRequest(None, 60_000)),
    Case("InitProducerId of an id", lambda user, ids: producers.InitProducerIdRequest("tx2", 60_000)),
    Case("InitProducerId of another", lambda user, ids: producers.InitProducerIdRequest("other-tx", 60_000)),
    Case("DescribeAcls", lambda user, ids: access.DescribeAclsRequest(2, "none", 3, None, None, 1, 1)),
    Case("CreateAcls", lambda user, ids: access.CreateAclsRequest(
        [access.AclCreation(2, "none", 3, "User:none", "*", 3, 2)]
    )),
    Case("DeleteAcls", lambda user, ids: access.DeleteAclsRequest(
        [access.DeleteAclsFilter(2, "nothing", 3, None, None, 1, 1)]
    )),
    Case("DescribeClientQuotas", lambda user, ids: access.DescribeClientQuotasRequest()),
    Case("AlterClientQuotas", lambda user, ids: access.AlterClientQuotasRequest([
        access.AlterClientQuotasRequestEntryData(
            [access.AlterClientQuotasRequestEntryDataEntityData("user", "ann")],
            [access.OpData("producer_byte_rate", 1.0)],
        )
    ], True)),
    Case("DescribeUserScramCredentials", lambda user, ids: access.DescribeUserScramCredentialsRequest(
        [access.UserName("nobody")]
    )),
    Case("AlterUserScramCredentials", lambda user, ids: access.AlterUserScramCredentialsRequest(
        [access.ScramCredentialDeletion("nobody", 1)]
    )),
    Case("DescribeLogDirs", lambda user, ids: placement.DescribeLogDirsRequest(),
         lambda response: bool(response.results)),
    Case("AlterReplicaLogDirs", lambda user, ids: placement.AlterReplicaLogDirsRequest(
        [placement.AlterReplicaLogDir("/nowhere", [placement.AlterReplicaLogDirTopic("orders", [0])])]
    )),
    Case("ElectLeaders", lambda user, ids: placement.ElectLeadersRequest(
        0, [placement.TopicPartitions("orders", [0])], 5_000
    )),
    Case("AlterPartitionReassignments", lambda user, ids: placement.AlterPartitionReassignmentsRequest(
        5_000, topics=[placement.ReassignableTopic("orders", [placement.ReassignablePartition(0, None)])]
    )),
    Case("ListPartitionReassignments", lambda user, ids: placement.ListPartitionReassignmentsRequest()),
    Case("UpdateFeatures", lambda user, ids: quorum.UpdateFeaturesRequest(
        5_000, [quorum.FeatureUpdateKey("nothing", 1)], True
    )),
    Case("DescribeQuorum", lambda user, ids: quorum.DescribeQuorumRequest(
        [quorum.TopicData("__cluster_metadata", [quorum.PartitionData(0)])]
    )),
    Case("UnregisterBroker", lambda user, ids: quorum.UnregisterBrokerRequest(99)),
    Case("DescribeDelegationToken", lambda user, ids: access.DescribeDelegationTokenRequest(),
         lambda response: [row.principal_name for row in response.tokens]),
    Case("DescribeDelegationToken of its owner", lambda user, ids: access.DescribeDelegationTokenRequest(
        [access.DescribeDelegationTokenOwner("User", OWNER)]
    ), lambda response: [row.principal_name for row in response.tokens]),
    Case("CreateDelegationToken for another", lambda user, ids: access.CreateDelegationTokenRequest(
        "User", OWNER, [], -1
    )),
    Case("CreateDelegationToken for a third", lambda user, ids: access.CreateDelegationTokenRequest(
        "User", "third", [], -1
    )),
    Case("CreateDelegationToken", lambda user, ids: access.CreateDelegationTokenRequest(None, None, [], -1)),
)  # fmt: skip


def _application(*names: str) -> streams_groups.StreamsGroupHeartbeatRequest:
    """Of a member that nobody knows."""
    topology = streams_groups.Topology(0, [streams_groups.Subtopology("0", list(names))])
    return streams_groups.StreamsGroupHeartbeatRequest("gone", MEMBER["gone"], 5, topology=topology)


def _member(group: str, *names: str) -> consumer_groups.ConsumerGroupHeartbeatRequest:
    """Of a member that is not there: nobody joins."""
    return consumer_groups.ConsumerGroupHeartbeatRequest(
        group, MEMBER[group], 7, rebalance_timeout_ms=60_000, subscribed_topic_names=list(names), topic_partitions=[]
    )


def _sharer(group: str, *names: str) -> share_groups.ShareGroupHeartbeatRequest:
    return share_groups.ShareGroupHeartbeatRequest(group, MEMBER[group], 7, subscribed_topic_names=list(names))


def _text(topic_id: UUID) -> str:
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def table(ask: Ask, names: dict[UUID, str]) -> Iterator[str]:
    """For each case the outcomes, and who has them."""
    ids = {name: topic_id for topic_id, name in names.items()}
    for case in CASES:
        yield case.name
        found: dict[str, list[str]] = {}
        for user in USERS:
            said = outcome(ask(user, case.request(user, ids)), names, case.shows)
            found.setdefault(said.replace(user, "USER") if user != "none" else said, []).append(user)
        most = max(found.values(), key=len)
        for said, users in sorted(found.items(), key=lambda row: row[1] is most):
            yield f"    {said}"
            yield f"        {'the others' if users is most else ' '.join(users)}"
