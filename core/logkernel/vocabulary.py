"""Small value classes that every room shares.

Units stand in names (`_ms`, `_bytes`). Offsets are record offsets in a partition; positions are
byte positions in a segment file.
"""

from __future__ import annotations

from binascii import b2a_base64
from enum import IntEnum
from typing import Final, NamedTuple
from uuid import UUID

from logkernel.attrs_lite import field, frozen, mutable

NO_ID: Final = UUID(int=0)
"""The all-zero topic id: no id was given (KIP-516)."""

NO_PRODUCER_ID: Final = -1
NO_TIMESTAMP: Final = -1
NO_EPOCH: Final = -1

READ_UNCOMMITTED: Final = 0
READ_COMMITTED: Final = 1


SECURITY_PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
"""What a listener may speak, by the protocol's numbers."""
PLAINTEXT: Final = SECURITY_PROTOCOLS[0]
SASL_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER", "GSSAPI")
"""By which a client of a listener with SASL may say who it is."""


_TO_URL: Final = bytes.maketrans(b"+/", b"-_")


def format_id(value: UUID) -> str:
    """An id as Kafka writes it: 22 letters of URL-safe base64."""
    return b2a_base64(value.bytes, newline=False).rstrip(b"=").translate(_TO_URL).decode()


class Principal(NamedTuple):
    """Who a client is, as its listener established it (Kafka's KafkaPrincipal)."""

    kind: str
    """"User", or what a plugin's listener says."""
    name: str
    by_token: bool = False
    """Authenticated by a delegation token, which can't make others (KIP-48)."""

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


HIDDEN: Final = "[hidden]"
"""What stands for a secret, as in Kafka's `Password`."""


class Secret:
    """A value that no log, error or `repr` shows: text that is shown as `[hidden]`. Equal texts are equal secrets."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def reveal(self) -> str:
        """Return the text, where it is used."""
        return self._text

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__

    def __bool__(self) -> bool:
        return bool(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)


GROUP_STATES: Final = (
    "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling", "NotReady", "Stable", "Empty", "Dead",
)  # fmt: skip
"""Of groups of every kind, by Kafka's names."""

ANONYMOUS: Final = Principal("User", "ANONYMOUS")
"""A client of a listener that does not ask who it is: PLAINTEXT, or SSL without a client's certificate."""


class ResourceType(IntEnum):
    """What an ACL is about, with the protocol's numbers."""

    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclOperation(IntEnum):
    """What an ACL allows or denies, with the protocol's numbers. Only ACLs have ALL: nobody asks for it."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


class Acl(NamedTuple):
    """One binding of Kafka's; the numbers are the protocol's."""

    resource_type: int
    """A `ResourceType`."""
    pattern_type: int
    """3: `resource_name` is the resource's name, or `*` for all of the type; 4: it is a prefix of names."""
    resource_name: str
    principal: str
    """`User:NAME`, or `User:*` for everybody."""
    host: str
    """The client's address, or `*`."""
    operation: int
    """An `AclOperation`."""
    permission_type: int
    """2: denied; 3: allowed."""


MAX_TOPIC_CHARACTERS: Final = 249
"""Of a topic's name. Its folders are called topic-partition, and most file systems allow 255 characters."""
MAX_PARTITIONS: Final = 100_000
"""Of a topic. What holds a cluster's topics has a row for each number below the highest, so none higher is believed."""
_MARKS: Final = str.maketrans("", "", "._-")


def is_topic_name(name: str) -> bool:
    """Whether a topic may be called so: ASCII letters, digits, `.`, `_` and `-`, which make no other folder's path."""
    letters = name.translate(_MARKS)
    fits = 0 < len(name) <= MAX_TOPIC_CHARACTERS and name not in (".", "..")
    return fits and name.isascii() and (not letters or letters.isalnum())


class TopicPartition(NamedTuple):
    """A partition's name. A plain `(topic, partition)` tuple is equal to it and hashes alike."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class RecordMetadata(NamedTuple):
    """Where a record was written. `offset` is -1 if the broker did not say (acks=0, a duplicate)."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class LogPosition(NamedTuple):
    """An offset with the place of its batch on disk: `segment` is the segment's base offset."""

    offset: int
    segment: int
    position: int


class OffsetAndEpoch(NamedTuple):
    offset: int
    epoch: int


