"""The record layouts of Kafka's internal topics (Kafka 4.3's coordinator record schemas), in the language of `schema`.

A key is its type as i16, then the key's fields in their inflexible form; a value its version as i16, then its fields.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, Final

from attrs import frozen

from logkernel.errors import CorruptMessage
from logkernel.vocabulary import Record

from .schema import Message

_GROUP: Final = "groupId:string"
_MEMBER: Final = "groupId:string memberId:string"
_TOPIC_PARTITIONS: Final = "topicId:uuid partitions:[i32]"
_EPOCH_PARTITIONS: Final = "topicId:uuid partitions:[i32] assignmentEpochs:[i32]?@0"
_TASKS: Final = "subtopologyId:string partitions:[i32]"
_EPOCH_TASKS: Final = "subtopologyId:string partitions:[i32] assignmentEpochs:[i32]?@0"
_PAIR: Final = "key:string value:string"
_TOPIC_INFO: Final = f"name:string partitions:i32 replicationFactor:i16 topicConfigs:[{_PAIR}]"
_SHARE_KEY: Final = "groupId:string topicId:uuid partition:i32"
_STATE_BATCHES: Final = "stateBatches:[firstOffset:i64 lastOffset:i64 deliveryState:i8 deliveryCount:i16]"


@frozen
class Kind:
    key: Message
    value: Message


def _kind(key: str, value: str, highest: int = 0, flexible: int = 0) -> Kind:
    return Kind(Message(key), Message(value, highest, flexible))


_OFFSET: Final = _kind(
    "group:string topic:string partition:i32",
    "offset:i64 leaderEpoch:i32/3 metadata:string commitTimestamp:i64 expireTimestamp:i64/1-1 topicId:uuid/4@0",
    highest=4,
    flexible=4,
)
_CLASSIC_GROUP: Final = _kind(
    "group:string",
    "protocolType:string generation:i32 protocol:string? leader:string? currentStateTimestamp:i64/2"
    " members:[memberId:string groupInstanceId:string?/3 clientId:string clientHost:string rebalanceTimeout:i32/1"
    " sessionTimeout:i32 subscription:bytes assignment:bytes]",
    highest=4,
    flexible=4,
)

CONSUMER_OFFSETS: Final[Mapping[int, Kind]] = {
    0: _OFFSET,
    1: _OFFSET,
    2: _CLASSIC_GROUP,
    3: _kind(_GROUP, "epoch:i32 metadataHash:i64@0"),
    4: _kind(
        _GROUP,
        "topics:[topicId:uuid topicName:string numPartitions:i32 partitionMetadata:[partition:i32 racks:[string]]]",
    ),
    5: _kind(
        _MEMBER,
        "instanceId:string? rackId:string? clientId:string clientHost:string subscribedTopicNames:[string]"
        " subscribedTopicRegex:string? rebalanceTimeoutMs:i32 serverAssignor:string?"
        " classicMemberMetadata:{sessionTimeoutMs:i32 supportedProtocols:[name:string metadata:bytes]}?@0",
    ),
    6: _kind(_GROUP, "assignmentEpoch:i32 assignmentTimestamp:i64@0"),
    7: _kind(_MEMBER, f"topicPartitions:[{_TOPIC_PARTITIONS}]"),
    8: _kind(
        _MEMBER,
        f"memberEpoch:i32 previousMemberEpoch:i32 state:i8 assignedPartitions:[{_EPOCH_PARTITIONS}]"
        f" partitionsPendingRevocation:[{_EPOCH_PARTITIONS}]",
    ),
    10: _kind(_MEMBER, "rackId:string? clientId:string clientHost:string subscribedTopicNames:[string]"),
    11: _kind(_GROUP, "epoch:i32 metadataHash:i64"),
    12: _kind(_GROUP, "assignmentEpoch:i32 assignmentTimestamp:i64@0"),
    13: _kind(_MEMBER, f"topicPartitions:[{_TOPIC_PARTITIONS}]"),
    14: _kind(_MEMBER, f"memberEpoch:i32 previousMemberEpoch:i32 state:i8 assignedPartitions:[{_TOPIC_PARTITIONS}]"),
    15: _kind(
        _GROUP,
        "initializingTopics:[topicId:uuid topicName:string partitions:[i32]]"
        " initializedTopics:[topicId:uuid topicName:string partitions:[i32]]"
        " deletingTopics:[topicId:uuid topicName:string]",
    ),
    16: _kind("groupId:string regularExpression:string", "topics:[string] version:i64 timestamp:i64"),
    17: _kind(
        _GROUP,
        f"epoch:i32 metadataHash:i64 validatedTopologyEpoch:i32@0 lastAssignmentConfigs:[{_PAIR}]?@1",
    ),
    19: _kind(
        _MEMBER,
        "instanceId:string? rackId:string? clientId:string clientHost:string rebalanceTimeoutMs:i32"
        " topologyEpoch:i32 processId:string userEndpoint:{host:string port:u16}?"
        f" clientTags:[{_PAIR}]",
    ),
    20: _kind(_GROUP, "assignmentEpoch:i32 assignmentTimestamp:i64@0"),
    21: _kind(_MEMBER, f"activeTasks:[{_TASKS}] standbyTasks:[{_TASKS}] warmupTasks:[{_TASKS}]"),
    22: _kind(
        _MEMBER,
        "memberEpoch:i32 previousMemberEpoch:i32 state:i8 "
        + " ".join(
            f"{name}:[{_EPOCH_TASKS}]"
            for name in (
                "activeTasks",
                "standbyTasks",
                "warmupTasks",
                "activeTasksPendingRevocation",
                "standbyTasksPendingRevocation",
                "warmupTasksPendingRevocation",
            )
        ),
    ),
    23: _kind(
        _GROUP,
        "epoch:i32 subtopologies:[subtopologyId:string sourceTopics:[string] sourceTopicRegex:[string]"
        f" stateChangelogTopics:[{_TOPIC_INFO}] repartitionSinkTopics:[string]"
        f" repartitionSourceTopics:[{_TOPIC_INFO}]"
        " copartitionGroups:[sourceTopics:[i16] sourceTopicRegex:[i16] repartitionSourceTopics:[i16]]]",
    ),
}
"""By the key's type."""

