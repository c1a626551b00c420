"""Kafka's error codes as exceptions. Names and codes are those of the protocol guide.

Each class's docstring says what the error means to a caller, as *problem; remedy*. `error_for` uses it as the text
where a broker answers with a code only.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final


class LogkernelError(Exception):
    """Base of all errors that logkernel raises on purpose."""


class SslAuthenticationException(LogkernelError):
    """TLS failed: the peer is not who it must be, does not trust us, or does not speak TLS. Trying again does not
    help; check certificates and security.protocol."""


class ConfigError(LogkernelError):
    """A setting or argument is unknown, unreadable or out of bounds; the text names file, line, value and remedy."""


class PluginError(LogkernelError):
    """A plugin is missing, not allowed, or broke its contract; the text names its distribution."""


class DataDirectoryLocked(LogkernelError):
    """Another process owns the data directory."""


class CannotListen(LogkernelError, OSError):
    """A listener cannot bind its address; the text names a remedy."""


class RewriteStopped(LogkernelError):
    """A log was closed, truncated or deleted during its compaction."""


class KafkaError(LogkernelError):
    """An error with a code of the Kafka protocol. `retriable` says whether the same request may succeed later."""

    code: ClassVar[int] = -1
    retriable: ClassVar[bool] = False
    about: object = ""
    """The resource that it is about, such as a topic's name or a `TopicPartition`; "": it is not known here."""
    results: Mapping[Any, Any] | None = None
    """After an operation on several things, of which this is the first failure: the value or exception of each."""


class UnknownServerError(KafkaError):
    """The broker failed in a way the protocol has no code for; look into the broker's log."""

    code = -1


class OffsetOutOfRange(KafkaError):
    """The offset lies outside of the partition's log; use one between its start and its end."""

    code = 1


class CorruptMessage(KafkaError):
    """A batch has a bad checksum or structure; send it again, or run `logkernel check` on the data directory."""

    code = 2
    retriable = True


class UnknownTopicOrPartition(KafkaError):
    """There is no such topic or partition; check the name, or create the topic."""

    code = 3
    retriable = True


class InvalidFetchSize(KafkaError):
    """The size of a fetch is invalid; give one of at least 1 byte."""

    code = 4


class LeaderNotAvailable(KafkaError):
    """The partition has no leader at the moment; try again."""

    code = 5
    retriable = True


class NotLeaderOrFollower(KafkaError):
    """The broker is not the partition's leader; look up the leader and try again."""

    code = 6
    retriable = True


class RequestTimedOut(KafkaError):
    """The request did not complete within its timeout; try again, or raise the timeout."""

    code = 7
    retriable = True


class BrokerNotAvailable(KafkaError):
    """The broker is not available; check that it runs."""

    code = 8


class ReplicaNotAvailable(KafkaError):
    """The broker has no replica of the partition yet; try again."""

    code = 9
    retriable = True


class MessageTooLarge(KafkaError):
    """A batch is larger than the topic's max.message.bytes; send smaller batches, or raise the setting."""

    code = 10


class StaleControllerEpoch(KafkaError):
    """The request comes from an old controller; look up the controller."""

    code = 11


class OffsetMetadataTooLarge(KafkaError):
    """The metadata of an offset is longer than offset.metadata.max.bytes; shorten it."""

    code = 12


class NetworkException(KafkaError):
    """The connection broke before the answer came; the request may have been carried out."""

    code = 13
    retriable = True


class CoordinatorLoadInProgress(KafkaError):
    """The coordinator is still reading its log; try again."""

    code = 14
    retriable = True


class CoordinatorNotAvailable(KafkaError):
    """The coordinator is not available; try again."""

    code = 15
    retriable = True


class NotCoordinator(KafkaError):
    """The broker is not the coordinator; look up the coordinator and try again."""

    code = 16
    retriable = True


class InvalidTopicException(KafkaError):
    """The topic's name is invalid, or the topic is internal; use another name."""

    code = 17


