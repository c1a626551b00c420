"""A broker of a cluster: commanded by the controller that the brokers elected, which may be it itself.

Builds what it takes, and knows which part does what:

    membership             the session with the coordination
    controller/election    who is the controller; its `active` decides while it is this broker
    controller/channel     what this broker asks of the controller
    isr_proposals          AlterPartition              producer_id_requests   AllocateProducerIds
    controlled_shutdown    ControlledShutdown
    received_metadata      what the controller told of the cluster
    leader_orders          takes LeaderAndIsr          settings_reads         settings of topics that are new here
    peers                  requests to other brokers   replicas/fetchers      fetches from leaders
    configured_topics      the topics of the broker's file, which the controller creates
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final

from logkernel.broker.cluster_view import LiveClusterView, SharedClusterView
from logkernel.broker.controller.active import ActiveController
from logkernel.broker.controller.channel import ControllerChannel
from logkernel.broker.controller.controller_election import ControllerElection
from logkernel.broker.governance.configured_topics import ClusterTopics, ConfiguredTopics
from logkernel.broker.governance.controlled_shutdown import ControlledShutdown
from logkernel.broker.governance.governance import Parts
from logkernel.broker.governance.isr_proposals import IsrProposals
from logkernel.broker.governance.leader_orders import LeaderOrders
from logkernel.broker.governance.membership import Membership
from logkernel.broker.governance.producer_id_requests import ProducerIdRequests
from logkernel.broker.governance.settings_reads import TopicSettingsReads
from logkernel.broker.peers import Peers, Place
from logkernel.broker.received_metadata import ReceivedMetadata
from logkernel.broker.replicas.fetchers import ReplicaFetchers
from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.broker.timers import Timer
from logkernel.contracts import MetadataChange, PeerTransport, RequestContext, SharedCoordination
from logkernel.controller.effects import ControllerResult, Effects, Spend
from logkernel.controller.image import ClusterImage, rack_change
from logkernel.errors import CoordinatorNotAvailable, KafkaError, LeaderNotAvailable
from logkernel.requests.placement import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
)
from logkernel.requests.replication import Order
from logkernel.vocabulary import IsrProposal, TopicPartition

log = logging.getLogger("logkernel.cluster")

TELL_AFTER_MS: Final = 5_000
"""When the log says that no order has come."""
ANYBODYS: Final = frozenset({"config", "acl", "scram", "quota", "token", "rack", "secret", "log_dirs"})
"""Kinds of changes that any broker commits, as the one that was asked."""


class ClusterMember:
    """`Governance` of one broker of several."""

    is_shared = True

    def __init__(
        self, parts: Parts, new_session: Callable[[], SharedCoordination], transport: PeerTransport | None
    ) -> None:
        """Without a `transport`, brokers reach one another over their listeners."""
        runtime, turn, _, metadata, replicas, addresses, *_ = parts
        self._parts = parts
        self._metadata = metadata
        self.command_listeners: frozenset[str] = frozenset()
        self._no_order: Timer | None = None
        """Runs where no order comes."""
        self._was_member = False
        """A session was begun before, and news may have been missed when it was lost."""
        if transport is None:
            transport = self._over_listeners(parts)
        self._peers = Peers(runtime, turn, transport)
        self.election = ControllerElection(runtime, turn, metadata.controller, self.forward, self)
        view = self.election.view
        self._channel = channel = ControllerChannel(turn, metadata.controller, self.forward, view)
        self._proposals = IsrProposals(runtime.node_id, turn, view, channel)
        self._producer_ids = ids = ProducerIdRequests(runtime, turn, view, channel)
        self._shutdown = ControlledShutdown(runtime, view, channel, replicas.has_living_follower)
        self._fetchers = ReplicaFetchers(runtime, self._peers, lambda: view.broker_epoch, replicas.keep_log_starts)
        self._received = ReceivedMetadata(metadata.image, metadata.controller.internal, self._on_effects)
        self._membership = Membership(
            runtime, turn, new_session, self.election, addresses.registration,
            joined=self._joined,
        )  # fmt: skip
        self._reads = TopicSettingsReads(
            runtime, turn, self._membership.session, self.on_watched, self.election.poll_soon
        )
        self.orders = LeaderOrders(
            runtime, metadata, replicas, self._received, self._reads, self._membership.log_dir_failed
        )
        self._file_topics = ClusterTopics(
            ConfiguredTopics(metadata.controller, lambda: self.image, self.commit), runtime.config.topics
        )
        self.view: LiveClusterView = SharedClusterView(
            runtime, metadata, replicas, addresses, ids.next, self.election, channel, self._received
        )

    def _over_listeners(self, parts: Parts) -> PeerTransport:
        from logkernel.broker.peer_channels import PeerChannels
        from logkernel.broker.peer_security import PeerSecurity

        config = parts.runtime.config
        listeners = config.inter_broker_listeners
        security = PeerSecurity(parts.runtime, listeners)
        self.command_listeners = config.command_listeners
        if not config.get("inter.broker.listener.name") and not config.get("authorizer.class.name"):
            log.warning(
                "brokers command over the listener %s: if clients use it as well, any of them can command; set"
                " inter.broker.listener.name to a listener of the brokers' own", listeners[0],
            )  # fmt: skip
        return PeerChannels(parts.runtime, "tcp", partial(self._place, listeners), parts.door, security.settings)

    def _joined(self) -> None:
        self._parts.runtime.after(0, self._producer_ids.ask)  # who comes first finds a block in hand
        if self._was_member:
            self.on_watched(self._metadata.missed(self._membership.session()))
        self._was_member = True
        self._reads.ask_again()
        self._keep_rack()

    def _keep_rack(self) -> None:
        """Have the cluster know where this broker's replicas are while it is away."""
        node_id, rack = self._parts.runtime.node_id, self._parts.runtime.config.get("broker.rack")
        if self._metadata.image.racks.get(node_id) == rack:
            return
        try:
            self.commit(ControllerResult([rack_change(node_id, rack)], None, Effects()))
        except KafkaError as error:
            log.warning("this broker's rack is not kept until it joins again: rack=%s error=%s", rack, error)

    def _on_effects(self, effects: Effects) -> None:
        for topic, topic_id in effects.deleted:
            self._reads.forget(topic, topic_id)
        self._parts.events.on_effects(effects)

    def _place(self, listeners: Sequence[str], node_id: int, by_controller: bool) -> Place | None:
        """Return where broker `node_id` is reached on the inter-broker `listeners`, or None while it is not known.

        `by_controller`: the request goes to or comes from a controller, so the listener of the controller's orders is
        preferred. The controller knows a broker first."""
        found = self.image.nodes.get(node_id) if self.is_controller else None
        found = found or self._metadata.image.nodes.get(node_id)
        if found is None:
            return None
        for name in reversed(listeners) if by_controller else listeners[:1]:
            address = found.listeners.get(name)
            if address is not None:
                return Place(*address, name)
        return None

    # ------------------------------------------------------------ life

    def open(self) -> None:
        logs, metadata, session = self._parts.logs, self._metadata, self._membership.begin()
        logs.open(metadata.join(session))
        logs.note_member(True)
        topics = metadata.shared_topics(session)  # before their settings, which each has before it is there itself
        metadata.load_shared(session)
        self._reads.found(topics)
        self._received.found(topics.values())
        logs.load(metadata.topic_settings, (), self._parts.replicas.segment_rolled)

    def join(self) -> None:
        self._membership.join()
        self._no_order = self._parts.runtime.after(TELL_AFTER_MS, self._tell_no_order)

    def _tell_no_order(self) -> None:
        """A broker that does not listen where its controller commands would wait for ever, without a word."""
        if self._metadata.image.nodes:
            return
        over = ", ".join(sorted(self.command_listeners)) or "the listeners of brokers"
        log.warning(
            "no order of the controller has come, and the broker waits for the first one: controller=%d listeners=%s;"
            " see that broker's log, and check that its inter.broker.listener.name is one of these listeners, else add"
            " it here to logkernel.command.listener.names",
            self.election.view.controller_id, over,
        )  # fmt: skip

    def is_ready(self, brokers: int) -> bool:
        if self._membership.refused is not None:
            raise self._membership.refused
        nodes = self._metadata.image.nodes
        own = self._parts.runtime.node_id
        return self.view.controller_id in nodes and own in nodes and len(nodes) >= brokers

    def leave(self, done: Callable[[], None]) -> None:
        self._shutdown.begin(done)

    def close(self) -> None:
        self.abandon()
        self.election.close()
        self._membership.close()

    def abandon(self) -> None:
        """Stop without ending the session, which belongs to the caller."""
        if self._no_order is not None:
            self._no_order.cancel()
        self._membership.abandon()
        self._producer_ids.close()
        self._reads.close()
        self._fetchers.close()
        self._peers.close()

    # ------------------------------------------------------------ decisions

    @property
    def is_controller(self) -> bool:
        return self.election.is_active

    @property
    def active(self) -> ActiveController:
        return self.election.active

    @property
    def image(self) -> ClusterImage:
        return self.election.active.image

    def commit(self, result: ControllerResult) -> Any:
        """Directly if any broker may, else as the controller."""
        if any(change.kind not in ANYBODYS for change in result.changes):
            return self.election.active.commit(result)
        if result.changes:
            self._membership.session().commit(result.changes)
            self.election.poll_soon()
        return result.response

    def when_confirmed(self, work: Callable[[], None], timeout_ms: int) -> None:
        self.election.active.when_confirmed(work, timeout_ms)

    def elect_leaders(self, request: ElectLeadersRequest) -> ElectLeadersResponse:
        return self.election.active.elect_leaders(request)

    def alter_reassignments(self, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
        return self.election.active.reassignments.alter(request)

    # ------------------------------------------------------------ what this broker needs

    def create_internal(self, name: str, partitions: int = -1) -> None:
        self._channel.ask_for_topic(name, self._metadata.image)
        raise CoordinatorNotAvailable(f"the topic {name} is being created; try again")

    def auto_create(self, name: str, spend: Spend) -> None:
        spend(self._channel.ask_for_topic(name, self._metadata.image))
        raise LeaderNotAvailable(f"the topic {name} is being created; try again")

    def when_known(self, work: Callable[[], None], timeout_ms: int) -> None:
        if self._metadata.image.nodes:
            work()
        else:
            self._received.on_next_update(work, self._parts.runtime.after, timeout_ms)

    def knows_settings(
        self, topics: Iterable[str], again: Callable[[], None], refused: Callable[[KafkaError], None]
    ) -> bool:
        known = self._metadata.image.topics
        named = [(topic, known[topic].id) for topic in topics if topic in known]
        return self._reads.all_read(named, again, refused)

    def forward(self, node: int, request: Any, done: Callable[[Any], None]) -> None:
        """Send a request to any broker, this one included; `done` gets the response, or None."""
        timeout_ms = int(self._parts.runtime.config.get("request.timeout.ms", 30_000))
        self._peers.send(node, request, lambda response, error: done(response), timeout_ms)

    def admit(self, order: Order, context: RequestContext) -> ReceivedMetadata:
        self.election.view.check_order(order, context)
        return self._received

    # ------------------------------------------------------------ events of this broker

    def isr_proposed(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        self._proposals.propose(replica, proposal)

    def role_changed(self, name: TopicPartition) -> None:
        followed = self._parts.replicas.followed.get(name)
        if followed is None:
            self._fetchers.forget(name)
        else:
            self._fetchers.follow(followed, followed.follower.leader)
        self._parts.events.on_shard_role(name)

    def logs_came(self, names: Sequence[TopicPartition]) -> None:
        """The controller orders all replicas again, and learns by the answers which are here now."""
        self._membership.log_dir_failed()

    def log_dir_failed(self) -> None:
        self._membership.log_dir_failed()

    # ------------------------------------------------------------ controller_election.Watcher

    def on_watched(self, changes: Sequence[MetadataChange]) -> None:
        topics = self._metadata.on_watched(changes)
        if topics is None or topics:
            self._parts.replicas.configure(topics, self._metadata.topic_settings)

    def on_decides(self, brokers: int, *, elected: bool) -> None:
        if elected:
            self._file_topics.on_elected(brokers)
        else:
            self._file_topics.on_brokers()

    def on_session_lost(self) -> None:
        self._membership.on_session_lost()