TRANSACTION_STATE: Final[Mapping[int, Kind]] = {
    0: _kind(
        "transactionalId:string",
        "producerId:i64 previousProducerId:i64/1@0 nextProducerId:i64/1@1 producerEpoch:i16 nextProducerEpoch:i16/1@3"
        " transactionTimeoutMs:i32 transactionStatus:i8 transactionPartitions:[topic:string partitionIds:[i32]]?"
        " transactionLastUpdateTimestampMs:i64 transactionStartTimestampMs:i64 clientTransactionVersion:i16/1@2",
        highest=1,
        flexible=1,
    ),
}
SHARE_GROUP_STATE: Final[Mapping[int, Kind]] = {
    0: _kind(
        _SHARE_KEY,
        "snapshotEpoch:i32 stateEpoch:i32 leaderEpoch:i32 startOffset:i64 deliveryCompleteCount:i32@0"
        f" createTimestamp:i64 writeTimestamp:i64 {_STATE_BATCHES}",
    ),
    1: _kind(
        _SHARE_KEY, f"snapshotEpoch:i32 leaderEpoch:i32 startOffset:i64 deliveryCompleteCount:i32@0 {_STATE_BATCHES}"
    ),
}

_SUBSCRIPTION: Final = Message(
    "topics:[string] userData:bytes? ownedPartitions:[topic:string partitions:[i32]]/1 generationId:i32/2"
    " rackId:string?/3",
    highest=3,
)
_ASSIGNMENT: Final = Message("assignedPartitions:[topic:string partitions:[i32]] userData:bytes?", highest=3)


@frozen
class Decoder:
    """`contracts.RecordDecoder` by a table of kinds."""

    topic: str
    kinds: Mapping[int, Kind]

    def decode(self, record: Record) -> tuple[Any, Any]:
        number, rest = _version(record.key)
        kind = self.kinds.get(number)
        if kind is None:
            raise CorruptMessage(f"{self.topic}: records of type {number} are not known")
        key = {"type": str(number), "data": kind.key.read(rest, 0)}
        if record.value is None:
            return key, None
        version, rest = _version(record.value)
        data = kind.value.read(rest, version)
        if kind is _CLASSIC_GROUP and data["protocolType"] == "consumer":
            for member in data["members"]:
                member["subscription"] = _protocol(_SUBSCRIPTION, member["subscription"])
                member["assignment"] = _protocol(_ASSIGNMENT, member["assignment"])
        return key, {"version": str(version), "data": data}


def _version(data: bytes | None) -> tuple[int, bytes]:
    if data is None or len(data) < 2:
        raise CorruptMessage(f"{len(data or b'')} bytes hold no version")
    return int.from_bytes(data[:2], "big", signed=True), data[2:]


def _protocol(message: Message, encoded: str) -> Any:
    """What a consumer wrote for the others of its group; its bytes as they are where they are something else."""
    data = base64.b64decode(encoded)
    try:
        version, rest = _version(data)
        return message.read(rest, min(version, message.highest))
    except CorruptMessage:
        return encoded


TOPICS: Final[Mapping[str, Decoder]] = {
    "__consumer_offsets": Decoder("__consumer_offsets", CONSUMER_OFFSETS),
    "__transaction_state": Decoder("__transaction_state", TRANSACTION_STATE),
    "__share_group_state": Decoder("__share_group_state", SHARE_GROUP_STATE),
}