class RecordListTooLarge(KafkaError):
    """A batch is larger than a segment; send smaller batches, or raise segment.bytes."""

    code = 18


class NotEnoughReplicas(KafkaError):
    """Fewer replicas are in sync than min.insync.replicas; wait until more have caught up."""

    code = 19
    retriable = True


class NotEnoughReplicasAfterAppend(KafkaError):
    """The records were appended, but fewer replicas are in sync than min.insync.replicas."""

    code = 20
    retriable = True


class InvalidRequiredAcks(KafkaError):
    """The number of acknowledgements is invalid; use all (-1), 0 or 1."""

    code = 21


class IllegalGeneration(KafkaError):
    """The member has an old generation of its group; rejoin the group."""

    code = 22


class InconsistentGroupProtocol(KafkaError):
    """The group has another assignor or protocol type; configure one that all members have, or take another group."""

    code = 23


class InvalidGroupId(KafkaError):
    """The group id is invalid; give one that is not empty."""

    code = 24


class UnknownMemberId(KafkaError):
    """The group has no such member; check its id, or rejoin the group."""

    code = 25


class InvalidSessionTimeout(KafkaError):
    """The session timeout lies outside of the broker's bounds (group.min/max.session.timeout.ms)."""

    code = 26


class RebalanceInProgress(KafkaError):
    """The group is rebalancing; rejoin the group."""

    code = 27


class InvalidCommitOffsetSize(KafkaError):
    """The offsets to commit do not fit into one batch; commit fewer partitions at once."""

    code = 28


class TopicAuthorizationFailed(KafkaError):
    """Not authorized to access the topic; ask for an ACL."""

    code = 29


class GroupAuthorizationFailed(KafkaError):
    """Not authorized to access the group; ask for an ACL."""

    code = 30


class ClusterAuthorizationFailed(KafkaError):
    """Not authorized for this operation on the cluster; ask for an ACL."""

    code = 31


class InvalidTimestamp(KafkaError):
    """A record's timestamp is outside of the topic's message.timestamp.before/after.max.ms."""

    code = 32


class UnsupportedSaslMechanism(KafkaError):
    """The broker does not support this SASL mechanism; use another one."""

    code = 33


class IllegalSaslState(KafkaError):
    """The request is not allowed at this point of the SASL handshake."""

    code = 34


class UnsupportedVersion(KafkaError):
    """The broker does not support this request or this version of it; use a newer broker."""

    code = 35


class TopicAlreadyExists(KafkaError):
    """A topic of this name already exists; use another name, or delete that topic first."""

    code = 36


class InvalidPartitions(KafkaError):
    """The number of partitions, or a partition's number, is invalid."""

    code = 37


class InvalidReplicationFactor(KafkaError):
    """The replication factor is below 1 or above the number of brokers."""

    code = 38


class InvalidReplicaAssignment(KafkaError):
    """The assignment of replicas to brokers is invalid; name distinct, registered brokers."""

    code = 39


class InvalidConfig(KafkaError):
    """A setting is unknown, or its value is out of bounds."""

    code = 40


class NotController(KafkaError):
    """The broker is not the controller; look up the controller and try again."""

    code = 41
    retriable = True


class InvalidRequest(KafkaError):
    """The request contradicts itself or the protocol."""

    code = 42


class UnsupportedForMessageFormat(KafkaError):
    """The log's message format does not support this request."""

    code = 43


class PolicyViolation(KafkaError):
    """The request breaks a policy of the cluster or a setting of the topic."""

    code = 44


class OutOfOrderSequenceNumber(KafkaError):
    """A producer's sequence number skips some; a batch was lost. Create a new producer."""

    code = 45


class DuplicateSequenceNumber(KafkaError):
    """A batch with this sequence number was appended before; nothing is lost."""

    code = 46


class InvalidProducerEpoch(KafkaError):
    """The producer has an old epoch; a newer one with its transactional id has taken over."""

    code = 47


class InvalidTxnState(KafkaError):
    """The transaction is not in a state that allows this request."""

    code = 48


