"""The shell of one broker: hosts replicas and services, routes requests, owns the one clock.

Nothing here decides: partitions are decided by `partition.leader`, the cluster by `controller`,
groups by their service. The shell is single-threaded: whoever drives it (an event loop or, embedded,
the caller) calls `submit` and `step` from one thread at a time.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from logkernel.broker.cleaner import Cleaner
from logkernel.broker.cluster import Cluster
from logkernel.broker.fetch_sessions import FetchSessions
from logkernel.broker.log_manager import LogManager
from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.scheduler import Scheduler
from logkernel.broker.service_host.host import LOAD_ALL_AFTER_MS, LOAD_TURN_MS, ServiceHost, extended
from logkernel.broker.timers import Clock, Timers
from logkernel.config.broker import BrokerConfig
from logkernel.config.topic import TopicSettings
from logkernel.contracts import Answer, Codec, RequestContext
from logkernel.errors import (
    KafkaError,
    KafkaStorageError,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    PluginError,
    UnknownServerError,
    UnknownTopicOrPartition,
)
from logkernel.kernel import Kernel
from logkernel.partition.purgatory import Purgatory
from logkernel.vocabulary import CleanupResult, Record, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.handlers.transactions import Verifications
    from logkernel.broker.moves import Move, Moves
    from logkernel.broker.replicas.replica import Replica

log = logging.getLogger("logkernel.broker")

Handler = Callable[[Any, RequestContext, Answer], None]

HANDLERS: Mapping[str, str] = {
    "ProduceRequest": "handlers.produce:produce",
    "FetchRequest": "handlers.fetch:fetch",
    "ListOffsetsRequest": "handlers.offsets:list_offsets",
    "OffsetForLeaderEpochRequest": "handlers.offsets:offset_for_leader_epoch",
    "DeleteRecordsRequest": "handlers.offsets:delete_records",
    "MetadataRequest": "handlers.metadata:metadata",
    "DescribeClusterRequest": "handlers.metadata:describe_cluster",
    "DescribeTopicPartitionsRequest": "handlers.metadata:describe_topic_partitions",
    "CreateTopicsRequest": "metadata_manager:create_topics",
    "DeleteTopicsRequest": "metadata_manager:delete_topics",
    "CreatePartitionsRequest": "metadata_manager:create_partitions",
    "DescribeConfigsRequest": "handlers.configs:describe_configs",
    "AlterConfigsRequest": "handlers.configs:alter_configs",
    "IncrementalAlterConfigsRequest": "handlers.configs:incremental_alter_configs",
    "ListConfigResourcesRequest": "handlers.configs:list_config_resources",
    "DescribeAclsRequest": "handlers.access:describe_acls",
    "CreateAclsRequest": "handlers.access:create_acls",
    "DeleteAclsRequest": "handlers.access:delete_acls",
    "DescribeUserScramCredentialsRequest": "handlers.access:describe_user_scram_credentials",
    "AlterUserScramCredentialsRequest": "handlers.access:alter_user_scram_credentials",
    "DescribeClientQuotasRequest": "handlers.access:describe_client_quotas",
    "AlterClientQuotasRequest": "handlers.access:alter_client_quotas",
    "SaslHandshakeRequest": "handlers.access:sasl_handshake",
    "SaslAuthenticateRequest": "handlers.access:sasl_authenticate",
    "CreateDelegationTokenRequest": "handlers.access:create_delegation_token",
    "RenewDelegationTokenRequest": "handlers.access:renew_delegation_token",
    "ExpireDelegationTokenRequest": "handlers.access:expire_delegation_token",
    "DescribeDelegationTokenRequest": "handlers.access:describe_delegation_token",
    "ElectLeadersRequest": "handlers.cluster_admin:elect_leaders",
    "AlterPartitionReassignmentsRequest": "handlers.cluster_admin:alter_partition_reassignments",
    "ListPartitionReassignmentsRequest": "handlers.cluster_admin:list_partition_reassignments",
    "DescribeLogDirsRequest": "handlers.logdirs:describe_log_dirs",
    "AlterReplicaLogDirsRequest": "handlers.logdirs:alter_replica_log_dirs",
    "UpdateFeaturesRequest": "handlers.cluster_admin:update_features",
    "DescribeQuorumRequest": "handlers.cluster_admin:describe_quorum",
    "UnregisterBrokerRequest": "handlers.cluster_admin:unregister_broker",
    "InitProducerIdRequest": "metadata_manager:init_producer_id",
    "WriteTxnMarkersRequest": "handlers.transactions:write_txn_markers",
    "DescribeProducersRequest": "handlers.transactions:describe_producers",
}
"""Request class → where the core answers it; imported at first use. Services add their own families."""

FALLBACKS: frozenset[str] = frozenset({"InitProducerIdRequest"})
"""Those of them that a service may take over: without a transaction coordinator, plain idempotent producers still get
their ids from the core."""

Flushed = Callable[[BaseException | None], None]
RunFlush = Callable[[Callable[[], None], Flushed], None]


def flush_here(work: Callable[[], None], done: Flushed) -> None:
    """Flush in the caller's thread."""
    try:
        work()
    except OSError as error:
        done(error)
    else:
        done(None)


