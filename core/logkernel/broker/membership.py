"""A broker's place in a cluster: its session, its registration, the other brokers, and who commands.

    join            after the listeners are open: a session, its broker's fact, a campaign
    leave           have partitions led elsewhere before a stop (ControlledShutdown)
    on_watched      settings and the like were committed by any broker
    on_session_lost begin again with a new session

A broker that stands alone has none.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from logkernel.broker.controller.channel import ControllerChannel
from logkernel.broker.controller.election import ControllerElection
from logkernel.broker.peers import Peers
from logkernel.broker.replicas.fetchers import ReplicaFetchers
from logkernel.broker.replicas.leader_replica import LeaderReplica
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.broker.turn import Turn
from logkernel.contracts import MetadataChange, PeerTransport, SharedCoordination
from logkernel.controller.controller import Controller
from logkernel.controller.effects import ControllerResult
from logkernel.controller.image import log_dirs_change
from logkernel.errors import (
    DuplicateBrokerRegistration,
    FencedLeaderEpoch,
    IneligibleReplica,
    InvalidRequest,
    InvalidUpdateVersion,
    KafkaError,
    KafkaStorageError,
    NewLeaderElected,
    OperationNotAttempted,
    UnknownTopicId,
    UnknownTopicOrPartition,
)
from logkernel.requests.replication import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionPartition,
    AlterPartitionPartitionResponse,
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionTopic,
    BrokerState,
    ControlledShutdownRequest,
)
from logkernel.vocabulary import IsrProposal, TopicPartition

log = logging.getLogger("logkernel.cluster")

ANYBODYS = frozenset({"config", "acl", "scram", "quota", "log_dirs"})
"""Kinds of changes that any broker commits, as the one that was asked."""
REVERTS = frozenset({IneligibleReplica.code, OperationNotAttempted.code})
"""Refusals of a proposal after which it was not and will not be written."""
STUCK = frozenset(
    {
        FencedLeaderEpoch.code,
        InvalidRequest.code,
        InvalidUpdateVersion.code,
        NewLeaderElected.code,
        UnknownTopicId.code,
        UnknownTopicOrPartition.code,
    }
)
"""After these refusals, wait for an order. After any other, propose again."""
JOIN_AGAIN_MS = 1_000
"""When a session could not be had."""
ANNOUNCE_AGAIN_MS = 500
"""While an earlier life of this broker is announced."""
ASK_AGAIN_MS = 50
"""When no controller gave producer ids."""


class ClusterAccess(NamedTuple):
    """How a broker reaches its cluster: the coordination, and the other brokers."""

    new_session: Callable[[], SharedCoordination]
    transport: PeerTransport | None = None
    """None: brokers reach one another over their listeners (`peer_channels`)."""
    size: int | None = None
    """The number of brokers that the cluster is planned to have; None if it is not known."""


class Membership:
    """See the module."""

    def __init__(
        self,
        runtime: Runtime,
        turn: Turn,
        controller: Controller,
        access: ClusterAccess,
        transport: PeerTransport,
        *,
        replicas: ReplicaManager,
        registration: Callable[[], Mapping[str, Any]],
        watched: Callable[[Sequence[MetadataChange]], None],
        take_producer_ids: Callable[[range], None],
        decides: Callable[[int, bool], None],
    ) -> None:
        """`registration` gives the broker's fact, as of `image.BrokerRegistration`. `watched` receives committed
        changes of watched kinds. `decides(brokers, elected)` is called when this broker becomes controller (`elected`
        is True), and when brokers join later; `brokers` is the number of live brokers."""
        self._replicas = replicas
        self._runtime = runtime
        self._turn = turn
        self._access = access
        self._registration = registration
        self._watched = watched
        self._take_ids = take_producer_ids
        self._decides = decides
        self._asking_ids = False
        self._session: SharedCoordination | None = None
        self._hearing: Timer | None = None
        self._announcing: Timer | None = None
        self.refused: DuplicateBrokerRegistration | None = None
        """Why this broker cannot be a member: another one has its node id."""
        self._closed = self._will_tell_log_dirs = False
        self.peers = Peers(runtime, turn, transport)
        self.election = ControllerElection(runtime, turn, controller, self.send, self)
        self._view = self.election.view
        self.channel = ControllerChannel(turn, controller, self.send, self._view)
        self.fetchers = ReplicaFetchers(runtime, self.peers, lambda: self._view.broker_epoch, replicas.keep_log_starts)
        replicas.propose = self._propose
        replicas.role_observers.append(self._role_changed)

    # ------------------------------------------------------------ life

    def session(self) -> SharedCoordination:
        """The session of now; the first one is begun when it is first asked for."""
        if self._session is None:
            self._session = self._access.new_session()
        return self._session

    def join(self) -> None:
        """Be announced, and stand for controller."""
        session = self.session()
        self.election.join(session, self._ring)
        self._announce(session, self._runtime.clock.mono_ms() + session.stale_ms)
        self._turn.end()
        self._runtime.after(0, self.ask_producer_ids)  # who comes first finds a block in hand

    def _announce(self, session: SharedCoordination, until_ms: int) -> None:
        """An earlier life of this broker that was killed may still be announced for some time: try until then."""
        try:
            self.election.announce(self._registration())
        except DuplicateBrokerRegistration as error:
            if self._runtime.clock.mono_ms() >= until_ms:
                self.refused = error
                raise
            self._announce_later(session, until_ms, error)
        except (
            KafkaStorageError
        ) as error:  # its answer was lost, or the session is unsure, or over: then another begins
            self._announce_later(session, until_ms, error)

    def _announce_later(self, session: SharedCoordination, until_ms: int, why: KafkaError) -> None:
        log.warning("not announced yet: error=%s", why)
        again = partial(self._announce_again, session, until_ms)
        self._announcing = self._runtime.after(ANNOUNCE_AGAIN_MS, again)

    def _announce_again(self, session: SharedCoordination, until_ms: int) -> None:
        if self._closed or session is not self._session:
            return
        try:
            self._announce(session, until_ms)
        except KafkaError as error:
            log.error("not announced: node_id=%d error=%s", self._runtime.node_id, error)
            if self.refused is None:
                self._announcing = self._runtime.after(
                    ANNOUNCE_AGAIN_MS, partial(self._announce_again, session, until_ms)
                )

    def ask_producer_ids(self) -> None:
        """Have the controller give a block of producer ids (KIP-730). One request is under way at a time."""
        if self._asking_ids or self._closed:
            return
        self._asking_ids = True
        request = AllocateProducerIdsRequest(self._runtime.node_id, self._view.broker_epoch)
        self._turn.call_soon(lambda: self.channel.ask(request, self._given_ids))

    def _given_ids(self, response: AllocateProducerIdsResponse | None) -> None:
        self._asking_ids = False
        if response is not None and not response.error_code:
            first = response.producer_id_start
            self._take_ids(range(first, first + response.producer_id_len))
        elif not self._closed:
            self._runtime.after(ASK_AGAIN_MS, self.ask_producer_ids)

    def leave(self, done: Callable[[], None]) -> None:
        """Ask the controller to have others lead, `controlled.shutdown.max.retries` times at most, with pauses of
        `controlled.shutdown.retry.backoff.ms`; `done` is called when no partition is led here that others could lead,
        or after the last attempt."""
        get = self._runtime.config.get
        pause_ms = int(get("controlled.shutdown.retry.backoff.ms"))

        def heard(left: int, response: Any) -> None:
            if response is not None and not response.error_code and not response.remaining_partitions:
                done()
                return
            log.info(
                "partitions are led here still: node_id=%d error=%s partitions=%s attempts_left=%d",
                self._runtime.node_id, "no answer" if response is None else response.error_code,
                [] if response is None else response.remaining_partitions[:10], left,
            )  # fmt: skip
            if left:
                self._runtime.after(pause_ms, partial(ask, left))
            else:
                log.warning("the broker stops, and leads partitions still: node_id=%d", self._runtime.node_id)
                done()

        def ask(left: int) -> None:
            request = ControlledShutdownRequest(self._runtime.node_id, self._view.broker_epoch)
            self.channel.ask(request, partial(heard, left - 1))

        attempts = int(get("controlled.shutdown.max.retries")) if get("controlled.shutdown.enable") else 0
        if attempts > 0:
            ask(attempts)
        else:
            done()

    def close(self) -> None:
        """Close the session cleanly."""
        self.abandon()
        self.election.close()
        if self._session is not None:
            self._session.close()

    def abandon(self) -> None:
        """Ask and answer nobody any more, as if killed; whoever gave the session may end it."""
        self._closed = True
        self.fetchers.close()
        self.peers.close()

    def commit(self, result: ControllerResult) -> Any:
        """Commit a decision: directly if any broker may, else as the controller; returns the response. Raises
        `NotController`, and `KafkaError` if the coordination cannot be reached."""
        if any(change.kind not in ANYBODYS for change in result.changes):
            return self.election.active.commit(result)
        if result.changes:
            self.session().commit(result.changes)
            self.election.hear_soon()
        return result.response

    def send(self, node: int, request: Any, done: Callable[[Any], None]) -> None:
        """Ask another broker, or this one; `done` is told the response, or None."""
        timeout_ms = int(self._runtime.config.get("request.timeout.ms", 30_000))
        self.peers.send(node, request, lambda response, error: done(response), timeout_ms)

    # ------------------------------------------------------------ replicas

    def log_dir_failed(self) -> None:
        """A log directory of this broker failed: have the controller ask which replicas are lost with it."""
        if not self._will_tell_log_dirs and not self._closed:
            self._will_tell_log_dirs = True
            self._runtime.after(0, self._tell_log_dirs)

    def _tell_log_dirs(self) -> None:
        if self._closed:
            return
        try:
            self.session().commit([log_dirs_change(self._runtime.node_id)])
        except KafkaError as error:
            log.warning("a failed log directory could not be told: error=%s", error)
            self._runtime.after(JOIN_AGAIN_MS, self._tell_log_dirs)
        else:
            self._will_tell_log_dirs = False
            self.election.hear_soon()

    def _role_changed(self, name: TopicPartition) -> None:
        followed = self._replicas.followed.get(name)
        if followed is None:
            self.fetchers.forget(name)
        else:
            self.fetchers.follow(followed, followed.follower.leader)

    def _propose(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        """Ask the controller for in-sync replicas (AlterPartition)."""
        members = [BrokerState(node, epoch) for node, epoch in proposal.members]
        row = AlterPartitionPartition(
            partition_index=replica.name.partition,
            leader_epoch=proposal.leader_epoch,
            new_isr_with_epochs=members,
            partition_epoch=proposal.partition_epoch,
        )
        request = AlterPartitionRequest(
            broker_id=self._runtime.node_id,
            broker_epoch=self._view.broker_epoch,
            topics=[AlterPartitionTopic(replica.topic_id, [row])],
        )
        self._turn.call_soon(lambda: self.channel.ask(request, partial(_proposed, replica, proposal)))

    # ------------------------------------------------------------ controller.election.Watcher

    def on_watched(self, changes: Sequence[MetadataChange]) -> None:
        self._watched(changes)

    def on_decides(self, brokers: int, *, elected: bool) -> None:
        self._decides(brokers, elected)

    def on_session_lost(self) -> None:
        if self._closed:
            return
        log.warning("the session is over, and a new one begins: node_id=%d", self._runtime.node_id)
        self._begin_again("")

    def _begin_again(self, told: str) -> None:
        """`told` is the last error logged; it is not logged again."""
        if self._closed:
            return
        try:
            self._session = self._access.new_session()
            self.join()
        except KafkaError as error:
            if str(error) != told:
                log.error("no new session: node_id=%d error=%s", self._runtime.node_id, error)
            self._runtime.after(JOIN_AGAIN_MS, partial(self._begin_again, str(error)))
        else:
            log.info("a new session: node_id=%d broker_epoch=%d", self._runtime.node_id, self._view.broker_epoch)

    # ------------------------------------------------------------ hearing

    def _ring(self) -> None:
        """From any thread: something is to be heard, in a turn of this broker's own."""
        self._runtime.workers.call(self._hear_soon)

    def _hear_soon(self) -> None:
        if self._hearing is None and not self._closed:
            self._hearing = self._runtime.after(0, self._hear)

    def _hear(self) -> None:
        self._hearing = None
        if not self._closed:
            self.election.hear()


def _proposed(replica: LeaderReplica, proposal: IsrProposal, response: AlterPartitionResponse | None) -> None:
    """The controller answered, or nobody did (None)."""
    row = None if response is None or response.error_code else _row_of(response)
    if not replica.in_service:
        return
    if row is not None and not row.error_code:
        replica.isr_accepted(proposal, row.partition_epoch)
    elif row is not None and row.error_code in REVERTS | STUCK:
        replica.isr_refused(proposal, revert=row.error_code in REVERTS)
    else:
        replica.isr_unanswered(proposal)


def _row_of(response: AlterPartitionResponse) -> AlterPartitionPartitionResponse | None:
    return next((row for topic in response.topics for row in topic.partitions), None)