class InvalidProducerIdMapping(KafkaError):
    """The producer id does not belong to this transactional id; initialize the producer again."""

    code = 49


class InvalidTransactionTimeout(KafkaError):
    """The transaction timeout is above the broker's transaction.max.timeout.ms; lower it."""

    code = 50


class ConcurrentTransactions(KafkaError):
    """The previous transaction of this transactional id is still being completed; try again."""

    code = 51
    retriable = True


class TransactionCoordinatorFenced(KafkaError):
    """The marker comes from an old transaction coordinator."""

    code = 52


class TransactionalIdAuthorizationFailed(KafkaError):
    """Not authorized to use the transactional id; ask for an ACL."""

    code = 53


class SecurityDisabled(KafkaError):
    """The broker has no authorizer or other security feature that the request needs."""

    code = 54


class OperationNotAttempted(KafkaError):
    """The operation was not tried, because another one of the same request failed."""

    code = 55


class KafkaStorageError(KafkaError):
    """A disk of the broker failed, or its data directory is offline; look at `logkernel status`."""

    code = 56
    retriable = True


class LogDirNotFound(KafkaError):
    """The broker has no such log directory; use one of its log.dirs."""

    code = 57


class SaslAuthenticationFailed(KafkaError):
    """SASL authentication failed; check user and password."""

    code = 58


class UnknownProducerId(KafkaError):
    """The broker no longer knows the producer; its records were deleted, or it was idle for too long."""

    code = 59


class ReassignmentInProgress(KafkaError):
    """A reassignment of the partition is in progress; wait for it, or cancel it."""

    code = 60


class DelegationTokenAuthDisabled(KafkaError):
    """Delegation tokens are disabled on the broker; set its delegation.token.secret.key."""

    code = 61


class DelegationTokenNotFound(KafkaError):
    """There is no such delegation token."""

    code = 62


class DelegationTokenOwnerMismatch(KafkaError):
    """The delegation token belongs to another principal."""

    code = 63


class DelegationTokenRequestNotAllowed(KafkaError):
    """Delegation tokens cannot be requested over this connection; log in by SASL without a token, or with a certificate
    of your own."""

    code = 64


class DelegationTokenAuthorizationFailed(KafkaError):
    """Not authorized to use the delegation token; ask for an ACL."""

    code = 65


class DelegationTokenExpired(KafkaError):
    """The delegation token has expired; request a new one."""

    code = 66


class InvalidPrincipalType(KafkaError):
    """The principal's type is not supported; use User."""

    code = 67


class NonEmptyGroup(KafkaError):
    """The group has members; stop them first."""

    code = 68


class GroupIdNotFound(KafkaError):
    """There is no such group; check the name."""

    code = 69


class FetchSessionIdNotFound(KafkaError):
    """The broker no longer has the fetch session; fetch with a new one."""

    code = 70
    retriable = True


class InvalidFetchSessionEpoch(KafkaError):
    """The epoch of the fetch session is wrong; fetch with a new session."""

    code = 71
    retriable = True


class ListenerNotFound(KafkaError):
    """The leader has no listener of the name that this connection uses; give it one."""

    code = 72
    retriable = True


class TopicDeletionDisabled(KafkaError):
    """The broker forbids to delete topics; set delete.topic.enable=true."""

    code = 73


class FencedLeaderEpoch(KafkaError):
    """The leader epoch of the request is older than the broker's; refresh the metadata."""

    code = 74
    retriable = True


class UnknownLeaderEpoch(KafkaError):
    """The leader epoch of the request is newer than the broker's; try again."""

    code = 75
    retriable = True


class UnsupportedCompressionType(KafkaError):
    """The version of the request does not support this codec; use another one."""

    code = 76


class StaleBrokerEpoch(KafkaError):
    """The broker has registered again since the request was sent."""

    code = 77


class OffsetNotAvailable(KafkaError):
    """The new leader does not know the high watermark yet; try again."""

    code = 78
    retriable = True


class MemberIdRequired(KafkaError):
    """The group requires a member id before joining; join again with the one that was returned."""

    code = 79