class ParkedWork(Protocol):
    """What waits in the purgatory."""

    def retry(self) -> None:
        """What it waits for had news: answer, or stay parked."""

    def attempt(self, *, final: bool) -> bool:
        """Answer, as its time is up (`final`)."""


class Broker:
    """One broker over its data directories. `start` opens it, `close` leaves a clean-shutdown mark."""

    def __init__(self, config: BrokerConfig, kernel: Kernel, storage: LogManager, clock: Clock | None = None) -> None:
        self.config = config
        self.kernel = kernel
        self.clock = clock or Clock()
        self.timers = Timers()
        self.node_id = int(config.get("node.id"))
        self.logs = storage
        self.replicas: dict[tuple[str, int], Replica] = {}
        self.parked = Purgatory()
        self._park_timer: Any = None
        self._waking = False
        self.fetch_max_bytes = int(config.get("fetch.max.bytes"))
        slots = int(config.get("max.incremental.fetch.session.cache.slots"))
        self.sessions = FetchSessions(slots, int.from_bytes(os.urandom(4), "big"))
        self.cluster = Cluster(self)
        self.metadata = MetadataManager(self)
        self.scheduler = Scheduler(self)
        self._moves: Moves | None = None
        self.cleaner = Cleaner(self)
        self._handlers: dict[str, Handler] = {}
        self._services: dict[str, ServiceHost] = {}
        self._extensions: dict[str, list[ServiceHost]] = {}
        self._hosts: list[ServiceHost] = []
        self._sharing: dict[ServiceHost, list[ServiceHost]] = {}
        self._soon: deque[Callable[[], None]] = deque()
        self._settling = False
        self._target_codecs: dict[tuple[str, int], Codec] = {}
        self._started = False
        self.run_flush: RunFlush = flush_here
        """How a flush is run; an event loop puts it on a thread."""

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Open the directories, recover what was not closed cleanly, lead what is assigned here."""
        self.logs.open()
        self.metadata.load()
        self.logs.load(self)
        self.metadata.apply_configured_topics()
        for declaration in self.kernel.services():
            self._host(ServiceHost(self, declaration))
        self.timers.at(self.clock.mono_ms() + LOAD_ALL_AFTER_MS, self._load_services)
        self.scheduler.start()
        if self.logs.directories.interrupted:
            self.moves.resume()
        self.cleaner.start()
        self._started = True

    def _host(self, host: ServiceHost) -> None:
        for request in host.declared.requests:
            taken = self._services.get(request)
            if taken is not None or (request in HANDLERS and request not in FALLBACKS):
                owner = f"service {taken.declared.name!r}" if taken is not None else "the broker itself"
                raise PluginError(
                    f"service {host.declared.name!r} wants to answer {request}, which {owner} answers;"
                    f" block one of them by plugins.block"
                )
            self._services[request] = host
        for request in host.declared.extends:
            self._extensions.setdefault(request, []).append(host)
        self._hosts.append(host)

    @property
    def moves(self) -> Moves:
        """Logs that move between directories; made, with all that it needs, when first asked for."""
        if self._moves is None:
            from logkernel.broker.moves import Moves

            self._moves = Moves(self)
        return self._moves

    @property
    def moving(self) -> Mapping[TopicPartition, Move]:
        """The moves under way."""
        return {} if self._moves is None else self._moves.active

    def topics_deleted(self, topics: list[str]) -> None:
        """Tell every service, so that a topic made anew inherits nothing."""
        for host in self._hosts:
            host.topics_deleted(host.foreign(topics))

    def topics_changed(self, topics: list[str]) -> None:
        for host in self._hosts:
            host.topics_changed(host.foreign(topics))

    def control_appended(
        self, name: TopicPartition, producer_id: int, producer_epoch: int, records: Sequence[Record]
    ) -> None:
        """A marker lies in a log; if a service keeps its state there, its machine must see it."""
        for host in self._hosts:
            topic = host.declared.topic
            if topic is not None and topic.name == name.topic:
                host.replay_control(name.partition, producer_id, producer_epoch, records)

    def sharing(self, host: ServiceHost) -> list[ServiceHost]:
        """The services that keep their state in the same topic, `host` the first."""
        found = self._sharing.get(host)
        if found is None:
            topic = host.declared.topic
            others = [] if topic is None else [
                one for one in self._hosts
                if one is not host and one.declared.topic is not None and one.declared.topic.name == topic.name
            ]  # fmt: skip
            found = self._sharing[host] = [host, *others]
        return found

    def _load_services(self) -> None:
        begun_ms = self.clock.mono_ms()
        for host in self._hosts:
            while host.load_next():
                now_ms = self.clock.mono_ms()
                if now_ms - begun_ms >= LOAD_TURN_MS:
                    self.timers.at(now_ms + 1, self._load_services)
                    return

    def close(self) -> None:
        """Flush and close everything; what was acknowledged is on disk when this returns."""
        if not self._started:
            self.logs.abandon()
            return
        self._started = False
        self.kernel.hook.logkernel_broker_stopping(node_id=self.node_id)
        if self._moves is not None:
            self._moves.close()
        self.cleaner.stop()
        self.metadata.close()
        self.logs.close(self)

    # ------------------------------------------------------------ the door (contracts.BrokerDoor)

    @property
    def cluster_id(self) -> str:
        return self.logs.cluster_id

    def serves(self) -> frozenset[str]:
        return frozenset(HANDLERS) | frozenset(self._services)

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        """Those of the services; a finalized level is the one that was set, else the one of a new cluster."""
        levels = self.metadata.image.features
        return {
            name: (low, high, levels.get(name, default))
            for host in self._hosts
            for name, (low, high, default) in host.declared.features.items()
        }

    def features_epoch(self) -> int:
        return self.metadata.image.features_epoch

    def disconnected(self, listener: str, connection_id: int) -> None:
        if self._started:
            for host in self._hosts:
                host.disconnected(listener, connection_id)
            self.settle()

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        """Answer a versionless request, now or later, exactly once."""
        self.ask(request, context, answer)
        if self._soon or self.parked.woken:
            self.settle()

    def ask(self, request: Any, context: RequestContext, answer: Answer) -> None:
        """As `submit`, for who is inside an event that settles when it is done.

        A handler that raises has refused the request as a whole: one that cannot be served is still answered.
        """
        name = type(request).__name__
        handler = self._handlers.get(name)
        try:
            if handler is None:
                handler = self._handlers[name] = self._find_handler(name)
            handler(request, context, answer)
        except (KafkaError, OSError) as error:
            log.error("request refused: request=%s error=%s", name, error, exc_info=True)
            answer(self._refusal(name, request, error))
        except Exception:
            log.exception("request failed: request=%s", name)
            answer(self._refusal(name, request, UnknownServerError("the broker failed; its log says why")))

    def _refusal(self, name: str, request: Any, error: KafkaError | OSError) -> Any:
        refused = KafkaStorageError(str(error)) if isinstance(error, OSError) else error
        host = self._services.get(name)
        if host is not None:
            return host.service.refusal(request, refused.code)
        from logkernel.broker.handlers.refusals import refusal

        return refusal(request, refused)

    def _find_handler(self, name: str) -> Handler:
        host = self._services.get(name)
        if host is not None:
            extensions = self._extensions.get(name)
            return host.handle if extensions is None else partial(extended, host, extensions)
        try:
            module, function = HANDLERS[name].split(":")
        except KeyError:
            raise UnknownServerError(f"nothing here answers {name}") from None
        return partial(getattr(import_module(f"logkernel.broker.{module}"), function), self)

    @cached_property
    def verifications(self) -> Verifications:
        """Transactional writes that wait for their coordinator; made when the first one comes."""
        from logkernel.broker.handlers.transactions import Verifications

        return Verifications(self)

    def compact(self, topic: str, done: Callable[[list[CleanupResult] | BaseException], None]) -> None:
        """Compact a topic now, in the background; see `Cleaner.compact`. Raises `UnknownTopicOrPartition`,
        `PolicyViolation`."""
        self.cleaner.compact(topic, done)

    def expire(
        self, topic: str, done: Callable[[list[CleanupResult] | BaseException], None], *, at_once: bool = False
    ) -> None:
        """Drop what a topic's policies want dropped, now; see `Cleaner.expire`. Raises `UnknownTopicOrPartition`,
        `PolicyViolation`."""
        self.cleaner.expire(topic, done, at_once=at_once)

    def step(self) -> int | None:
        """Run what is due; returns the next deadline (monotonic ms) or None."""
        self.cleaner.workers.hear()
        self.timers.run(self.clock.mono_ms())
        self.settle()
        return self.timers.next_deadline()

    # ------------------------------------------------------------ partitions

    def replica(self, name: TopicPartition) -> Replica:
        """The replica led here; raises what a client must hear where there is none."""
        replica = self.replicas.get(name)
        if replica is None:
            raise self.absence(name.topic, name.partition)(str(name))
        return replica

    def leads(self, replica: Replica) -> bool:
        """False once its topic was deleted or its directory went offline."""
        return self.replicas.get(replica.name) is replica

    def absence(self, topic: str, partition: int) -> type[KafkaError]:
        """Why a partition is not served here."""
        count = self.cluster.partition_count(topic)
        if count is None or not 0 <= partition < count:
            return UnknownTopicOrPartition
        if self.logs.is_offline(topic, partition):
            return KafkaStorageError
        return NotLeaderOrFollower

    def leader_error(self, topic: str, partition: int, leader: int) -> int:
        if leader < 0 or self.logs.is_offline(topic, partition):
            return LeaderNotAvailable.code
        return 0

    def offline_replicas(self, topic: str, partition: int, replicas: tuple[int, ...]) -> list[int]:
        return [self.node_id] if self.logs.is_offline(topic, partition) and self.node_id in replicas else []

    def storage_failed(self, replica: Replica, error: OSError) -> KafkaStorageError:
        """A write failed: its directory goes offline with its partitions, the others go on. Not for a partition that
        was deleted meanwhile: work on it that was under way misses its files."""
        if self.leads(replica):
            self.logs.fail_directory_of(self, replica, error)
        return KafkaStorageError(f"{replica.name}: {error}")

    def target_codec(self, settings: TopicSettings) -> Codec | None:
        """The codec that `compression.type` asks for, None where batches stay as they came."""
        name = settings.compression_type
        if name in ("producer", "uncompressed"):
            return None
        level = getattr(settings, f"compression_{name}_level", None)
        key = (name, -1 if level is None else level)
        codec = self._target_codecs.get(key)
        if codec is None:
            codec = self._target_codecs[key] = self.kernel.codec(name, level)
        return codec

    # ------------------------------------------------------------ parked fetches

    def park(self, work: ParkedWork, deadline_ms: int) -> int:
        """Keep a fetch until it is dropped or `deadline_ms`; returns its number for `wake`."""
        number = self.parked.park(work, deadline_ms)
        timer = self._park_timer
        if timer is None or timer.action is None or deadline_ms < timer.when_ms:
            if timer is not None:
                timer.cancel()
            self._park_timer = self.timers.at(deadline_ms, self._expire_parked)
        return number

    def wake(self, number: int) -> None:
        """A parked fetch has news; it is tried when the request at hand is done."""
        self.parked.wake(number)

    def soon(self, work: Callable[[], None]) -> None:
        """Do `work` when the event at hand is done with: what one service asks of another must not run inside it."""
        self._soon.append(work)

    def settle(self) -> None:
        """Do what was put off, try the fetches whose partitions had news; after every event from outside."""
        if self._soon and not self._settling:
            self._settling = True
            try:
                while self._soon:
                    self._soon.popleft()()
            finally:
                self._settling = False
        if self.parked.woken:
            self._run_woken()

    def _run_woken(self) -> None:
        if self._waking:
            return  # an answer led to another request: the outer loop goes on
        self._waking = True
        try:
            while (work := self.parked.next_woken()) is not None:
                work.retry()
        finally:
            self._waking = False

    def _expire_parked(self) -> None:
        self._park_timer = None
        for work in self.parked.due(self.clock.mono_ms()):
            work.attempt(final=True)
        deadline = self.parked.next_deadline()
        if deadline is not None:
            self._park_timer = self.timers.at(deadline, self._expire_parked)
