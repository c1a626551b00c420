"""One broker: builds its parts, starts and closes them, and passes events between them.

The rules are elsewhere: `partition.leader` decides about partitions, `controller` about the cluster, services about
groups. Decided here is only how the parts join: whether the broker is a member of a cluster, over which listeners other
brokers command it, and, if it stands alone, which partitions it opens and leads after a commit.

A broker is single-threaded: its driver, an event loop or the caller of an embedded log, calls `submit` and `step` from
one thread at a time. `turn` says what one turn is, the package what the parts are.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from logkernel.broker.authentication import Authentication
from logkernel.broker.cleaner import Cleaner
from logkernel.broker.cleanup_policies import CleanupPolicies
from logkernel.broker.governance.access import Alone
from logkernel.broker.governance.governance import Access, Parts
from logkernel.broker.handlers.context import HandlerContext
from logkernel.broker.log_manager import LogManager
from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.moves import Moves
from logkernel.broker.own_addresses import OwnAddresses
from logkernel.broker.purgatory import RequestPurgatory
from logkernel.broker.quotas.enforcement import Enforcement, anybody_acts
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.retention import Retention
from logkernel.broker.router import COMMANDS, Router
from logkernel.broker.runtime import Runtime
from logkernel.broker.scheduler import Scheduler
from logkernel.broker.service_host.lent import Lent
from logkernel.broker.service_host.registry import ServiceRegistry
from logkernel.broker.turn import Turn
from logkernel.contracts import Admission, Answer, ListenerSecurity, RequestContext
from logkernel.controller.effects import Effects
from logkernel.errors import KafkaError
from logkernel.vocabulary import IsrProposal, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.authorization.asking import Authorization
    from logkernel.broker.delegation_tokens import DelegationTokens
    from logkernel.broker.quotas.metering import Route
    from logkernel.broker.replicas.leader_replica import LeaderReplica
    from logkernel.broker.unknown_users import UnknownUsers
    from logkernel.errors import KafkaStorageError
    from logkernel.storage.directory import DataDirectory
    from logkernel.storage.disk import Disk

NO_COMMANDS: Final[frozenset[str]] = frozenset()
log = logging.getLogger("logkernel.admin")


class Broker:
    """One broker over its data directories. `start` opens it, `close` leaves a clean-shutdown mark."""

    def __init__(
        self, runtime: Runtime, access: Access | None = None, *, in_memory: bool = False, disk: Disk | None = None
    ) -> None:
        """`access` joins it to a cluster; without one it stands alone, and is its own controller. `disk` stands in for
        the operating system's (a simulation)."""
        access = access or Alone()
        self.runtime = runtime
        self.logs = logs = LogManager(runtime, self, in_memory=in_memory, disk=disk)
        self.purgatory = RequestPurgatory(runtime)
        self.turn = Turn(self.purgatory)
        self.metadata = MetadataManager(runtime, lambda: logs.sync_deletions(self.metadata.image.topics), access.size)
        self.authentication = Authentication(runtime, self.metadata, lambda: self.tokens, lambda: self.unknown_users)
        self.replicas = ReplicaManager(
            runtime, self.turn, partition_count=self.metadata.partition_count, logs=logs, events=self
        )
        policies = CleanupPolicies(runtime)
        self.retention = Retention(runtime, self.replicas, logs, policies)
        self.cleaner = Cleaner(runtime, self.replicas, logs, policies, self.retention)
        self.moves = Moves(runtime, self.replicas, logs)
        self.scheduler = Scheduler(runtime, self.replicas, logs, self.retention)
        self.addresses = OwnAddresses(runtime)
        self.governance = access.govern(
            Parts(runtime, self.turn, logs, self.metadata, self.replicas, self.addresses, self, self)
        )
        self.cluster = self.governance.view
        self._authorization = authorization = self._chosen_authorization()
        self.cluster.authorize = authorization.topics if authorization is not None else None
        self.commit = self.governance.commit
        self.services = ServiceRegistry(
            Lent(runtime, self.turn, self.replicas, self.cluster, self.submit, self.governance)
        )
        acts = authorization.acts if authorization is not None else anybody_acts
        self.quotas = Enforcement(runtime, self.metadata.image, acts)
        self.context = HandlerContext(
            runtime=runtime, purgatory=self.purgatory, metadata=self.metadata, replicas=self.replicas,
            cluster=self.cluster, logs=logs, moves=self.moves, services=self.services, governance=self.governance,
            quotas=self.quotas, tokens=lambda: self.tokens, authorization=authorization, dispatch=self.dispatch,
            serves=self.serves,
        )  # fmt: skip
        self.router = Router(self.context)
        self._dispatch: Route = self.quotas.way(self.router.dispatch)
        self._soon, self._woken = self.turn.soon, self.purgatory.woken
        self.metadata.on_quotas = self._on_quotas
        self.quotas.on_limits = self._on_limits
        self._started = False

    @cached_property
    def tokens(self) -> DelegationTokens:
        """Made when the first one is asked for."""
        from logkernel.broker.delegation_tokens import DelegationTokens

        return DelegationTokens(self.runtime, self.metadata)

    @cached_property
    def unknown_users(self) -> UnknownUsers:
        """Made when the first one logs in."""
        from logkernel.broker.unknown_users import UnknownUsers

        return UnknownUsers(self.runtime, self.metadata, self.commit)

    def _chosen_authorization(self) -> Authorization | None:
        if not self.runtime.config.get("authorizer.class.name"):
            return None
        from logkernel.broker.authorization.chosen import chosen

        cluster = self.cluster
        return chosen(self.runtime, self.metadata.image.acls, cluster.topic_name, lambda name: name in cluster.topics)

    # ------------------------------------------------------------ life

    def start(self) -> None:
        """Open the directories, recover what was not closed cleanly, lead what is led here without an order."""
        self.governance.open()
        if self._authorization is not None:
            from logkernel.broker.authorization.chosen import warn_of_nobody

            warn_of_nobody(self.runtime.config, self.metadata.image.acls)
        self.quotas.cluster_changed()
        for declared in self.runtime.kernel.services():
            self.router.add(self.services.host(declared))
        self.services.load_later()
        self.scheduler.start()
        if self.runtime.config.get("delegation.token.secret.key"):
            self.scheduler.every("delegation.token.expiry.check.interval.ms", self._remove_expired_tokens)
        self.moves.resume()
        self.cleaner.start()
        self.retention.start()
        self._started = True

    def close(self) -> None:
        """Flush and close everything; what was acknowledged is on disk when this returns."""
        if not self._started:
            self.governance.close()
            self.logs.abandon()
            return
        self._started = False
        self.runtime.kernel.tell("logkernel_broker_stopping", node_id=self.runtime.node_id)
        self.governance.close()
        self.moves.close()
        self.cleaner.stop()
        self.authentication.close()
        if self._authorization is not None:
            self._authorization.audit.close()
        self.metadata.close()
        self.logs.close(self.replicas.watermarks())

    def abandon(self) -> None:
        """Stop as if killed: flush nothing, write nothing, notify nobody. A session is left as it is."""
        started, self._started = self._started, False
        self.governance.abandon()
        if started:  # else there may be no directories that they could have worked on
            self.moves.close()
            self.cleaner.abandon()
        self.logs.abandon()

    # ------------------------------------------------------------ the door (contracts.BrokerDoor)

    def submit(self, request: Any, context: RequestContext, answer: Answer) -> None:
        """Answer a versionless request, now or later, exactly once."""
        self._dispatch(request, context, answer)
        if self._soon or self._woken:
            self.turn.end()

    def dispatch(self, request: Any, context: RequestContext, answer: Answer) -> None:
        """As of `Router.dispatch`, for the handlers that the router is made of."""
        self._dispatch(request, context, answer)

    def _on_quotas(self) -> None:
        self._dispatch = self.quotas.way(self.router.dispatch)

    def _on_limits(self) -> None:
        self._dispatch = self.quotas.asked_way(self.router.dispatch)

    def _remove_expired_tokens(self) -> None:
        if self.governance.is_controller:
            self.commit(self.tokens.without_expired())

    def serves(self) -> frozenset[str]:
        return self.router.serves()

    def commands(self, listener: str) -> frozenset[str]:
        return COMMANDS if listener in self.governance.command_listeners else NO_COMMANDS

    def security(self, listener: str) -> ListenerSecurity | None:
        return self.authentication.of(listener)

    def admit(self, listener: str, host: str) -> Admission:
        of_brokers = listener in self.governance.command_listeners and len(self.runtime.config.listeners) > 1
        return self.quotas.admit(listener, host, of_brokers=of_brokers)

    def features(self) -> Mapping[str, tuple[int, int, int]]:
        return self.cluster.features()

    def features_epoch(self) -> int:
        return self.metadata.image.features_epoch

    def refusal(self, request: Any, error: KafkaError) -> Any:
        return self.router.refusal(type(request).__name__, request, error)

    def disconnected(self, listener: str, connection_id: int) -> None:
        if self._started:
            self.services.disconnected(listener, connection_id)
            self.turn.end()

    def step(self) -> int | None:
        """Run what is due; returns the next deadline (monotonic ms) or None."""
        runtime = self.runtime
        runtime.workers.poll()
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

    def delete_topic(self, name: str) -> None:
        """Delete a topic with its records. Raises `UnknownTopicOrPartition`."""
        self.commit(self.metadata.controller.delete_topic(self.metadata.image, name))

    # ------------------------------------------------------------ log_manager.LogEvents

    def directory_failed(self, directory: DataDirectory) -> None:
        self.moves.directory_failed(directory)
        self.governance.log_dir_failed()

    def partition_failed(self, name: TopicPartition, error: KafkaStorageError) -> None:
        self.replicas.went_offline(name, error)

    # ------------------------------------------------------------ replicas.manager.ReplicaEvents

    def role_changed(self, name: TopicPartition) -> None:
        self.governance.role_changed(name)

    def log_cut(self, name: TopicPartition) -> None:
        self.moves.begin_anew(name)

    def before_delete(self, name: TopicPartition) -> None:
        self.moves.cancel(name, "the topic is deleted")
        self.cleaner.forget(name)
        self.retention.forget(name)

    def logs_came(self, names: Sequence[TopicPartition]) -> None:
        self.governance.logs_came(names)

    def isr_proposed(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        self.governance.isr_proposed(replica, proposal)

    # ------------------------------------------------------------ governance.ClusterEvents

    def on_shard_role(self, name: TopicPartition) -> None:
        if name in self.replicas.led:
            self.services.leads(name)
        else:
            self.services.resigns(name)

    def on_deletion(self, topic: str) -> None:
        self.moves.cancel_topic(topic)
        partitions = [*self.logs.directories.logs, *self.logs.directories.unreadable]
        self.replicas.delete_topic(topic)
        for name in partitions:
            if name.topic == topic:
                self.before_delete(name)
        self.logs.delete_topic(topic)

    def on_effects(self, effects: Effects) -> None:
        tell, image = self.runtime.kernel.tell, self.metadata.image
        self.quotas.cluster_changed()
        for topic, _ in effects.deleted:
            tell("logkernel_topic_deleted", topic=topic)
        if effects.deleted:
            self.services.topics_deleted([topic for topic, _ in effects.deleted])
        for topic in effects.created:
            count = len(image.topics[topic].partitions)
            log.info("topic created: topic=%s partitions=%d", topic, count)
            tell("logkernel_topic_created", topic=topic, partitions=count)
        changed = dict.fromkeys((*effects.created, *(topic for topic, _ in effects.grown), *effects.moved))
        if changed:
            self.services.topics_changed(list(changed))
        for change in effects.leaders:
            tell(
                "logkernel_leader_changed",
                topic=change.topic, partition=change.partition, leader=change.leader, leader_epoch=change.leader_epoch,
            )  # fmt: skip
        if effects.brokers_configured:
            self.metadata.apply_dynamic_config()
        if effects.brokers_configured or effects.topics_configured:
            configured = None if effects.brokers_configured else effects.topics_configured
            self.replicas.configure(configured, self.metadata.topic_settings)
