"""Contracts of the objects that plugins provide, and of the objects that plugins are given.

A hook (see `hookspecs`) is called when its object is set up: for a topic, partition, listener, broker or producer, and
for an ISR policy again when the topic's settings change; never per record or batch. The object that it returns is then
called directly. An object keeps its own state.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable
from uuid import UUID

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.errors import PluginError
from logkernel.vocabulary import ANONYMOUS, Principal, Record, SegmentFacts

Buffer = bytes | bytearray | memoryview


class Settings(Protocol):
    """Typed settings by their full names: a broker's, or a plain dict."""

    def get(self, name: str, default: Any = None, /) -> Any: ...


# ---------------------------------------------------------------- partitioner


@runtime_checkable
class Partitioner(Protocol):
    """Chooses the partition of a record. One object for each topic and producer; called by one thread at a time."""

    def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
        """Return a partition in `range(partitions)`. `available`: those with a leader, ascending; may be empty."""
        ...

    def on_batch_full(self, partition: int) -> None:
        """A batch for `partition` is complete: a sticky partitioner now chooses another partition (KIP-480)."""
        ...


# ---------------------------------------------------------------- clients


class Interceptor(Protocol):
    """Sees a producer's records before they are sent, and their acknowledgements. Its errors are logged and ignored."""

    def on_send(self, record: Any) -> Any:
        """Return the `ProducerRecord` to send in place of `record`, whose key and value are not serialized yet."""
        ...

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        """Take the `RecordMetadata` or the error of a record, before the callbacks of `send`.

        Called in the thread that steps the producer."""
        ...

    def close(self) -> None: ...


