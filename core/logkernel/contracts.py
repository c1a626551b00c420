"""Contracts of the objects that plugins hand out, and of the doors that they are given.

A hook (see `hookspecs`) is asked once, when a topic, listener or broker is set up; the plain object
that it returns is then called directly. Whatever state an object needs lives in the object.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from logkernel.attrs_lite import field, frozen, mutable
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


# ---------------------------------------------------------------- query engines


@runtime_checkable
class Connector(Protocol):
    """Brings the log into a query engine as tables and streams, and runs pipelines there."""

    def register(self, session: Any) -> None:
        """Make the log known to a session of the engine, e.g. a `SparkSession`."""
        ...

    def pipeline(self, path: str, given: Mapping[str, str]) -> Pipeline:
        """The pipeline that the file describes, judged; `given` are its parameters. Raises `ConfigError`."""
        ...


class Pipeline(Protocol):
    """Jobs between logs and tables. It was read and judged; nothing runs before `run`."""

    name: str

    def plan(self, only: Collection[str] = ()) -> Sequence[Mapping[str, Any]]:
        """What each step, or each that is named, reads, does and writes. Raises `ConfigError` for a name of none."""
        ...

    def run(
        self, tell: Callable[[Mapping[str, Any]], None], only: Collection[str] = (), master: str | None = None
    ) -> bool:
        """Run the steps in order. `tell` is told what came of each; a row with "failed" says why one failed, which
        ends the run with False. Raises `ConfigError` for what could not be known before the engine was asked."""
        ...


# ---------------------------------------------------------------- codec


@runtime_checkable
class Codec(Protocol):
    """Compresses the record section of a batch; called once a batch.

    It stands for one of the four codecs that Kafka's batch format knows: what it writes is read by every client.
    """

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


@frozen
class Candidates:
    """What an election may know. `assignment` is in order of preference."""

    assignment: tuple[int, ...]
    isr: tuple[int, ...]
    alive: frozenset[int]
    unclean_allowed: bool = False


@frozen
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


@frozen
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
    last_stable_offset: int = -1
    """Below it every transaction is decided."""
    clean_offset: int | None = None
    """How far the last rewrite came (`cleaner-offset-checkpoint`), None before the first."""
    table_bytes: int = 0
    """Memory that a keep-rule may take for what it learns (`log.cleaner.dedupe.buffer.size`, shared by threads)."""
    table_load_factor: float = 0.9
    """How full a table in it may get (`log.cleaner.io.buffer.load.factor`)."""
    seed: bytes = bytes(16)
    """16 random bytes: a policy's only randomness."""
    asked: bool = False
    """Somebody asked for cleaning by name: what decides *when* to clean (a dirty ratio) does not count."""


@frozen
class DropBefore:
    """Delete whole segments below `offset` and move the log start there."""

    offset: int
    reason: str


class BatchView(Protocol):
    """A batch of data as a keep-rule sees it: v2, decompressed, never of an aborted transaction.

    `section[start:end]` are its `count` records, encoded; the loops of `record.loops` take them as they are.
    """

    base_offset: int
    last_offset: int
    count: int
    section: Buffer
    start: int
    end: int
    base_timestamp_ms: int

    def columns(self) -> Any:
        """The records as `record.loops.Columns`: offsets, timestamps, keys, values and headers in Arrow's layout."""
        ...

    def records(self) -> list[Record]: ...


@runtime_checkable
class KeepRule(Protocol):
    """Says which records survive a rewrite. Made for one rewrite, which one worker thread drives: it shares
    no state with anything else. First `learn` sees every batch from `Rewrite.start` to `Rewrite.end`, in order; then
    `keep` every batch from the log's start on. Time spent in here without the GIL delays nobody."""

    def learn(self, batch: BatchView) -> int | None:
        """Take note of a batch. Returns None, or the first offset that there was no room for: then the rewrite ends
        before it and `keep` is asked with that end."""
        ...

    def keep(self, batch: BatchView, end: int) -> bytearray | None:
        """A byte each record, not 0 where it stays; None: all stay. What lies at `end` or later must stay."""
        ...


class BatchRun(Protocol):
    """Neighbouring small batches of a log, as they lie there: v2, whole and right, not compressed, never of a
    transaction. `rows` says of each what `record.pure_compaction.ROW` tells: position in `data`, bytes, records, base
    offset, last offset, base timestamp, largest timestamp. The records begin 61 bytes behind the position."""

    data: Buffer
    rows: bytes


