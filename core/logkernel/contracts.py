"""Contracts of the objects that plugins hand out, and of the doors that they are given.

A hook (see `hookspecs`) is asked once, when a topic, listener or broker is set up; the plain object
that it returns is then called directly. Whatever state an object needs lives in the object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from attrs import field

from logkernel.light import message, value
from logkernel.vocabulary import Record, SegmentFacts

Buffer = bytes | bytearray | memoryview


class Settings(Protocol):
    """Settings by their full names, typed; a broker's, or a plain dict."""

    def get(self, name: str, default: Any = None, /) -> Any: ...


# ---------------------------------------------------------------- partitioner


@runtime_checkable
class Partitioner(Protocol):
    """Chooses the partition of a record. One object a topic and producer; called by one thread at a time."""

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
        """A partition in `range(partitions)`. `available` are those with a leader, ascending, perhaps empty."""
        ...

    def on_batch_full(self, partition: int) -> None:
        """A batch for `partition` was closed: a sticky partitioner now moves on (KIP-480)."""
        ...


# ---------------------------------------------------------------- clients


class Interceptor(Protocol):
    """Sees a producer's records on their way. It may raise: that is logged, and the record goes on."""

    def on_send(self, record: Any) -> Any:
        """A `ProducerRecord` before keys and values are serialized; the one that is returned is sent."""
        ...

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        """`RecordMetadata` or an error, before the callbacks of `send`; in whatever thread steps the producer."""
        ...

    def close(self) -> None: ...