class MetricsReporter(Protocol):
    """Gets a client's metrics at the end of each sample window (`metrics.sample.window.ms`), and when it closes."""

    def report(self, metrics: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


# ---------------------------------------------------------------- query engines


@runtime_checkable
class Connector(Protocol):
    """Offers the log to a query engine as tables and streams, and runs pipelines there."""

    def register(self, session: Any) -> None:
        """Register the log with a session of the engine, e.g. a `SparkSession`."""
        ...

    def pipeline(self, path: str, given: Mapping[str, str]) -> Pipeline:
        """Return the pipeline that the file `path` describes, checked. `given` are parameters. Raises `ConfigError`."""
        ...


class Pipeline(Protocol):
    """Jobs between logs and tables, read and checked. Nothing runs before `run`."""

    name: str

    def plan(self, only: Collection[str] = ()) -> Sequence[Mapping[str, Any]]:
        """Return what each step, or each step in `only`, reads, does and writes.

        Raises `ConfigError` for a name that no step has."""
        ...

    def run(
        self, tell: Callable[[Mapping[str, Any]], None], only: Collection[str] = (), master: str | None = None
    ) -> bool:
        """Run the steps in order; return False if one failed, which ends the run.

        `tell` gets the result of each step; the row of a failed step says why under "failed". Raises `ConfigError` for
        mistakes that only the engine can find."""
        ...


# ---------------------------------------------------------------- codec


@runtime_checkable
class Codec(Protocol):
    """Compresses the record section of a batch; called once a batch.

    It implements one of the four codecs of Kafka's batch format: every client must be able to read its output.
    """

    name: str
    codec_id: int
    """Bits 0 to 2 of the batch's attributes; 1 gzip, 2 snappy, 3 lz4, 4 zstd."""

    def compress(self, data: Buffer) -> bytes: ...

    def decompress(self, data: Buffer, limit_bytes: int) -> bytes:
        """Return the plain bytes.

        Raises `CorruptMessage` for damaged input, and `MessageTooLarge` as soon as the output would exceed
        `limit_bytes`, before it takes memory for it."""
        ...

    def decompress_legacy(self, data: Buffer, limit_bytes: int) -> bytes:
        """As `decompress`, for magic 0 and 1, whose lz4 frames have a wrong header checksum."""
        ...


# ---------------------------------------------------------------- election


@frozen
class Candidates:
    """What an election strategy may know: node ids. `assignment` is in order of preference."""

    assignment: tuple[int, ...]
    isr: tuple[int, ...]
    alive: frozenset[int]
    unclean_allowed: bool = False


@frozen
class Elected:
    """The result of an election: the leader's node id and the first ISR. `clean`: the leader was in the ISR."""

    leader: int
    isr: tuple[int, ...]
    clean: bool = True


@runtime_checkable
class ElectionStrategy(Protocol):
    """Elects a leader for a partition that has lost its leader."""

    def elect(self, candidates: Candidates) -> Elected | None:
        """Return the new leader with its first ISR, or None if no replica may lead."""
        ...


# ---------------------------------------------------------------- in-sync replicas


@frozen
class FollowerFacts:
    """What an ISR policy may know of one follower, at one moment. Times are ages in ms."""

    node: int
    is_member: bool
    """Whether it is in the ISR. The policy is called for members twice in each `replica.lag.time.max.ms`, and for other
    followers when they fetch."""
    lag_records: int | None
    """Leader's log end offset minus the follower's; None before its first fetch in this leader epoch."""
    caught_up_ms: int
    """Time since it last had all of the leader's records; for a member at most the age of the leader epoch."""
    fetched_ms: int
    """Time since it last fetched, or last had all records of an idle leader; for a member at most the age of the
    leader epoch."""
    lag_time_max_ms: int
    """`replica.lag.time.max.ms` of the leader's broker."""


@runtime_checkable
class IsrPolicy(Protocol):
    """Says which followers of a partition count as in sync. One object for each partition that a broker leads.

    It decides which replicas are in the ISR, not what the ISR does: the high watermark always waits for all of the
    ISR, and does not advance while the ISR is smaller than `min.insync.replicas`. A replica joins only if it also has
    all committed records and its broker is alive."""

    def is_in_sync(self, follower: FollowerFacts) -> bool:
        """Return True for a member to stay or another follower to join, False for a member to leave. Depend on the
        facts only."""
        ...


# ---------------------------------------------------------------- placement


@frozen
class PlacementFacts:
    """What a placement may know when a topic is created or gets more partitions. It places partitions `first`,
    `first` + 1, … of the topic."""

    partitions: int
    """Number of partitions to place."""
    factor: int
    """Replicas of each; `1 <= factor <= len(brokers)`."""
    brokers: tuple[tuple[int, str | None], ...]
    """(node id, rack) of the live brokers, ascending by node id; rack is None if the broker has no `broker.rack`."""
    draw: Callable[[int], int]
    """Returns a random number from 0 up to the argument, excluded. Use no other randomness."""
    first: int = 0
    """Number of partitions that the topic has already."""
    leader_of_first: int | None = None
    """The first replica of the topic's partition 0; None for a new topic."""


@runtime_checkable
class PlacementStrategy(Protocol):
    """Chooses the brokers that get the replicas of new partitions."""

    def place(self, facts: PlacementFacts) -> Sequence[Sequence[int]]:
        """Return the replicas of each partition: `facts.factor` different node ids, the preferred leader first."""
        ...


# ---------------------------------------------------------------- cleanup


class BatchView(Protocol):
    """A batch of data as a keep-rule or compaction strategy sees it: magic 2, decompressed, not of an aborted
    transaction.

    `section[start:end]` holds its `count` encoded records, in the form that `record.loops` takes.
    """

    base_offset: int
    last_offset: int
    count: int
    section: Buffer
    start: int
    end: int
    base_timestamp_ms: int

    def columns(self) -> Any:
        """Return the records as `record.loops.Columns`: offsets, timestamps, keys, values, headers as in Arrow."""
        ...

    def records(self) -> list[Record]: ...


@runtime_checkable
class CompactionStrategy(Protocol):
    """Says which record of a key stays when a log is compacted: the one with the highest version, and the last of
    those with equal ones (KIP-280). One object for each rewrite, used by one worker thread.

    `cleanup.policy=compact` asks for the one that the topic's `compaction.strategy` names."""

    def versions(self, batch: BatchView) -> Sequence[int] | bytes:
        """Return the version of each record of the batch, an int64; or all of them as bytes in native order.

        A record's version depends on the record only: it is asked for twice, and again in the next rewrite, where
        other records of its batch may be gone. An exception ends the rewrite; the log stays as it is, and is served."""
        ...


def no_strategy(name: str) -> CompactionStrategy:
    """Raise `PluginError`: where there is no kernel, no plugin has a compaction strategy."""
    raise PluginError(f"no plugin provides the compaction strategy {name!r}; ask a kernel for it")


@frozen
class LogFacts:
    """What a cleanup policy may know of a log, at one moment. `wall_ms` is the time in ms since 1970."""

    topic: str
    partition: int
    segments: tuple[SegmentFacts, ...]
    log_start_offset: int
    high_watermark: int
    wall_ms: int
    settings: Any
    """The topic's `TopicSettings`."""
    last_stable_offset: int = -1
    """Every transaction below this offset has ended."""
    clean_offset: int | None = None
    """The end of the last rewrite (`cleaner-offset-checkpoint`); None before the first."""
    table_bytes: int = 0
    """Memory for what a keep-rule learns (its share of `log.cleaner.dedupe.buffer.size`)."""
    table_load_factor: float = 0.9
    """Largest load of a hash table in that memory (`log.cleaner.io.buffer.load.factor`)."""
    seed: bytes = bytes(16)
    """16 random bytes: the policy's only source of randomness."""
    asked: bool = False
    """A user asked for this cleanup: ignore thresholds that decide *when* to clean, such as a dirty ratio."""
    strategy: Callable[[str], CompactionStrategy] = no_strategy
    """Returns a new compaction strategy of that name, for this topic. Raises `PluginError`."""


@frozen
class DropBefore:
    """Delete the segments that lie wholly below `offset`, and move the log start to it. `reason` is logged."""

    offset: int
    reason: str


@runtime_checkable
class KeepRule(Protocol):
    """Decides which records survive a rewrite. One object for each rewrite, used by one worker thread.

    First `learn` gets every batch from `Rewrite.start` to `Rewrite.end`, in order; then `keep` gets every batch from
    the log's start on. Work done without the GIL does not delay the broker.
    """

    def learn(self, batch: BatchView) -> int | None:
        """Learn from a batch. Return None, or the first offset for which there was no room: the rewrite then ends
        there, and `keep` gets it as `end`."""
        ...

    def keep(self, batch: BatchView, end: int) -> bytearray | None:
        """Return a byte for each record, 0 to drop it; None keeps all. Keep every record at `end` or later."""
        ...


class BatchRun(Protocol):
    """Adjacent small batches as they lie in a log: magic 2, valid, not compressed, not transactional.

    `rows` holds one `record.pure_compaction.ROW` a batch: position in `data`, bytes, records, base offset, last offset,
    base timestamp, largest timestamp. The records begin 61 bytes after the position.
    """

    data: Buffer
    rows: bytes


@runtime_checkable
class RunRule(KeepRule, Protocol):
    """A keep-rule that takes many small batches in one call. Optional: other rules get them one by one, which costs
    more than judging them."""

    def learn_run(self, run: BatchRun) -> int:
        """Learn from the first batches, in order; return how many. `learn` gets the next one."""
        ...

    def keep_run(self, run: BatchRun, end: int) -> bytearray:
        """Return one byte a batch: 0 drop all its records, 1 keep all and none has a null value, 2 ask `keep`. The
        result may be shorter than the run: `keep` gets the batch after the last byte."""
        ...


@frozen
class Rewrite:
    """Rewrite the closed segments below `end`, with only the records that `rule` keeps.

    Independent of the rule: offsets and order do not change. Batches keep their base and last offset, producer and
    sequence. Data of aborted transactions are dropped, and markers once their data are gone. The last batch of a
    producer is kept, empty if need be.
    """

    start: int
    """The first offset that the rule learns from."""
    end: int
    """Base offset of a segment. Records at it or later are not touched, nor are those of open transactions."""
    rule: KeepRule
    reason: str
    priority: float = 0.0
    """Among all logs of a broker, the one with the highest priority is rewritten first."""
    tombstones: bool = True
    """Drop a null value that the rule keeps, once `delete.retention.ms` have passed since a rewrite first saw it."""


@runtime_checkable
class CleanupPolicy(Protocol):
    """Turns facts about a log into a plan. It changes nothing itself."""

    def plan(self, log: LogFacts) -> Sequence[DropBefore | Rewrite]: ...


# ---------------------------------------------------------------- produce interceptor


@frozen
class WriteFacts:
    """What a produce interceptor may know of a write, beside its records."""

    topic: str
    partition: int
    client: RequestContext
    """The sender; `client_id` is what it says of itself."""
    wall_ms: int
    """The broker's time, in ms since 1970."""
    transactional: bool
    """The records are part of a transaction."""


@frozen
class Refusal:
    """Returned by a produce interceptor in place of a record: the client gets INVALID_RECORD with `reason`, of which
    500 characters are sent, and nothing of the record's batch is written (KIP-467)."""

    reason: str


@runtime_checkable
class ProduceInterceptor(Protocol):
    """Sees each record that clients write to a partition, before it is in the log. One object for each partition that a
    broker leads; called on the broker's thread: what it takes, all clients wait for.

    Offsets, sequences and the number of records do not change: it can replace a record or refuse it, but not drop it.
    A batch that the log holds already (a producer's retry) is not shown again."""

    def on_record(self, record: Record, write: WriteFacts) -> Record | Refusal:
        """Return the record to store, `record` itself or another, or a `Refusal`. `record.offset` is its place in the
        batch. The result has to pass the checks of the topic's settings, such as `max.message.bytes`.

        Depend on the arguments only. What it raises fails the write of this batch, and nothing else; the client gets
        the code of a `KafkaError`, or else UNKNOWN_SERVER_ERROR with the plugin's name."""
        ...


# ---------------------------------------------------------------- fetch filter


@frozen
class ReadFacts:
    """What a fetch filter may know of a read, beside its records. One object for each partition of a fetch."""

    topic: str
    partition: int
    client: RequestContext
    """The reader; `client_id` is what it says of itself. `client.internal`: a service, such as that of share groups,
    reads for its clients."""
    rack_id: str
    """The reader's `client.rack`, empty if it has none."""


@runtime_checkable
class FetchFilter(Protocol):
    """Decides which records of a partition a consumer gets. One object for each partition that a broker leads; called
    on the broker's thread: what it takes, all clients wait for. Followers and control records are not filtered.

    Offsets stay as they are. Where no record passes, a consumer gets an empty batch, as compaction leaves them, and
    reads on behind it."""

    def passes(self, record: Record, read: ReadFacts) -> bool:
        """Return True if the reader gets the record, else False. An exception fails this partition's fetch."""
        ...


# ---------------------------------------------------------------- quota


@frozen
class Usage:
    """What a client has just used of a topic, in one request to one partition."""

    topic: str
    partition: int
    client: RequestContext
    """Who; `client_id` is what it says of itself. `client.internal`: a service, on behalf of its clients."""
    written: int
    """Bytes of record batches that it sent; 0 for a fetch."""
    read: int
    """Bytes of record batches that it is sent; 0 for a produce."""
    mono_ms: int
    """Monotonic time in ms."""


@runtime_checkable
class Quota(Protocol):
    """Limits what clients use of a topic. One object for each topic on a broker, called on the broker's thread.

    The client is told the time as `throttle_time_ms`, and its connection is not read for that time (KIP-219): what it
    has sent or asked for is still answered. Followers are not limited."""

    def throttle(self, usage: Usage) -> int:
        """Take the usage into account; return for how many ms the client is to be held back, 0 for not at all. More
        than 60,000 counts as 60,000. An exception fails the partition's part of the request."""
        ...


# ---------------------------------------------------------------- assignor


@frozen
class Subscriber:
    """A member of a consumer group, as an assignor sees it."""

    topics: frozenset[UUID]
    """Ids of the existing topics that the member subscribes to."""
    assigned: frozenset[tuple[UUID, int]]
    """(topic id, partition) of its last assignment; some may be deleted or no longer subscribed to."""
    instance_id: str | None = None
    rack_id: str | None = None


@frozen
class GroupFacts:
    """What an assignor may know of a group."""

    members: Mapping[str, Subscriber]
    """Member id → member, sorted by id; never empty."""
    partitions: Mapping[UUID, int]
    """Topic id → number of partitions, of every topic with a subscriber."""


@runtime_checkable
class Assignor(Protocol):
    """Assigns partitions to the members of a consumer group (KIP-848). Pure: equal facts give equal assignments."""

    name: str

    def assign(self, group: GroupFacts) -> Mapping[str, Iterable[tuple[UUID, int]]]:
        """Return member id → its (topic id, partition)s; a member that is left out gets none.

        Give each partition to one member that subscribes to its topic; other results are refused. Move few partitions:
        each move interrupts a reader."""
        ...


# ---------------------------------------------------------------- coordination


@frozen
class MetadataChange:
    """One durable fact of the cluster, e.g. kind "topic", key "orders", value {...}. A value of None deletes it."""

    kind: str
    key: str
    value: Mapping[str, Any] | None


@runtime_checkable
class Coordination(Protocol):
    """Stores the cluster's metadata as a sequence of changes. The controller machine interprets them."""

    def changes(self) -> Iterator[MetadataChange]:
        """Return every change stored so far, in order."""
        ...

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        """Store all of `changes`, or none. They are durable when it returns."""
        ...

    def kept(self) -> int:
        """Return the number of changes stored now. The broker replaces them when most are outdated."""
        ...

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        """Store `changes`, which describe the same state, in place of all others; durable when it returns.

        After a crash, either the old changes or these are there."""
        ...

    def close(self) -> None: ...


class SessionEvents(Protocol):
    """What a session of a `SharedCoordination` reports to its broker, always from within `SharedCoordination.poll`."""

    def on_changes(self, changes: Sequence[MetadataChange]) -> None:
        """Changes were committed, by any session including this one. Each fact is reported after its last change, with
        the value that it has then: values in between may be left out, and one may come twice, but none after a newer.

        Settings, users, quotas, access rules and features are reported to every session, announcements to the
        controller at least. The controller's own commits may be reported to no session, because it already knows
        them."""
        ...

    def on_controller(self, node_id: int | None, term: int) -> None:
        """`node_id` is the controller of `term`; None while there is no controller. Terms only grow."""
        ...

    def on_session(self, state: str) -> None:
        """The state of the session changed.

        "unsure": the session may be lost; commit nothing. "back": it is alive and missed nothing. "lost": its
        announcement and campaign are gone; start a new session."""
        ...


@runtime_checkable
class SharedCoordination(Coordination, Protocol):
    """A coordination that several brokers share. Each broker has a session of its own.

    The fact of a broker ("broker", node id) lives as long as its session. The broker that `campaign` elects may commit
    as controller. Each such commit names its term, so that a deposed controller is refused.

    Every call raises `KafkaStorageError` if the session has ended or is unsure, or if no answer came. A commit without
    an answer may have been stored. The session is unsure from then on: the next `poll` reports it, no commit is
    possible before the session is "back", and then `changes` shows what was stored. A commit of more than a few dozen
    facts may be stored in parts; if it raises, some of them may have been stored.

    A session that only reads (`changes`, `broker_epochs`, `read_controller`) changes nothing.
    """

    stale_ms: int
    """How long in ms a killed broker's registration may remain. A restarted broker retries its own for this long."""

    def changes(self, kinds: Collection[str] | None = None) -> Iterator[MetadataChange]:
        """Return the facts that are stored now, of `kinds` or of all, registrations included. `poll` reports later
        ones, unless they are returned here already."""
        ...

    def renew(self) -> SharedCoordination:
        """Begin a new session in place of this one, which is lost. Raises `KafkaError` if that is not possible at once;
        try again later, on this session."""
        ...

    def announce(self, node_id: int, value: Mapping[str, Any]) -> int:
        """Register the broker until the session ends; return its broker epoch, larger than any before (KIP-380).

        Raises `DuplicateBrokerRegistration` while another session has that node id: that of another broker, or of an
        earlier incarnation of this one that was killed and whose session has not ended yet."""
        ...

    def campaign(self, node_id: int) -> int | None:
        """Try to become controller: return the new term, or None if another broker is the controller. `on_controller`
        reports when to try again."""
        ...

    def resign(self) -> None:
        """Stop being the controller; does nothing if this session is not."""
        ...

    def commit_as_controller(self, changes: Sequence[MetadataChange], term: int) -> None:
        """As `commit`, if `term` is the current one. Raises `StaleControllerEpoch` otherwise, and stores nothing more.

        A long commit may be stored in parts, in order; facts of kind "incarnation" are stored after all others."""
        ...

    def broker_epochs(self) -> Mapping[int, int]:
        """Return node id → broker epoch of every announced broker."""
        ...

    def read_controller(self) -> tuple[int | None, int]:
        """Return (node id of the controller or None, term) as of now. Subscribers get `on_controller` instead."""
        ...

    def partition_count(self, topic: str) -> int | None:
        """Return the number of partitions of a topic as it is stored now, None if there is no such topic. Includes
        every commit of any session that was answered before this call."""
        ...

    def subscribe(self, events: SessionEvents, wakeup: Callable[[], object]) -> None:
        """Report events to `events` from now on. Earlier commits are in `changes`.

        `wakeup` is called, from any thread, when there may be something to `poll`."""
        ...

    def poll(self) -> None:
        """Report pending events to the subscriber, on the calling thread."""
        ...


class StateLog(Protocol):
    """A small durable log that the broker lends to a plugin."""

    def append(self, records: Sequence[Record], *, sync: bool) -> int:
        """Append `records` as one batch; return the next offset. With `sync` they are durable when it returns."""
        ...

    def replace(self, records: Sequence[Record]) -> None:
        """Replace everything in the log by `records`; durable when it returns.

        After a crash, either the old records or these are there. If it raises, the log holds one of the two, and
        refuses appends until it is reopened."""
        ...

    def records(self) -> Iterator[Record]: ...

    def close(self) -> None: ...


# ---------------------------------------------------------------- services


@frozen
class RequestContext:
    """The sender of a request. `capabilities` name what depends on the protocol version (see `requests`)."""

    client_id: str | None = None
    client_host: str = ""
    connection_id: int = 0
    """Unique within its listener."""
    listener: str = ""
    software_name: str = ""
    software_version: str = ""
    capabilities: frozenset[str] = frozenset()
    internal: bool = False
    """Sent by the broker itself or one of its services, not by a client."""
    commands: bool = False
    """Came over an inter-broker listener: only there the broker accepts a replica's fetch, a controller's order and a
    leader's proposal."""
    mute: Callable[[int], None] | None = None
    """Takes ms: for so long no further request is read from the sender's connection, whatever is answered. None where
    there is no connection."""
    principal: Principal = ANONYMOUS
    """Who the client is, as its listener established it."""


Answer = Callable[[Any], None]
"""Takes the one response to a request. Call it at once or later, from the broker's thread."""


@frozen
class ServiceTopic:
    """The internal topic that holds a service's state. Clients can neither write nor delete it.

    It is created by the service's first write, or when a client first asks for it.
    """

    name: str
    partitions_setting: str
    """The broker setting with its number of partitions."""
    config: Mapping[str, str]
    """Topic settings with fixed values."""
    replication_setting: str = ""
    """The broker setting with its number of replicas (empty: default.replication.factor). With fewer brokers there are
    fewer replicas."""
    config_settings: Mapping[str, str] = field(factory=dict)
    """Topic setting → the broker setting with its value, e.g. of segment.bytes. A value below the topic setting's
    minimum is raised to it."""
    written_by: tuple[str, ...] = ()
    """Client ids that may produce to it nevertheless."""
    commit_timeout_setting: str = ""
    """The broker setting with the time in ms that what the service writes may wait for the replicas (empty: 5 s)."""


@frozen
class ServiceDeclaration:
    """The requests that a service answers, and its topic. The service itself is created at its first request."""

    name: str
    requests: tuple[str, ...]
    """Names of versionless request classes, e.g. "JoinGroupRequest"."""
    topic: ServiceTopic | None = None
    features: Mapping[str, tuple[int, int, int]] = field(factory=dict)
    """Feature → (lowest level, highest, level of a new cluster), e.g. {"group.version": (0, 1, 1)} (KIP-584)."""
    asks_all: tuple[str, ...] = ()
    """Requests that are sent to every shard, e.g. "ListGroupsRequest"; each broker answers for its own shards."""
    extends: tuple[str, ...] = ()
    """Requests of another service to whose response this one adds, e.g. its own type of group to ListGroups. Both
    services are asked, and `Extension.extend` of this one merges the responses."""


@mutable
class Decision:
    """What a service's machine wants done, in this order.

    `records` are appended to the shard's log as one batch, then replayed into the machine. `answers` and `sends` go
    out when those records, and all that the machine appended before, are committed. If the append fails, the machine is
    rebuilt from the log, `sends` are dropped, and each answer is replaced by `Service.refusal` of its request.
    `replies` go out at once, whether the append succeeds or not.
    """

    records: list[Record] = field(factory=list)
    producer: tuple[int, int] | None = None
    """(producer id, epoch) of the transaction that `records` belong to; None: of no transaction. Records of an open
    transaction are replayed by `TransactionalMachine.replay_pending`."""
    answers: list[tuple[int, Any]] = field(factory=list)
    """(ticket, response)."""
    replies: list[tuple[int, Any]] = field(factory=list)
    sends: list[tuple[Any, Any]] = field(factory=list)
    """(token, versionless request) to the broker itself or another service. `ServiceMachine.on_response(token,
    response, ...)` gets the response. A rebuilt machine gets no response to requests of its predecessor: its
    `on_loaded` must send again what its log shows as unfinished."""


class ServiceMachine(Protocol):
    """The state of one shard. Pure: it has no clock, socket, file or randomness.

    `wall_ms` is the time in ms since 1970, `mono_ms` monotonic time in ms. The broker calls from one thread, and passes
    the next event only after a decision's records were replayed. Services may share a topic: each machine then gets all
    of its records, and must ignore those of others.
    """

    def on_request(
        self, request: Any, context: RequestContext, ticket: int, wall_ms: int, mono_ms: int
    ) -> Decision: ...

    def replay(self, record: Record) -> None:
        """Apply one record of the shard's log. Durable state changes here only."""
        ...

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        """The log was replayed to its end. Start soft state (sessions, timers) here."""
        ...

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision: ...

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        """Take the response to the request of `Decision.sends` with this token."""
        ...

    def on_topics_changed(self, topics: Sequence[str], wall_ms: int, mono_ms: int) -> Decision:
        """These topics were created, or got more partitions. `ClusterView` shows them already."""
        ...

    def on_topics_deleted(self, topics: Sequence[str], wall_ms: int, mono_ms: int) -> Decision:
        """These topics were deleted. Drop their state: a new topic may get the same name."""
        ...

    def next_deadline(self) -> int | None:
        """Return the monotonic time in ms at which `on_timer` is due, or None."""
        ...


@runtime_checkable
class TransactionalMachine(Protocol):
    """Further methods of a machine whose log transactions may write to (`Decision.producer`)."""

    def replay_pending(self, record: Record, producer_id: int, producer_epoch: int) -> None:
        """Apply a record that takes effect once its producer's transaction is committed."""
        ...

    def replay_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        """Apply the end of a producer's transaction: its pending records take effect, or are dropped."""
        ...


@runtime_checkable
class BulkMachine(Protocol):
    """A further method of a machine that applies many records faster than one by one. A start reads whole logs."""

    def replay_many(self, records: Sequence[Record]) -> None:
        """Do the same as `ServiceMachine.replay` of each record in turn."""
        ...


@runtime_checkable
class ColumnarMachine(Protocol):
    """A further method of a machine that applies a batch without creating its records one by one."""

    def replay_columns(self, columns: Any) -> bool:
        """Do the same as `ServiceMachine.replay` of each record of a batch in turn; `columns` are those records as
        `record.loops.Columns`, of no transaction. Return False to get them as records, with nothing applied."""
        ...


@runtime_checkable
class ConnectionMachine(Protocol):
    """A further method of a machine with state that lasts as long as a client is connected."""

    def on_disconnected(self, listener: str, connection_id: int, wall_ms: int, mono_ms: int) -> Decision:
        """The connection (see `RequestContext`) was closed."""
        ...


class ClusterView(Protocol):
    """What a service may know of the cluster. Every call returns the current state."""

    def topic_names(self) -> Sequence[str]:
        """Return the names of all topics, internal ones included, sorted."""
        ...

    def is_internal(self, topic: str) -> bool:
        """Whether the topic holds a service's state, or would if it existed."""
        ...

    def next_producer_id(self) -> int:
        """Return a producer id that was never returned before, not even before a crash. Raises `KafkaError`."""
        ...

    def feature_level(self, name: str) -> int:
        """Return the finalized level of a feature, e.g. "transaction.version" (KIP-584); 0 if it is disabled."""
        ...

    def assignor(self, name: str) -> Assignor:
        """Return the assignor called `name`. Raises `PluginError`."""
        ...

    def topic_setting(self, topic: str, name: str) -> Any:
        """Return a setting of an existing topic, typed."""
        ...

    def group_setting(self, group_id: str, name: str) -> Any:
        """Return a setting of a group (e.g. "share.auto.offset.reset"), typed: the group's, moved into the broker's
        bounds, or the broker's."""
        ...

    def offsets(self, topic: str, partition: int) -> tuple[int, int, int] | None:
        """Return (log start, last stable offset, high watermark) of a partition led here, else None."""
        ...

    def leader_epoch(self, topic: str, partition: int) -> int | None:
        """Return the leader epoch of a partition led here, at least the latest in its log; else None."""
        ...

    def partition_count(self, topic: str) -> int | None:
        """Return the topic's number of partitions, None if this broker does not know the topic. The topic may exist
        nevertheless: a broker that just started, or was cut off, has not got all metadata from the controller yet."""
        ...

    def find_partition_count(self, topic: str) -> int | None:
        """Like `partition_count`, but asks the coordination, so None means that there is no such topic. Call it seldom.
        Raises `KafkaError` if there is no answer."""
        ...

    def topic_id(self, topic: str) -> Any: ...
    def topic_name(self, topic_id: Any) -> str | None: ...
    def brokers(self, listener: str) -> Sequence[tuple[int, str, int, str | None]]:
        """Return (node id, host, port, rack) of every live broker, as clients of that listener reach it."""
        ...

    def coordinator(self, topic: str, key: str, listener: str) -> tuple[int, str, int, str | None] | None:
        """Return the broker that leads the partition of a service's topic that holds `key` (see `requests.sharding`),
        or None while it has no leader. A missing topic is created."""
        ...


class Service(Protocol):
    """Answers a family of requests, and keeps its state in a log of its own."""

    def machine(self, shard: int, ids: Callable[[], str]) -> ServiceMachine:
        """Return a new, empty machine for a shard. `ids` returns unique strings (member ids)."""
        ...

    def split(self, request: Any, shards: int) -> Sequence[tuple[int, Any]]:
        """Return (shard, part of the request) for each shard concerned. If there are no parts, `join` builds the answer
        alone. If the only part is `request` itself, its response is the answer."""
        ...

    def join(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        """Return one response made of the parts' responses, which are in the order of `split`."""
        ...

    def refusal(self, request: Any, code: int) -> Any:
        """Return the response that `request` failed with the protocol error `code`."""
        ...


@runtime_checkable
class Extension(Protocol):
    """A further method of a service whose declaration `extends` requests of others."""

    def extend(self, request: Any, response: Any, own: Any, context: RequestContext) -> Any:
        """Return one response made of the owner's `response` and of `own`, the result of this service's `join`."""
        ...


@runtime_checkable
class RecordDecoder(Protocol):
    """Decodes the records of one topic for tools. A service's plugin provides one for its topic."""

    def decode(self, record: Record) -> tuple[Any, Any]:
        """Return (key, value) as JSON values; None for a null.

        Raises `CorruptMessage` for bytes that it cannot decode; a tool reports and skips the record.
        """
        ...


# ---------------------------------------------------------------- transport


class BrokerDoor(Protocol):
    """What a transport's listening half may call on the broker."""

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        """Submit a versionless request. An error of the request is answered, never raised."""
        ...

    def serves(self) -> frozenset[str]:
        """Return the names of the request classes that the broker answers, over any listener."""
        ...

    def commands(self, listener: str) -> frozenset[str]:
        """Return the names of the requests answered only over inter-broker listeners, if `listener` is one; else an
        empty set. Requests over such a listener have `RequestContext.commands`."""
        ...

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        """Return feature name → (min, max, finalized) level, for ApiVersions (KIP-584)."""
        ...

    def features_epoch(self) -> int:
        """Return a number that grows with every change of a finalized level."""
        ...

    def disconnected(self, listener: str, connection_id: int) -> None:
        """Report that a connection was closed; its client gets no more answers."""
        ...


class Listener(Protocol):
    """A bound address of a transport."""

    name: str
    host: str
    port: int
    """The bound port, never 0."""

    async def close(self) -> None:
        """Stop accepting, wait a moment for pending answers to go out, and close every connection."""
        ...


class Transport(Protocol):
    """Carries requests and responses between clients and brokers."""

    async def listen(self, name: str, host: str, port: int, door: BrokerDoor, settings: Any) -> Listener:
        """Listen on an address; port 0 picks a free one. `settings` are the broker's. Raises `OSError`."""
        ...

    def connect(self, host: str, port: int, settings: Mapping[str, Any]) -> Any:
        """Return a blocking channel: `call(request) -> response`, `send(request, withheld=frozenset()) -> Future`,
        `features`, `close()`.

        `features` are the peer's finalized feature levels; `withheld` names capabilities that a request must not use.
        Raises `NetworkException` if no connection can be made.
        """
        ...

    async def connect_async(self, host: str, port: int, settings: Mapping[str, Any]) -> Any:
        """As `connect`, for the running event loop: `send` returns an `asyncio.Future`, which is never done before the
        call returns. Responses come in the order of requests. `on_closed`, where the caller sets it, is called with the
        reason when the channel closes, after every open request has failed with `NetworkException`."""
        ...


Failed = Callable[[Exception], None]


class PeerTransport(Protocol):
    """Sends a broker's requests to the brokers of its cluster, itself included.

    To one broker, order is kept within a controller's orders, within fetches and within requests to the controller, not
    between these groups: each request arrives in its group's order, or fails.
    """

    def send(self, target: int, request: Any, answer: Answer, failed: Failed, timeout_ms: int) -> None:
        """Send `request` to broker `target`. Exactly one of `answer` and `failed` is called, never from within this
        call; none after `close`. `failed` gets a `NetworkException` if the broker cannot be reached, or the connection
        breaks before its answer. A connection without an answer for `timeout_ms` is closed."""
        ...

    def close(self) -> None:
        """Send nothing more, and make no more calls of `answer` or `failed`."""
        ...