@runtime_checkable
class RunRule(KeepRule, Protocol):
    """A keep-rule that may have both of these, too: then batches of a few records, which cost more to hand over than to
    judge, come many in one call. Any other rule sees them one by one."""

    def learn_run(self, run: BatchRun) -> int:
        """Take note of the first batches, in order; returns how many. The one behind them comes to `learn`."""
        ...

    def keep_run(self, run: BatchRun, end: int) -> bytearray:
        """A byte a batch: 0 none of its records stays, 1 all stay and none has a null value, 2 ask `keep`. It may be
        short: the batch behind the last verdict comes to `keep`."""
        ...


@frozen
class Rewrite:
    """Rewrite the closed segments below `end`, so that only records that `rule` keeps are left.

    Whatever the rule says: offsets and order stay; batches keep base and last offset, producer and sequence; data of
    aborted transactions go, markers once their data are gone; an empty batch is left of a producer's last one.
    """

    start: int
    """The rule learns from here on."""
    end: int
    """Base offset of a segment; what lies there or behind it is not touched, nor is what is not decided yet."""
    rule: KeepRule
    reason: str
    priority: float = 0.0
    """Of all logs of a broker the one with the highest is rewritten first."""
    tombstones: bool = True
    """A null value that the rule keeps goes once `delete.retention.ms` have passed since a rewrite first met it."""


@runtime_checkable
class CleanupPolicy(Protocol):
    """From facts to a plan; it touches nothing."""

    def plan(self, log: LogFacts) -> Sequence[DropBefore | Rewrite]: ...


# ---------------------------------------------------------------- assignor


@frozen
class Subscriber:
    """A member of a consumer group, as an assignor sees it."""

    topics: frozenset[UUID]
    """Ids of the existing topics that it subscribes to."""
    assigned: frozenset[tuple[UUID, int]]
    """(topic id, partition) that it was assigned last time; some may be gone, or not be subscribed to any more."""
    instance_id: str | None = None
    rack_id: str | None = None


@frozen
class GroupFacts:
    """What an assignor may know of a group."""

    members: Mapping[str, Subscriber]
    """By member id, sorted; never empty."""
    partitions: Mapping[UUID, int]
    """Topic id → number of partitions, of every topic that somebody subscribes to."""


@runtime_checkable
class Assignor(Protocol):
    """Decides who of a consumer group reads what (KIP-848). Pure: the same facts, the same assignment."""

    name: str

    def assign(self, group: GroupFacts) -> Mapping[str, Iterable[tuple[UUID, int]]]:
        """Member id → its (topic id, partition)s; who is left out gets none. Each partition goes to one member, who
        subscribes to its topic; what breaks that is refused. Moving little is a virtue: each move is a pause."""
        ...


# ---------------------------------------------------------------- coordination


@frozen
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

    def kept(self) -> int:
        """How many changes `changes` gives now: when they are many more than they fold to, they are replaced."""
        ...

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        """Keep `changes`, which fold to the same, in place of all that was kept; durable when it returns.
        After a crash there are the old ones, or these."""
        ...

    def close(self) -> None: ...


class SessionEvents(Protocol):
    """What a session of a `SharedCoordination` tells its broker; always from within `SharedCoordination.hear`."""

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        """Committed by whatever session, this one's own included, in the order of commits; each once."""
        ...

    def on_controller(self, node_id: int | None, term: int) -> None:
        """Who is the controller, in which term; None while nobody is. Terms only grow."""
        ...

    def on_session(self, state: str) -> None:
        """"unsure": whether the session lives is not known, commit nothing that was not confirmed. "back": it lives
        and lost nothing. "lost": announcement and campaign are gone; begin with a new session."""
        ...