class TimestampAndOffset(NamedTuple):
    timestamp_ms: int
    offset: int


class EpochStart(NamedTuple):
    """A leader epoch and the first offset that was written in it (KIP-101)."""

    epoch: int
    start_offset: int


@frozen
class IsrProposal:
    """What a leader asks the controller to write down of its in-sync replicas (AlterPartition, KIP-497)."""

    members: tuple[tuple[int, int], ...]
    """(node, broker epoch), ascending by node; -1 is a replica that named no epoch."""
    leader_epoch: int
    partition_epoch: int
    """What the proposal would change: it is void once another change was written."""
    attempt: int = 0
    """Grows each time the same is asked again."""

    @property
    def isr(self) -> frozenset[int]:
        return frozenset(node for node, _ in self.members)


@mutable
class BatchFacts:
    """The fields of a batch header (magic 2), and the position of the batch in its buffer.

    `0 <= first_offset <= last_offset`; `first_offset = last_offset - last_offset_delta`.
    """

    position: int
    """Byte position of the batch in its buffer (or segment file)."""
    size: int
    """Whole bytes of the batch: 12 + its length field."""
    base_offset: int
    last_offset: int
    leader_epoch: int
    magic: int
    attributes: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    count: int
    """Number of records by the header; after compaction it is below `last_offset - base_offset + 1`."""

    @property
    def codec_id(self) -> int:
        return self.attributes & 0x07

    @property
    def is_log_append_time(self) -> bool:
        return bool(self.attributes & 0x08)

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & 0x10)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & 0x20)

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from 2**31 - 1 to 0 (KIP-98)."""
        if self.base_sequence < 0:
            return self.base_sequence
        return (self.base_sequence + self.last_offset - self.base_offset) & 0x7FFFFFFF


@mutable
class Record:
    """One record. `timestamp_ms` is in ms since 1970, -1 for none; `offset` is -1 until the record is in a log."""

    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = NO_TIMESTAMP
    offset: int = -1


@mutable
class FileSlice:
    """Unread bytes of a file, as sendfile takes them. The holder keeps the descriptor open."""

    fd: int
    """A descriptor to read from with pread/sendfile, or -1 where the disk has none (then call `read`)."""
    position: int
    size: int
    owner: object = None
    """Keeps the file open as long as the slice lives; has `read(position, size) -> bytes`."""

    def read(self) -> bytes:
        """The bytes themselves, for readers without a socket."""
        data: bytes = self.owner.read(self.position, self.size)  # type: ignore[attr-defined]
        return data


REMEMBERED_BATCHES = 10
"""Batches of a producer whose offsets a partition keeps for their repetitions: twice the five that an idempotent
producer may have in flight on a connection. Kafka keeps five."""


@mutable
class ProducerEntry:
    """State of one producer id on a partition, as a snapshot file holds it.

    `batches` are the last `REMEMBERED_BATCHES` data batches, oldest first: (last_sequence, last_offset,
    offset_delta, timestamp_ms); a snapshot file keeps only the newest. `contiguous_from` is not in the file.
    """

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int = -1
    last_timestamp_ms: int = NO_TIMESTAMP
    current_txn_first_offset: int = -1
    batches: list[tuple[int, int, int, int]] = field(factory=list)
    contiguous_from: int = -1
    """Every sequence of this epoch from here on, up to the last batch's, is known to be written; -1: none before the
    batches."""


@frozen
class AbortedTxn:
    """A row of `.txnindex`: an aborted transaction and the last stable offset when it ended."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


@frozen
class SegmentFacts:
    """What a cleanup policy may know of one segment."""

    base_offset: int
    next_offset: int
    size_bytes: int
    largest_timestamp_ms: int
    """Largest record timestamp, or the file's modification time if it has no records."""
    active: bool
    first_timestamp_ms: int = NO_TIMESTAMP
    """Largest timestamp of the first batch, if the log is compacted; else -1."""


@frozen
class LogSize:
    """The size of a log. `records` are counted if batches were read; otherwise each offset counts as one."""

    segments: int
    bytes: int
    records: int


@frozen
class CleanupResult:
    """What a cleanup policy did to a partition."""

    topic: str
    partition: int
    policy: str
    before: LogSize
    after: LogSize
    log_start_offset: int
    clean_offset: int | None = None
    """The end of the rewrite; None if nothing was rewritten."""
