"""What a client that is refused has to ask for: the error names the resource, and the command that adds the ACL. Pure.

A broker says that a topic, a group, the cluster or a transactional id is not for this user. Which operation that takes
follows from the request, as Kafka's brokers judge it. Where an ACL of the topic or of the cluster would do, as for new
topics, that of the topic is named. Most operations allow Describe as well, which other requests of a call may need.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final, TypeVar

from logkernel.errors import (
    ClusterAuthorizationFailed,
    DelegationTokenAuthorizationFailed,
    GroupAuthorizationFailed,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    meaning,
)

E = TypeVar("E")

OPTIONS: Final[Mapping[type[KafkaError], str]] = {
    TopicAuthorizationFailed: "topic",
    GroupAuthorizationFailed: "group",
    ClusterAuthorizationFailed: "cluster",
    TransactionalIdAuthorizationFailed: "transactional-id",
    DelegationTokenAuthorizationFailed: "user-principal",
}
"""Error → the option of `logkernel cluster acl`."""
OPERATIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "AddOffsetsToTxn": {"group": "read", "transactional-id": "write"},
    "AddPartitionsToTxn": {"topic": "write", "transactional-id": "write"},
    "AlterClientQuotas": {"cluster": "alter-configs"},
    "AlterPartitionReassignments": {"cluster": "alter"},
    "AlterReplicaLogDirs": {"cluster": "alter"},
    "AlterShareGroupOffsets": {"group": "read", "topic": "read"},
    "AlterUserScramCredentials": {"cluster": "alter"},
    "ConsumerGroupDescribe": {"group": "describe", "topic": "describe"},
    "ConsumerGroupHeartbeat": {"group": "read", "topic": "describe"},
    "CreateAcls": {"cluster": "alter"},
    "CreateDelegationToken": {"user-principal": "create-tokens"},
    "CreatePartitions": {"topic": "alter"},
    "CreateTopics": {"topic": "create", "cluster": "create"},
    "DeleteAcls": {"cluster": "alter"},
    "DeleteGroups": {"group": "delete"},
    "DeleteRecords": {"topic": "delete"},
    "DeleteShareGroupOffsets": {"group": "delete", "topic": "read"},
    "DeleteTopics": {"topic": "delete"},
    "DescribeAcls": {"cluster": "describe"},
    "DescribeClientQuotas": {"cluster": "describe-configs"},
    "DescribeConfigs": {"topic": "describe-configs", "cluster": "describe-configs", "group": "describe-configs"},
    "DescribeGroups": {"group": "describe"},
    "DescribeLogDirs": {"cluster": "describe"},
    "DescribeProducers": {"topic": "read"},
    "DescribeQuorum": {"cluster": "describe"},
    "DescribeShareGroupOffsets": {"group": "describe", "topic": "describe"},
    "DescribeTopicPartitions": {"topic": "describe"},
    "DescribeTransactions": {"transactional-id": "describe"},
    "DescribeUserScramCredentials": {"cluster": "describe"},
    "ElectLeaders": {"cluster": "alter"},
    "EndTxn": {"transactional-id": "write"},
    "Fetch": {"topic": "read"},
    "FindCoordinator": {"group": "read", "transactional-id": "write"},
    "Heartbeat": {"group": "read"},
    "IncrementalAlterConfigs": {"topic": "alter-configs", "cluster": "alter-configs", "group": "alter-configs"},
    "InitProducerId": {"cluster": "idempotent-write", "transactional-id": "write"},
    "JoinGroup": {"group": "read"},
    "LeaveGroup": {"group": "read"},
    "ListConfigResources": {"cluster": "describe-configs"},
    "ListOffsets": {"topic": "describe"},
    "ListPartitionReassignments": {"cluster": "describe"},
    "Metadata": {"topic": "describe"},
    "OffsetCommit": {"group": "read", "topic": "read"},
    "OffsetDelete": {"group": "delete", "topic": "read"},
    "OffsetFetch": {"group": "describe", "topic": "describe"},
    "OffsetForLeaderEpoch": {"topic": "describe"},
    "Produce": {"topic": "write", "transactional-id": "write"},
    "ShareAcknowledge": {"group": "read", "topic": "read"},
    "ShareFetch": {"group": "read", "topic": "read"},
    "ShareGroupDescribe": {"group": "describe", "topic": "describe"},
    "ShareGroupHeartbeat": {"group": "read", "topic": "describe"},
    "StreamsGroupDescribe": {"group": "describe", "topic": "describe"},
    "StreamsGroupHeartbeat": {"group": "read", "topic": "describe"},
    "SyncGroup": {"group": "read"},
    "TxnOffsetCommit": {"group": "read", "topic": "read", "transactional-id": "write"},
    "UnregisterBroker": {"cluster": "alter"},
    "UpdateFeatures": {"cluster": "alter"},
    "WriteTxnMarkers": {"cluster": "alter"},
}
"""Request → the operation that it needs on each kind of resource."""
OF_TOPICS_UNTOLD: Final = frozenset(
    {
        "AddPartitionsToTxn",
        "ConsumerGroupDescribe",
        "ConsumerGroupHeartbeat",
        "ShareGroupDescribe",
        "ShareGroupHeartbeat",
        "StreamsGroupDescribe",
        "StreamsGroupHeartbeat",
        "TxnOffsetCommit",
    }
)
"""Requests about several topics, or about a group with topics, whose error does not say which of these it is for."""
PLACEHOLDER: Final = "NAME"
ROLES: Final[Mapping[tuple[str, str], str]] = {("InitProducerId", "cluster"): f"--producer --topic {PLACEHOLDER}"}
"""(request, kind) → the options that allow it and what is asked for next: who may write to a topic may be idempotent
(KIP-679), and would be refused the topic after `idempotent-write`."""
OWNER: Final = "User:OWNER"
"""Of a delegation token, where an error does not say who it is."""


def command(operation: str, kind: str, name: str = "") -> str:
    """The command that allows it; `kind` is an option of `logkernel cluster acl`. "" is a name that is not known."""
    words = ["--operation", operation, f"--{kind}"]
    if kind != "cluster":
        words.append(shlex.quote(name or (OWNER if kind == "user-principal" else PLACEHOLDER)))
    return _allowing(" ".join(words))


def _allowing(options: str) -> str:
    """Who is allowed is for the broker to say: rules make a principal of a certificate, and a token has an owner."""
    return f"logkernel cluster acl --add --allow-principal User:NAME {options}"


def explained(error: E, request: str, name: object = None) -> E:
    """Return the error, whose text names now what would allow it, if it says that something is not authorized.

    `request` is one of `OPERATIONS`; `name` the resource's, where `KafkaError.about` is not it; "": it is not known.
    What the broker says is replaced: Kafka's says no more than "Authorization failed."
    """
    if not isinstance(error, KafkaError):
        return error
    kind = OPTIONS.get(type(error), "")
    operation = OPERATIONS.get(request, {}).get(kind)
    if operation is None:
        return error
    resource = _name(error.about if name is None else name)
    if kind == "topic" and request in OF_TOPICS_UNTOLD:
        resource = ""
    said = meaning(type(error), "" if kind == "cluster" else resource or error.about)
    role = ROLES.get((request, kind))
    error.args = (f"{said}: {command(operation, kind, resource) if role is None else _allowing(role)}",)
    return error


def request_name(request: object) -> str:
    """As in `OPERATIONS`, of a versionless request."""
    return type(request).__name__.removesuffix("Request")


def all_explained(error: E, request: str) -> E:
    """As `explained`, with each of `KafkaError.results`, whose keys name the resources."""
    for each in (getattr(error, "results", None) or {}).values():
        explained(each, request)
    return explained(error, request)


def _name(about: Any) -> str:
    """Of a topic for its partition; of a resource with settings."""
    return str(getattr(about, "topic", None) or getattr(about, "name", None) or about)
