"""LeaderAndIsr as a broker takes it: each partition when the settings of its topic are known.

    known      the partition is led or followed at once, whatever the rest of the request waits for
    unknown    the order is held until they were read (`settings_reads`); clients are told NOT_LEADER_OR_FOLLOWER until
               then, and ask again
    answered   when all of it was carried out, or after `ANSWER_MS`: what is still held counts as obeyed then, because
               a controller that waits sends this broker no other order. If it cannot be obeyed, the controller is asked
               for all orders again, and gets the reason

An order that is held is nothing yet that a later one could find here, so these look at it: one of a later leader epoch
that stops the replica takes it out, one for a replica that is older does not. An order for a topic that was deleted
meanwhile is refused when it comes out. One for a name that no topic can have is refused at once: folders are called so.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from logkernel.broker.governance.settings_reads import TopicSettingsReads
from logkernel.broker.metadata_manager import MetadataManager
from logkernel.broker.received_metadata import ReceivedMetadata
from logkernel.broker.replicas.manager import NO_EPOCHS, ReplicaManager
from logkernel.broker.runtime import Runtime
from logkernel.controller.names import check_name
from logkernel.errors import (
    InconsistentTopicId,
    InvalidTopicException,
    KafkaStorageError,
    StaleControllerEpoch,
    UnknownTopicId,
)
from logkernel.requests.replication import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
    LeaderAndIsrTopicState,
)
from logkernel.vocabulary import NO_ID, TopicPartition

ANSWER_MS: Final = 200
"""How long the answer waits for settings: many times what a coordination takes that is well."""
TELLING: Final = frozenset((KafkaStorageError.code, InconsistentTopicId.code))
"""Refusals that a controller does something about."""
Answered = Callable[[LeaderAndIsrResponse], object]


class _Response:
    """The answer to one request, given once."""

    def __init__(self, answer: Answered) -> None:
        self._answer = answer
        self.body = LeaderAndIsrResponse()
        self.held = 0
        """Topics whose partitions are held."""
        self.is_given = False

    def give(self) -> None:
        if not self.is_given:
            self.is_given = True
            self._answer(self.body)


class _Held(NamedTuple):
    topic_id: UUID
    state: LeaderAndIsrPartitionState
    row: LeaderAndIsrPartitionError
    """Of the response."""


class LeaderOrders:
    """See the module."""

    def __init__(
        self,
        runtime: Runtime,
        metadata: MetadataManager,
        replicas: ReplicaManager,
        received: ReceivedMetadata,
        reads: TopicSettingsReads,
        refused_late: Callable[[], None],
    ) -> None:
        """`refused_late` has the controller send all its orders again."""
        self._runtime = runtime
        self._metadata = metadata
        self._replicas = replicas
        self._received = received
        self._reads = reads
        self._refused_late = refused_late
        self._held: dict[TopicPartition, list[_Held]] = {}

    # ------------------------------------------------------------ orders

    def take(self, request: LeaderAndIsrRequest, answer: Answered) -> None:
        """Carry out an order that was admitted."""
        response = _Response(answer)
        for state in request.topic_states:
            rows = [LeaderAndIsrPartitionError(row.partition_index) for row in state.partition_states]
            response.body.topics.append(LeaderAndIsrTopicError(state.topic_id, rows))
            try:
                check_name(state.topic_name)
                self._received.learn(state.topic_name, state.topic_id)
            except (InvalidTopicException, UnknownTopicId) as error:
                for row in rows:
                    row.error_code = error.code
                continue
            orders = list(map(partial(_Held, state.topic_id), state.partition_states, rows))
            if self._reads.is_read(state.topic_name, state.topic_id):
                self._carry_out(state.topic_name, orders)
            else:
                self._hold(state, orders, response)
        if response.held:
            self._runtime.after(ANSWER_MS, response.give)
        else:
            response.give()

    def stops(self, name: TopicPartition, leader_epoch: int) -> bool:
        """A replica is to stop, by an order of this leader epoch: take out what is held and not newer. False where what
        is held is newer, so that the order came late."""
        return self._take_out(name, None if leader_epoch in NO_EPOCHS else leader_epoch)

    def moved_away(self, name: TopicPartition, leader_epoch: int) -> None:
        """Since this leader epoch the partition has no replica here: take out what is held and older."""
        self._take_out(name, leader_epoch - 1)

    def holds_living(self, name: TopicPartition) -> bool:
        """Whether an order is held for a topic that exists."""
        return any(self._is_alive(name.topic, one.topic_id) for one in self._held.get(name, ()))

    # ------------------------------------------------------------ what is held

    def _hold(self, state: LeaderAndIsrTopicState, orders: list[_Held], response: _Response) -> None:
        response.held += 1
        for one in orders:
            self._held.setdefault(TopicPartition(state.topic_name, one.state.partition_index), []).append(one)
        self._reads.when_read(
            state.topic_name, state.topic_id, partial(self._come_out, state.topic_name, orders, response)
        )

    def _come_out(self, topic: str, orders: list[_Held], response: _Response) -> None:
        obeyed = []
        for one in orders:
            name = TopicPartition(topic, one.state.partition_index)
            held = self._held.get(name, [])
            if one in held:
                held.remove(one)
                if self._is_alive(topic, one.topic_id):
                    obeyed.append(one)
                else:
                    one.row.error_code = UnknownTopicId.code
            if not held:
                self._held.pop(name, None)
        self._carry_out(topic, obeyed)
        response.held -= 1
        if response.is_given and any(one.row.error_code in TELLING for one in obeyed):
            self._refused_late()
        elif not response.held:
            response.give()

    def _take_out(self, name: TopicPartition, last_epoch: int | None) -> bool:
        """Refuse what is held up to a leader epoch, None: all; whether nothing is left."""
        held = self._held.get(name, [])
        kept = [] if last_epoch is None else [one for one in held if one.state.leader_epoch > last_epoch]
        for one in held:
            if one not in kept:
                one.row.error_code = StaleControllerEpoch.code
        held[:] = kept
        return not kept

    def _carry_out(self, topic: str, orders: list[_Held]) -> None:
        settings = self._metadata.topic_settings(topic)
        for one in orders:
            name = TopicPartition(topic, one.state.partition_index)
            one.row.error_code = self._replicas.take(name, one.topic_id, one.state, settings)

    def _is_alive(self, topic: str, topic_id: UUID) -> bool:
        return topic_id == NO_ID or self._received.is_alive(topic, topic_id)
