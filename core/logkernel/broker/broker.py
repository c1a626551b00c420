"""One broker: builds its parts, starts and closes them, and carries out what the controller decides.

The rules are elsewhere: `partition.leader` decides about partitions, `controller` about the cluster, services about
groups. Decided here is only how the parts join: whether the broker is a member of a cluster, over which listeners other
brokers command it, and, if it stands alone, which partitions it opens and leads after a commit.

A broker is single-threaded: its driver, an event loop or the caller of an embedded log, calls `submit` and `step` from
one thread at a time. `turn` says what one turn is, the package what the parts are.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from logkernel.broker.cleaner import Cleaner
from logkernel.broker.cleanup_policies import CleanupPolicies
from logkernel.broker.cluster_view import LiveClusterView
from logkernel.broker.configured_topics import ClusterTopics, ConfiguredTopics
from logkernel.broker.handlers.context import HandlerContext
from logkernel.broker.log_manager import LogManager
from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.missing_plugins import tell_missing
from logkernel.broker.moves import Moves
from logkernel.broker.purgatory import RequestPurgatory
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.retention import Retention
from logkernel.broker.router import COMMANDS, Router
from logkernel.broker.runtime import Runtime
from logkernel.broker.scheduler import Scheduler
from logkernel.broker.service_host.host import Lent
from logkernel.broker.service_host.registry import ServiceRegistry
from logkernel.broker.turn import Turn
from logkernel.contracts import Answer, MetadataChange, RequestContext
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.errors import CoordinatorNotAvailable
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.membership import ClusterAccess, Membership

NO_COMMANDS: Final[frozenset[str]] = frozenset()
log = logging.getLogger("logkernel.admin")


class Broker:
    """One broker over its data directories. `start` opens it, `close` leaves a clean-shutdown mark."""

    def __init__(self, runtime: Runtime, logs: LogManager, access: ClusterAccess | None = None) -> None:
        """`access` joins it to a cluster; without one it stands alone, and is its own controller."""
        self.runtime = runtime
        self.logs = logs
        self.purgatory = RequestPurgatory(runtime)
        self.turn = Turn(self.purgatory)
        self.metadata = MetadataManager(runtime, lambda: logs.settle_deletions(self.metadata.image.topics))
        self.replicas = ReplicaManager(runtime, self.turn, partition_count=self.metadata.partition_count, logs=logs)
        logs.on_partition_failed = self.replicas.went_offline
        self.cluster = LiveClusterView(runtime, self.metadata, self.replicas)
        policies = CleanupPolicies(runtime)
        self.retention = Retention(runtime, self.replicas, logs, policies)
        self.cleaner = Cleaner(runtime, self.replicas, logs, policies, self.retention)
        self.moves = Moves(runtime, self.replicas, logs)
        self.replicas.on_cut, self.replicas.before_delete = self.moves.begin_anew, self._forget
        self.scheduler = Scheduler(runtime, self.replicas, logs, self.retention)
        self._commanding: frozenset[str] = frozenset()
        """Listeners over which other brokers may command this one; empty when standalone or in-process."""
        self.membership = self._member(access) if access is not None else None
        member = self.membership
        self.services = ServiceRegistry(
            Lent(
                runtime, self.turn, self.replicas, self.cluster, self.submit,
                self.create_internal if member is None else self._ask_for_topic,
                member is not None, None if member is None else member.send,
            )
        )  # fmt: skip
        if member is not None:
            self.replicas.role_observers.append(self._shard_role)
        self.context = HandlerContext(
            runtime=runtime, purgatory=self.purgatory, metadata=self.metadata, replicas=self.replicas,
            cluster=self.cluster, logs=logs, moves=self.moves, services=self.services, commit=self.commit,
            forward=None if member is None else member.send,
        )  # fmt: skip
        self.router = Router(self.context)
        self._dispatch, self._soon, self._woken = self.router.dispatch, self.turn.soon, self.purgatory.woken
        self._started = False

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Open the directories, recover what was not closed cleanly, lead what is assigned here."""
        logs, metadata = self.logs, self.metadata
        if self.membership is not None:
            self._start_as_member(self.membership)
            return
        logs.open()
        metadata.load(logs.coordination_name, logs.open_metadata_log, logs.cluster_id)
        logs.load(metadata.topic_settings, metadata.image.gone, self.replicas.segment_rolled)
        for name in metadata.adopt(logs.topic_ids()):
            log.info("log of a deleted topic removed: partition=%s", name)
            logs.remove(name)
        metadata.reserve_producer_ids(logs.largest_producer_id())
        tell_missing(self.runtime.kernel, {topic: metadata.topic_settings(topic) for topic in metadata.image.topics})
        if not logs.ended_well:
            self.commit(metadata.new_incarnation())
        for topic in metadata.image.topics:
            self._open_partitions(topic)
        logs.all_loaded()
        metadata.compact()
        ConfiguredTopics(metadata.controller, lambda: metadata.image, self.commit).apply(self.runtime.config.topics)
        self._start_parts()

    def _start_parts(self) -> None:
        for declared in self.runtime.kernel.services():
            self.router.add(self.services.host(declared))
        self.services.load_later()
        self.scheduler.start()
        self.moves.resume()
        self.cleaner.start()
        self.retention.start()
        self._started = True

    def close(self) -> None:
        """Flush and close everything; what was acknowledged is on disk when this returns."""
        if not self._started:
            if self.membership is not None:
                self.membership.close()
            self.logs.abandon()
            return
        self._started = False
        self.runtime.kernel.tell("logkernel_broker_stopping", node_id=self.runtime.node_id)
        if self.membership is not None:
            self.membership.close()
        self.moves.close()
        self.cleaner.stop()
        self.metadata.close()
        self.logs.close(self.replicas.watermarks())

    def abandon(self) -> None:
        """Stop as if killed: flush nothing, write nothing, notify nobody. A member's session is left as it is."""
        started, self._started = self._started, False
        if self.membership is not None:
            self.membership.abandon()
        if started:  # else there may be no directories that they could have worked on
            self.moves.close()
            self.cleaner.abandon()
        self.logs.abandon()

    # ------------------------------------------------------------ a member of a cluster

    def _member(self, access: ClusterAccess) -> Membership:
        from logkernel.broker.membership import Membership  # a broker that stands alone pays for none of it
        from logkernel.broker.received_metadata import ReceivedMetadata

        metadata, transport = self.metadata, access.transport
        metadata.controller.size = access.size
        if transport is None:
            from logkernel.broker.peer_channels import PeerChannels

            listeners = self.runtime.config.inter_broker_listeners
            self._commanding = frozenset(listeners)
            if not self.runtime.config.get("inter.broker.listener.name"):
                log.warning(
                    "brokers command over the listener %s: if clients use it as well, any of them can command; set"
                    " inter.broker.listener.name to a listener of the brokers' own", listeners[0],
                )  # fmt: skip
            transport = PeerChannels(self.runtime, "tcp", partial(self.cluster.peer_address, listeners), self)
        member = Membership(
            self.runtime, self.turn, metadata.controller, access, transport, replicas=self.replicas,
            registration=self.cluster.registration, watched=self._watched,
            take_producer_ids=metadata.take_producer_ids, decides=self._decides,
        )  # fmt: skip
        self.logs.directory_observers.append(lambda directory: member.log_dir_failed())
        self.cluster.election = election = member.election
        self.cluster.channel = member.channel
        configured = ConfiguredTopics(metadata.controller, lambda: election.active.image, member.commit)
        self._file_topics = ClusterTopics(configured, self.runtime.config.topics)
        self._received = self.cluster.received = ReceivedMetadata(
            metadata.image, metadata.controller.internal, self._tell
        )
        metadata.ask_producer_ids = member.ask_producer_ids
        return member

    def _start_as_member(self, member: Membership) -> None:
        """Open local logs. Lead nothing until the controller orders it."""
        metadata, logs = self.metadata, self.logs
        logs.open(metadata.join(member.session()))
        metadata.load_shared(member.session())
        self._received.found(metadata.shared_topics(member.session()))
        logs.load(metadata.topic_settings, (), self.replicas.segment_rolled)
        self._start_parts()

    def _decides(self, brokers: int, elected: bool) -> None:
        """This broker was elected controller (`elected`), or brokers joined while it was."""
        if elected:
            self._file_topics.on_elected(brokers)
        else:
            self._file_topics.on_brokers()

    def _watched(self, changes: Sequence[MetadataChange]) -> None:
        for topic in self.metadata.on_watched(changes):
            self._configure(topic)

    def _configure(self, topic: str) -> None:
        known = self.metadata.image.topics.get(topic)
        if known is not None:
            self.replicas.configure(topic, len(known.partitions), self.metadata.topic_settings(topic))

    def _shard_role(self, name: TopicPartition) -> None:
        """A service's state may lie in that partition."""
        if name in self.replicas.led:
            self.services.leads(name)
        else:
            self.services.resigns(name)

    def join(self) -> None:
        """The listeners are open: be announced, and take orders."""
        assert self.membership is not None, "the broker stands alone"
        self.membership.join()

    def leave(self, done: Callable[[], None]) -> None:
        """Have others lead, before a stop; `done` is called once."""
        assert self.membership is not None, "the broker stands alone"
        self.membership.leave(done)

    def _ask_for_topic(self, name: str) -> None:
        assert self.membership is not None, "the broker stands alone"
        self.membership.channel.ask_for_topic(name, self.metadata.image)
        raise CoordinatorNotAvailable(f"the topic {name} is being created; try again")

    # ------------------------------------------------------------ the door (contracts.BrokerDoor)

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        """Answer a versionless request, now or later, exactly once."""
        self._dispatch(request, context, answer)
        if self._soon or self._woken:
            self.turn.end()

    def serves(self) -> frozenset[str]:
        return self.router.serves()

    def commands(self, listener: str) -> frozenset[str]:
        return COMMANDS if listener in self._commanding else NO_COMMANDS

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        return self.cluster.features()

    def features_epoch(self) -> int:
        return self.metadata.image.features_epoch

    def disconnected(self, listener: str, connection_id: int) -> None:
        if self._started:
            self.services.disconnected(listener, connection_id)
            self.turn.end()

    def step(self) -> int | None:
        """Run what is due; returns the next deadline (monotonic ms) or None."""
        runtime = self.runtime
        runtime.workers.hear()
        runtime.timers.run(runtime.clock.mono_ms())
        self.turn.end()
        return runtime.timers.next_deadline()

    # ------------------------------------------------------------ topics

    def create_topic(
        self,
        name: str,
        partitions: int,
        config: Mapping[str, str],
        *,
        replication_factor: int = -1,
    ) -> None:
        """Create a topic (-1: the broker's default); raises the error that a client would be answered."""
        controller, image = self.metadata.controller, self.metadata.image
        self.commit(controller.create_topic(image, name, partitions, replication_factor, config))

    def create_internal(self, name: str, partitions: int = -1) -> None:
        """Create the topic of a service, as it is declared."""
        self.commit(self.metadata.controller.create_internal(name, self.metadata.image, partitions))

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records. Raises `UnknownTopicOrPartition`."""
        self.commit(self.metadata.controller.delete_topic(self.metadata.image, name))

    # ------------------------------------------------------------ the controller's effects

    def commit(self, result: ControllerResult) -> Any:
        """Keep and fold what the controller decided, do what it asks for; returns the response."""
        if self.membership is not None:
            return self.membership.commit(result)
        self._carry_out(self.metadata.commit(result))
        return result.response

    def _carry_out(self, effects: Effects) -> None:
        """In the order of the fields of `Effects`."""
        for topic, _ in effects.deleted:
            self._delete(topic)
        for topic in effects.created:
            self._open_partitions(topic)
        for topic, first in effects.grown:
            self._open_partitions(topic, first)
        self._tell(effects)

    def _tell(self, effects: Effects) -> None:
        """Notify services, plugins and replicas. Logs were already created or deleted, or will be by order."""
        tell, image = self.runtime.kernel.tell, self.metadata.image
        for topic, _ in effects.deleted:
            tell("logkernel_topic_deleted", topic=topic)
        if effects.deleted:
            self.services.topics_deleted([topic for topic, _ in effects.deleted])
        for topic in effects.created:
            count = len(image.topics[topic].partitions)
            log.info("topic created: topic=%s partitions=%d", topic, count)
            tell("logkernel_topic_created", topic=topic, partitions=count)
        if effects.created or effects.grown:
            self.services.topics_changed([*effects.created, *(topic for topic, _ in effects.grown)])
        for change in effects.leaders:
            tell(
                "logkernel_leader_changed",
                topic=change.topic, partition=change.partition, leader=change.leader, leader_epoch=change.leader_epoch,
            )  # fmt: skip
        configured = effects.topics_configured
        if effects.brokers_configured:
            self.metadata.apply_dynamic_config()
            configured = list(image.topics)
        for topic in configured:
            self.replicas.configure(topic, len(image.topics[topic].partitions), self.metadata.topic_settings(topic))

    def _open_partitions(self, topic: str, first: int = 0) -> None:
        """Have the logs of a topic's partitions from `first` on, and lead those that are assigned here."""
        row, node = self.metadata.image.topics[topic], self.runtime.node_id
        settings = self.metadata.topic_settings(topic)
        for index, partition in enumerate(row.partitions[first:], first):
            name = TopicPartition(topic, index)
            if node not in partition.replicas or name in self.replicas.led:
                continue
            found = self.logs.obtain(name, row.id)
            if found is None:
                self.replicas.never_came(name)
            elif partition.leader == node:
                producers, noted = self.logs.producers_of(name), self.logs.noted_watermark(name)
                self.replicas.lead(name, row.id, partition, settings, found, producers, noted)

    def _delete(self, topic: str) -> None:
        self.moves.cancel_topic(topic)
        partitions = [*self.logs.directories.logs, *self.logs.directories.unreadable]
        self.replicas.delete_topic(topic)
        for name in partitions:
            if name.topic == topic:
                self._forget(name)
        self.logs.delete_topic(topic)

    def _forget(self, name: TopicPartition) -> None:
        """The log of a partition is about to be deleted."""
        self.moves.cancel(name, "the topic is deleted")
        self.cleaner.forget(name)
        self.retention.forget(name)