class PreferredLeaderNotAvailable(KafkaError):
    """The preferred leader is not alive or not in sync; try again later."""

    code = 80
    retriable = True


class GroupMaxSizeReached(KafkaError):
    """The group has its maximum number of members (group.max.size)."""

    code = 81


class FencedInstanceId(KafkaError):
    """Another member with this group.instance.id has taken over; use distinct ids."""

    code = 82


class EligibleLeadersNotAvailable(KafkaError):
    """No replica that could lead is alive; start one of them."""

    code = 83
    retriable = True


class ElectionNotNeeded(KafkaError):
    """The partition has the wanted leader already."""

    code = 84
    retriable = True


class NoReassignmentInProgress(KafkaError):
    """No reassignment of the partition is in progress."""

    code = 85


class GroupSubscribedToTopic(KafkaError):
    """Members of the group are subscribed to the topic; stop them first."""

    code = 86


class InvalidRecord(KafkaError):
    """The broker rejected a record, e.g. one without a key for a compacted topic."""

    code = 87


class UnstableOffsetCommit(KafkaError):
    """A transaction that commits these offsets has not ended yet; try again."""

    code = 88
    retriable = True


class ThrottlingQuotaExceeded(KafkaError):
    """The quota is exceeded; try again later."""

    code = 89
    retriable = True


class ProducerFenced(KafkaError):
    """A newer producer with this transactional id has taken over; close this one."""

    code = 90


class ResourceNotFound(KafkaError):
    """There is no such resource; check the name."""

    code = 91


class DuplicateResource(KafkaError):
    """The request names a resource more than once; name it once."""

    code = 92


class UnacceptableCredential(KafkaError):
    """The credential is not acceptable; check name, mechanism and iterations."""

    code = 93


class InconsistentVoterSet(KafkaError):
    """The voters of the request do not match those of the metadata quorum."""

    code = 94


class InvalidUpdateVersion(KafkaError):
    """The feature level is not supported, or may not be set this way."""

    code = 95


class FeatureUpdateFailed(KafkaError):
    """The features could not be updated."""

    code = 96


class PrincipalDeserializationFailure(KafkaError):
    """The principal of a forwarded request cannot be read."""

    code = 97


class SnapshotNotFound(KafkaError):
    """There is no such snapshot of the metadata log."""

    code = 98


class PositionOutOfRange(KafkaError):
    """The position lies outside of the snapshot."""

    code = 99


class UnknownTopicId(KafkaError):
    """There is no topic with this id; refresh the metadata."""

    code = 100
    retriable = True


class DuplicateBrokerRegistration(KafkaError):
    """Another live broker has this node.id; give each broker its own."""

    code = 101


class BrokerIdNotRegistered(KafkaError):
    """No broker with this id is registered; check the id."""

    code = 102


class InconsistentTopicId(KafkaError):
    """The topic's id in the request is not the one in the log; refresh the metadata."""

    code = 103
    retriable = True


class InconsistentClusterId(KafkaError):
    """The cluster id of the request is not this cluster's."""

    code = 104


class TransactionalIdNotFound(KafkaError):
    """There is no such transactional id; check the name."""

    code = 105


class FetchSessionTopicIdError(KafkaError):
    """The fetch session uses topic ids inconsistently; fetch with a new session."""

    code = 106
    retriable = True


class IneligibleReplica(KafkaError):
    """A replica of the new ISR is not eligible; it is fenced or shutting down."""

    code = 107


class NewLeaderElected(KafkaError):
    """The change has elected a new leader; refresh the metadata."""

    code = 108


class OffsetMovedToTieredStorage(KafkaError):
    """The offset has moved to tiered storage."""

    code = 109


class FencedMemberEpoch(KafkaError):
    """The member's epoch is not the group's; rejoin the group."""

    code = 110


class UnreleasedInstanceId(KafkaError):
    """Another member still uses this group.instance.id; stop it, or use another id."""

    code = 111


class UnsupportedAssignor(KafkaError):
    """The broker has no such assignor; use one of group.consumer.assignors."""

    code = 112