class MetricsReporter(Protocol):
    """Is told a client's metrics at the end of each sample window, and once more at its close."""

    def report(self, metrics: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


# ---------------------------------------------------------------- codec


@runtime_checkable
class Codec(Protocol):
    """Compresses the record section of a batch; called once a batch."""

    name: str
    codec_id: int
    """Bits 0 to 2 of the batch's attributes; 1 gzip, 2 snappy, 3 lz4, 4 zstd."""

    def compress(self, data: Buffer) -> bytes: ...

    def decompress(self, data: Buffer, limit_bytes: int) -> bytes:
        """The plain bytes. Raises `CorruptMessage` for rotten input and `MessageTooLarge` as soon as the
        output would pass `limit_bytes`, before memory for it is taken."""
        ...

    def decompress_legacy(self, data: Buffer, limit_bytes: int) -> bytes:
        """As `decompress`, for magic 0 and 1 (there lz4 frames have a wrong header checksum)."""
        ...


# ---------------------------------------------------------------- election


@value
class Candidates:
    """What an election may know. `assignment` is in order of preference."""

    assignment: tuple[int, ...]
    isr: tuple[int, ...]
    alive: frozenset[int]
    unclean_allowed: bool = False


@value
class Elected:
    leader: int
    isr: tuple[int, ...]
    clean: bool = True


@runtime_checkable
class ElectionStrategy(Protocol):
    def elect(self, candidates: Candidates) -> Elected | None:
        """The new leader with its first ISR, or None where no replica may lead."""
        ...


# ---------------------------------------------------------------- cleanup


@value
class LogFacts:
    """What a cleanup policy may know of a log, frozen at one moment."""

    topic: str
    partition: int
    segments: tuple[SegmentFacts, ...]
    log_start_offset: int
    high_watermark: int
    wall_ms: int
    settings: Any
    """The topic's `TopicSettings`."""


@value
class DropBefore:
    """Delete whole segments below `offset` and move the log start there."""

    offset: int
    reason: str


@runtime_checkable
class CleanupPolicy(Protocol):
    """From facts to a plan; it touches nothing."""

    def plan(self, log: LogFacts) -> Sequence[DropBefore]: ...


# ---------------------------------------------------------------- coordination


@value
class MetadataChange:
    """One durable fact of the cluster, e.g. kind "topic", key "orders", value {...}; None deletes it."""

    kind: str
    key: str
    value: Mapping[str, Any] | None


@runtime_checkable
class Coordination(Protocol):
    """Keeps the cluster's metadata. The controller machine folds the changes; this only keeps them."""

    def changes(self) -> Iterator[MetadataChange]:
        """Every change kept so far, in order."""
        ...

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        """Keep all of `changes`, or none; durable when it returns."""
        ...

    def close(self) -> None: ...


class StateLog(Protocol):
    """A small durable log that the host lends to a plugin."""

    def append(self, records: Sequence[Record], *, sync: bool) -> int:
        """Append as one batch; returns the next offset."""
        ...

    def records(self) -> Iterator[Record]: ...

    def close(self) -> None: ...


# ---------------------------------------------------------------- services


@value
class RequestContext:
    """Who asks. `capabilities` name what depends on a protocol version (see `requests`)."""

    client_id: str | None = None
    client_host: str = ""
    connection_id: int = 0
    listener: str = ""
    software_name: str = ""
    software_version: str = ""
    capabilities: frozenset[str] = frozenset()
    internal: bool = False
    """Asked by the broker itself or a service of it, not by a client."""


Answer = Callable[[Any], None]
"""Takes the one response to a request; may be called at once or later, from the shell's thread."""


@value
class ServiceTopic:
    """The internal topic in which a service keeps its state."""

    name: str
    partitions_setting: str
    config: Mapping[str, str]


@value
class ServiceDeclaration:
    """What a service answers and where it keeps its state; the service itself is made when it is first asked."""

    name: str
    requests: tuple[str, ...]
    """Names of versionless request classes, e.g. "JoinGroupRequest"."""
    topic: ServiceTopic | None = None
    features: Mapping[str, tuple[int, int, int]] = field(factory=dict)
    """Feature → (lowest level, highest, level of a new cluster), e.g. {"group.version": (0, 1, 1)} (KIP-584)."""


@message
class Decision:
    """What a service's machine wants done, in this order.

    `records` are appended as one batch to the shard's log and, once appended, replayed into the
    machine. `answers` and `sends` go out when those records are committed (at once where there are none).
    If the append fails, the machine is rebuilt from the log, `sends` are dropped, and each answer is replaced
    by what `Service.refusal` gives for its request. `replies` go out at once, whatever becomes of the records.
    """

    records: list[Record] = field(factory=list)
    producer: tuple[int, int] | None = None
    """(producer id, epoch) whose transaction `records` belong to; None: they hold at once. What is pending is
    replayed by `TransactionalMachine.replay_pending`."""
    answers: list[tuple[int, Any]] = field(factory=list)
    """(ticket, response)."""
    replies: list[tuple[int, Any]] = field(factory=list)
    sends: list[tuple[Any, Any]] = field(factory=list)
    """(token, versionless request) for the broker itself, other services included; what comes back is told by
    `ServiceMachine.on_response(token, response, ...)`. A machine that was rebuilt hears of none of them: its
    `on_loaded` asks again for what its log says is undone."""


class ServiceMachine(Protocol):
    """The state of one shard. Pure: no clock, socket, file or randomness inside.

    The host calls from one thread, and hands in the next event only after a decision's records were replayed.
    """

    def on_request(
        self, request: Any, context: RequestContext, ticket: int, wall_ms: int, mono_ms: int
    ) -> Decision: ...

    def replay(self, record: Record) -> None:
        """Fold one record of the shard's log; the only way in which durable state changes."""
        ...

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        """The log was replayed to its end; soft state (sessions, timers) starts here."""
        ...

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision: ...

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        """What one of `Decision.sends` led to."""
        ...

    def on_topics_changed(self, topics: Sequence[str], wall_ms: int, mono_ms: int) -> Decision:
        """These topics were created or got more partitions; `ClusterView` shows them."""
        ...

    def on_topics_deleted(self, topics: Sequence[str], wall_ms: int, mono_ms: int) -> Decision:
        """These topics are gone: what is kept of them must not meet topics made anew under their names."""
        ...

    def next_deadline(self) -> int | None:
        """Monotonic ms at which `on_timer` is due, or None."""
        ...


@runtime_checkable
class TransactionalMachine(Protocol):
    """What a machine has besides, if transactions may write to its log (`Decision.producer`)."""

    def replay_pending(self, record: Record, producer_id: int, producer_epoch: int) -> None:
        """A record that holds once its producer's transaction is committed."""
        ...

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """The transaction of this producer ended, in the log: its pending records hold now, or are gone."""
        ...


class ClusterView(Protocol):
    """What a service may know of the cluster."""

    def topic_names(self) -> Sequence[str]:
        """Every topic, internal ones included, sorted."""
        ...

    def next_producer_id(self) -> int:
        """A producer id that was never given before, also after a crash. Raises `KafkaError`."""
        ...

    def feature_level(self, name: str) -> int:
        """The finalized level of a feature, e.g. "transaction.version" (KIP-584); 0 where it is off."""
        ...

    def topic_setting(self, topic: str, name: str) -> Any:
        """A setting of an existing topic, typed."""
        ...

    def offsets(self, topic: str, partition: int) -> tuple[int, int, int] | None:
        """(log start, last stable offset, high watermark) of a partition led here; None elsewhere."""
        ...

    def partition_count(self, topic: str) -> int | None: ...
    def topic_id(self, topic: str) -> Any: ...
    def topic_name(self, topic_id: Any) -> str | None: ...
    def brokers(self, listener: str) -> Sequence[tuple[int, str, int, str | None]]:
        """(node id, host, port, rack) of every live broker, as clients of that listener reach it."""
        ...


class Service(Protocol):
    """Answers a family of requests, with its state in a log of its own."""

    def machine(self, shard: int, ids: Callable[[], str]) -> ServiceMachine:
        """A fresh machine for a shard; `ids` gives unique strings (member ids)."""
        ...

    def split(self, request: Any, shards: int) -> Sequence[tuple[int, Any]]:
        """The parts of a request with the shard of each; where there is none, `join` answers alone."""
        ...

    def join(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        """The response made of the parts' responses, in the order of `split`."""
        ...

    def refusal(self, request: Any, code: int) -> Any:
        """The response that says that `request` failed with protocol error `code`."""
        ...


# ---------------------------------------------------------------- transport


class BrokerDoor(Protocol):
    """What a transport's listening half sees of the broker."""

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        """Hand in a versionless request. A fault of the request itself is answered, never raised."""
        ...

    def serves(self) -> frozenset[str]:
        """Names of the request classes that are answered here."""
        ...

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        """Feature name → (min, max, finalized) level, for ApiVersions."""
        ...

    def features_epoch(self) -> int:
        """Grows with every change of a finalized level."""
        ...


class Listener(Protocol):
    name: str
    host: str
    port: int
    """The port that was bound, never 0."""

    async def close(self) -> None:
        """Stop accepting, let answers under way go out for a moment, close every connection."""
        ...


class Transport(Protocol):
    async def listen(self, name: str, host: str, port: int, door: BrokerDoor, settings: Any) -> Listener: ...

    def connect(self, host: str, port: int, settings: Mapping[str, Any]) -> Any:
        """A blocking channel: `call(request) -> response`, `send(request, withheld=frozenset()) -> Future`, `close()`.

        `features` are the peer's finalized feature levels; `withheld` names capabilities that a request must
        not make use of.
        """
        ...
