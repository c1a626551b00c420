"""A service answers a family of requests, and keeps its state in a log."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.contracts.assignor import Assignor
from logkernel.contracts.common import RequestContext
from logkernel.contracts.task_assignor import TaskAssignor
from logkernel.vocabulary import AclOperation, Record


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
        """These topics were created, got more partitions, or have replicas on other brokers or in other racks.
        `ClusterView` shows them already."""
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

    def allowed(self, sender: RequestContext, operation: AclOperation, topics: Sequence[str]) -> Sequence[str]:
        """Return those of `topics`, in their order, with which the sender of a request may do `operation`: all of them
        where the broker has no authorizer, or for an internal sender. Who may CREATE on the cluster may create all.
        Raises `UnknownServerError` where the authorizer fails."""
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

    def task_assignor(self, name: str) -> TaskAssignor:
        """Return the task assignor called `name`. Raises `PluginError`."""
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

    def racks(self, topic: str) -> Sequence[Collection[str]]:
        """Return for each partition the racks of its replicas: a rack as often as brokers of it have one, alive or not.
        Left out are brokers without a rack, and those that this broker never saw alive. Nothing for a topic that this
        broker does not know."""
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