@runtime_checkable
class SharedCoordination(Coordination, Protocol):
    """A coordination that several brokers share; each holds a session of its own.

    The fact of a broker ("broker", node id) lives as long as its session. Whoever is elected by `campaign` may write
    what only a controller writes, and each of its commits names the term, so that one who was deposed is refused.
    """

    def announce(self, node_id: int, value: Mapping[str, Any]) -> int:
        """Make the broker's fact, which vanishes with the session; returns its broker epoch, larger than any before
        (KIP-380). Raises `KafkaError` where another living session holds that node id."""
        ...

    def campaign(self, node_id: int) -> int | None:
        """Stand for controller: returns the new term if nobody else is it, else None, and `on_controller` tells when it
        is worth another try."""
        ...

    def resign(self) -> None:
        """Be the controller no longer; nothing happens where this session isn't."""
        ...

    def commit_as_controller(self, changes: Sequence[MetadataChange], term: int) -> None:
        """As `commit`, if `term` is the one in force. Raises `StaleControllerEpoch` if it isn't: nothing was kept."""
        ...

    def broker_epochs(self) -> Mapping[int, int]:
        """Node id → broker epoch, of every broker that is announced now."""
        ...

    def subscribe(self, events: SessionEvents, ring: Callable[[], object]) -> None:
        """From now on tell `events` what happens. `ring` is called, from wherever it happens, when there is something
        to `hear`; what was committed before is in `changes`."""
        ...

    def hear(self) -> None:
        """Tell the subscriber what happened, on the calling thread."""
        ...


class StateLog(Protocol):
    """A small durable log that the host lends to a plugin."""

    def append(self, records: Sequence[Record], *, sync: bool) -> int:
        """Append as one batch; returns the next offset."""
        ...

    def replace(self, records: Sequence[Record]) -> None:
        """Put `records` in place of all that the log holds; durable when it returns. After a crash there is what was
        there before, or these. Where it raises, the log holds one of the two, and takes no more appends until it is
        opened anew."""
        ...

    def records(self) -> Iterator[Record]: ...

    def close(self) -> None: ...


# ---------------------------------------------------------------- services


@frozen
class RequestContext:
    """Who asks. `capabilities` name what depends on a protocol version (see `requests`)."""

    client_id: str | None = None
    client_host: str = ""
    connection_id: int = 0
    """Unique within its listener."""
    listener: str = ""
    software_name: str = ""
    software_version: str = ""
    capabilities: frozenset[str] = frozenset()
    internal: bool = False
    """Asked by the broker itself or a service of it, not by a client."""
    commands: bool = False
    """Came over a listener by which brokers command one another: a replica's fetch, a controller's order and
    a leader's proposal are obeyed here alone."""


Answer = Callable[[Any], None]
"""Takes the one response to a request; may be called at once or later, from the shell's thread."""


@frozen
class ServiceTopic:
    """The internal topic in which a service keeps its state. Clients neither write it nor delete it.

    It is created by the service's first write, or when a client first asks for it.
    """

    name: str
    partitions_setting: str
    """The broker setting that says how many partitions it gets."""
    config: Mapping[str, str]
    """Topic settings that it always has."""
    replication_setting: str = ""
    """The broker setting with its number of replicas (empty: default.replication.factor); fewer where there are fewer
    brokers."""
    config_settings: Mapping[str, str] = field(factory=dict)
    """Topic setting → the broker setting that it takes its value from, e.g. its segments' size. A value below what the
    topic setting takes is raised to that."""
    written_by: tuple[str, ...] = ()
    """Client ids that may produce to it."""


@frozen
class ServiceDeclaration:
    """What a service answers and where it keeps its state; the service itself is made when it is first asked."""

    name: str
    requests: tuple[str, ...]
    """Names of versionless request classes, e.g. "JoinGroupRequest"."""
    topic: ServiceTopic | None = None
    features: Mapping[str, tuple[int, int, int]] = field(factory=dict)
    """Feature → (lowest level, highest, level of a new cluster), e.g. {"group.version": (0, 1, 1)} (KIP-584)."""
    extends: tuple[str, ...] = ()
    """Requests of another service to whose answer this one adds, e.g. its own kind of group to ListGroups: it is
    asked as well, and its `Extension.extend` makes one response of both."""