class StaleMemberEpoch(KafkaError):
    """The member's epoch is old; try again after the next heartbeat."""

    code = 113


class MismatchedEndpointType(KafkaError):
    """The request went to an endpoint of the wrong type, e.g. to a controller."""

    code = 114


class UnsupportedEndpointType(KafkaError):
    """The endpoint type is not supported."""

    code = 115


class UnknownControllerId(KafkaError):
    """There is no controller with this id."""

    code = 116


class UnknownSubscriptionId(KafkaError):
    """The client's telemetry subscription is old; fetch the subscription again."""

    code = 117


class TelemetryTooLarge(KafkaError):
    """The client sent more telemetry than the broker accepts."""

    code = 118


class InvalidRegistration(KafkaError):
    """The broker's registration is invalid."""

    code = 119


class TransactionAbortable(KafkaError):
    """The transaction cannot be committed; abort it and go on."""

    code = 120


class InvalidRecordState(KafkaError):
    """The record is not in a state that allows this acknowledgement; its lock may have expired."""

    code = 121


class ShareSessionNotFound(KafkaError):
    """The broker no longer has the share session; fetch with a new one."""

    code = 122
    retriable = True


class InvalidShareSessionEpoch(KafkaError):
    """The epoch of the share session is wrong; fetch with a new session."""

    code = 123
    retriable = True


class FencedStateEpoch(KafkaError):
    """The state epoch of the share-partition is old."""

    code = 124


class InvalidVoterKey(KafkaError):
    """The key of the voter is not the controller's."""

    code = 125


class DuplicateVoter(KafkaError):
    """The voter is in the metadata quorum already."""

    code = 126


class VoterNotFound(KafkaError):
    """The voter is not in the metadata quorum."""

    code = 127


class InvalidRegularExpression(KafkaError):
    """The regular expression is not valid in RE2's syntax; correct it."""

    code = 128


class RebootstrapRequired(KafkaError):
    """The client must look up the cluster from its bootstrap servers again."""

    code = 129


class StreamsInvalidTopology(KafkaError):
    """The topology of the streams group is invalid."""

    code = 130


class StreamsInvalidTopologyEpoch(KafkaError):
    """The epoch of the streams topology is invalid."""

    code = 131


class StreamsTopologyFenced(KafkaError):
    """The epoch of the streams topology is old."""

    code = 132


class ShareSessionLimitReached(KafkaError):
    """The broker has its maximum number of share sessions; try again later."""

    code = 133
    retriable = True


REFUSALS: Final = (
    ConfigError, IllegalSaslState, SaslAuthenticationFailed, SslAuthenticationException, UnsupportedSaslMechanism,
)  # fmt: skip
"""Errors of a connection that the next one will have, too: it is not worth waiting for (Kafka's
`AuthenticationException`, and settings that hold no more, as of a file that is gone)."""

BY_CODE: dict[int, type[KafkaError]] = {error.code: error for error in KafkaError.__subclasses__()}
"""Every protocol error by its code; code 0 is no error."""


def error_for(code: int, message: str | None = "", *, about: object = "") -> KafkaError:
    """The exception for a protocol error code; an unknown code gives `UnknownServerError`.

    Without a `message` from the broker, the text is the code's meaning, behind the name of what it is `about`.
    """
    kind = BY_CODE.get(code, UnknownServerError)
    error = kind(message or meaning(kind, about))
    error.about = about
    return error


def meaning(kind: type[KafkaError], about: object = "") -> str:
    """What a code means to a caller: "orders: there is no such topic or partition; check the name, …"."""
    text = (kind.__doc__ or kind.__name__).removesuffix(".")
    return f"{about}: {text[:1].lower()}{text[1:]}" if str(about) else text


def no_partition(topic: str, partition: int, count: int) -> str:
    """The text of every refusal of a partition that a topic of `count` partitions does not have."""
    return f"{topic} has no partition {partition} (it has {count} partition{'' if count == 1 else 's'})"