@mutable
class Decision:
    """What a service's machine wants done, in this order.

    `records` are appended as one batch to the shard's log and, once appended, replayed into the
    machine. `answers` and `sends` go out when those records, and all that the machine appended before, are committed.
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
    Services may share a topic: each machine is then told of all its records, and passes over those not its own.
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


@runtime_checkable
class BulkMachine(Protocol):
    """What a machine has besides, if it folds many records faster than one by one; a start reads whole logs."""

    def replay_many(self, records: Sequence[Record]) -> None:
        """Exactly what `ServiceMachine.replay` of each in turn would come to."""
        ...


@runtime_checkable
class ColumnarMachine(Protocol):
    """What a machine has besides, if it can fold a whole batch without its records being made one by one."""

    def replay_columns(self, columns: Any) -> bool:
        """What `ServiceMachine.replay` of each record of a batch in turn would come to; `columns` are those records as
        `record.loops.Columns`, of no transaction. False: nothing was folded, hand them in as records."""
        ...


@runtime_checkable
class ConnectionMachine(Protocol):
    """What a machine has besides, if it keeps something for as long as a client is connected."""

    def on_disconnected(self, listener: str, connection_id: int, wall_ms: int, mono_ms: int) -> Decision:
        """The connection (see `RequestContext`) is gone."""
        ...


class ClusterView(Protocol):
    """What a service may know of the cluster."""

    def topic_names(self) -> Sequence[str]:
        """Every topic, internal ones included, sorted."""
        ...

    def is_internal(self, topic: str) -> bool:
        """Whether a service keeps its state there, or would."""
        ...

    def next_producer_id(self) -> int:
        """A producer id that was never given before, also after a crash. Raises `KafkaError`."""
        ...

    def feature_level(self, name: str) -> int:
        """The finalized level of a feature, e.g. "transaction.version" (KIP-584); 0 where it is off."""
        ...

    def assignor(self, name: str) -> Assignor:
        """The assignor that a plugin provides by that name. Raises `PluginError`."""
        ...

    def topic_setting(self, topic: str, name: str) -> Any:
        """A setting of an existing topic, typed."""
        ...

    def group_setting(self, group_id: str, name: str) -> Any:
        """A setting of a group (e.g. "share.auto.offset.reset"), typed: its own within the broker's bounds, else
        the broker's."""
        ...

    def offsets(self, topic: str, partition: int) -> tuple[int, int, int] | None:
        """(log start, last stable offset, high watermark) of a partition led here; None elsewhere."""
        ...

    def leader_epoch(self, topic: str, partition: int) -> int | None:
        """The epoch in which a partition is led here, never below one that its log holds; None elsewhere."""
        ...

    def partition_count(self, topic: str) -> int | None: ...
    def topic_id(self, topic: str) -> Any: ...
    def topic_name(self, topic_id: Any) -> str | None: ...
    def brokers(self, listener: str) -> Sequence[tuple[int, str, int, str | None]]:
        """(node id, host, port, rack) of every live broker, as clients of that listener reach it."""
        ...

    def coordinator(self, topic: str, key: str, listener: str) -> tuple[int, str, int, str | None] | None:
        """Which of `brokers` leads the partition of a service's topic that keeps `key` (see `requests.sharding`); None
        while nobody does. A topic that is not there yet is asked for."""
        ...


class Service(Protocol):
    """Answers a family of requests, with its state in a log of its own."""

    def machine(self, shard: int, ids: Callable[[], str]) -> ServiceMachine:
        """A fresh machine for a shard; `ids` gives unique strings (member ids)."""
        ...

    def split(self, request: Any, shards: int) -> Sequence[tuple[int, Any]]:
        """The parts of a request with the shard of each; where there is none, `join` answers alone, and where the only
        one is `request` itself, its response is the answer."""
        ...

    def join(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        """The response made of the parts' responses, in the order of `split`."""
        ...

    def refusal(self, request: Any, code: int) -> Any:
        """The response that says that `request` failed with protocol error `code`."""
        ...


@runtime_checkable
class Extension(Protocol):
    """What a service has besides, if its declaration says that it `extends` requests of others."""

    def extend(self, request: Any, response: Any, own: Any, context: RequestContext) -> Any:
        """One response of the owner's `response` and `own`, which `Service.join` of this service gave."""
        ...


@runtime_checkable
class RecordDecoder(Protocol):
    """Says what the records of one topic mean, for tools. A service's plugin gives one for its state topic."""

    def decode(self, record: Record) -> tuple[Any, Any]:
        """(key, value) as JSON values; None for a null.

        Raises `CorruptMessage` for bytes that do not mean anything, which a tool reports and passes over.
        """
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

    def disconnected(self, listener: str, connection_id: int) -> None:
        """A connection is gone; its client hears no answers any more."""
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
