"""The metadata that the controller sends a broker: the live brokers and the state of partitions (UpdateMetadata).

It is folded into the broker's own image. Topics and brokers enter the image only this way. Settings, ACLs and the like
come from the coordination; `MetadataManager.on_watched` folds them into the same image.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Sequence, Set
from typing import Final
from uuid import UUID

from logkernel.broker.timers import Timer
from logkernel.contracts import MetadataChange
from logkernel.controller.effects import Effects, LeaderChange
from logkernel.controller.image import (
    NO_LEADER,
    BrokerRegistration,
    ClusterImage,
    Partition,
    Topic,
    partition_change,
    registration_change,
)
from logkernel.errors import UnknownTopicId
from logkernel.requests.replication import (
    BEING_DELETED,
    UpdateMetadataBroker,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from logkernel.vocabulary import MAX_PARTITIONS, NO_ID, SECURITY_PROTOCOLS, is_topic_name

MAX_GONE: Final = 1_000
"""Deleted topics that are remembered."""
_NOT_TOLD: Final = Partition((), (), NO_LEADER)
"""The row of a partition below one that was told of."""
log = logging.getLogger("logkernel.controller")

After = Callable[[int, Callable[[], None]], Timer]
"""`Runtime.after`."""


class _Waiting:
    """Work that runs once, in a turn of its own."""

    def __init__(self, work: Callable[[], None], after: After, wait_ms: int) -> None:
        self._work, self._after = work, after
        self._timer = after(wait_ms, self._do)
        self._done = False

    def now(self) -> None:
        self._timer.cancel()
        self._after(0, self._do)

    def _do(self) -> None:
        if not self._done:
            self._done = True
            self._work()


class ReceivedMetadata:
    """See the module. Also keeps what the image does not hold: offline replicas, and the ids of topics that a
    LeaderAndIsr named before an UpdateMetadata did."""

    def __init__(self, image: ClusterImage, internal: Collection[str], follow: Callable[[Effects], None]) -> None:
        """`internal` are the topics of services; `follow` does what follows from news."""
        self._image = image
        self._internal = internal
        self._follow = follow
        self._offline: dict[tuple[str, int], tuple[int, ...]] = {}
        self._learned: dict[UUID, str] = {}
        self._learned_ids: dict[str, UUID] = {}
        """`_learned` by name: the latest of each."""
        self._found: set[UUID] = set()
        """Topics that existed when the broker started, and that no UpdateMetadata named yet."""
        self._gone: dict[UUID, None] = {}
        """The topics that were deleted last; what names them came late."""
        self._waiting: list[_Waiting] = []
        self.racks: dict[int, str] = {}
        """Broker → its rack, of all that were ever alive: replicas stay where they are while a broker is away."""

    # ------------------------------------------------------------ questions

    def topic_name(self, topic_id: UUID) -> str | None:
        """Return the name of a topic, also of one that only a LeaderAndIsr named so far; None if the id is unknown."""
        return self._image.names.get(topic_id) or self._learned.get(topic_id)

    def offline_replicas(self, topic: str, index: int, replicas: Iterable[int]) -> list[int]:
        """Return the replicas whose broker is not alive or whose log directory is offline."""
        offline = self._offline.get((topic, index), ())
        return [node for node in replicas if node not in self._image.nodes or node in offline]

    def is_alive(self, topic: str, topic_id: UUID) -> bool:
        """Whether a topic of that name and id exists, as far as orders said."""
        return self.topic_name(topic_id) == topic

    # ------------------------------------------------------------ news

    def found(self, topics: Iterable[UUID]) -> None:
        """Note topics that exist when the broker starts: the first UpdateMetadata of them reports no change."""
        self._found.update(topics)

    def learn(self, topic: str, topic_id: UUID) -> None:
        """Note the id of a topic from a LeaderAndIsr: its followers fetch by id, maybe before the UpdateMetadata.

        An earlier topic of that name does not exist any more: its deletion was not told to a broker that was away
        meanwhile. Raises `UnknownTopicId` if the topic itself was deleted: the order came late.
        """
        if topic_id in self._gone:
            raise UnknownTopicId(f"{topic} with id {topic_id} was deleted")
        known = self._image.topics.get(topic)
        if self._learned_ids.get(topic, topic_id) != topic_id:
            self._unlearn(topic)
        if known is not None and known.id == topic_id:
            return
        if known is not None and NO_ID not in (topic_id, known.id):
            effects = Effects()
            self._delete(known, effects)
            self._follow(effects)
        self._learned[topic_id] = topic
        self._learned_ids[topic] = topic_id

    def _unlearn(self, topic: str) -> None:
        topic_id = self._learned_ids.pop(topic, None)
        if topic_id is not None:
            self._learned.pop(topic_id, None)

    def take(self, request: UpdateMetadataRequest) -> Effects:
        """Fold `request` and carry out what follows. Partitions that it does not name are unchanged, as are those of
        which a newer leader epoch or partition epoch is known: it outlived its connection. A topic with a name or a
        partition that none can have is left out. Return the changes."""
        effects = Effects()
        moved = self._reracked(self._fold_brokers(request.live_brokers))
        for state in request.topic_states:
            if state.topic_id in self._gone:
                continue
            if not _can_be(state):
                log.warning("metadata of what can be no topic is left out: topic=%r", state.topic_name[:100])
                continue
            if not _is_deletion(state) or self._learned_ids.get(state.topic_name) == state.topic_id:
                self._unlearn(state.topic_name)
            known = self._image.topics.get(state.topic_name)
            is_same = known is not None and known.id == state.topic_id
            if _is_deletion(state):
                if known is not None and is_same:
                    self._delete(known, effects)
                self._note_gone(state.topic_id)
            else:
                if known is not None and not is_same:
                    self._delete(known, effects)
                self._fold_topic(state, known if is_same else None, effects)
        effects.moved += [name for name in moved if name in self._image.topics]
        self._follow(effects)
        waiting, self._waiting = self._waiting, []
        for entry in waiting:
            entry.now()
        return effects

    def on_next_update(self, work: Callable[[], None], after: After, wait_ms: int) -> None:
        """Run `work` soon after the next UpdateMetadata, or `wait_ms` from now."""
        self._waiting.append(_Waiting(work, after, wait_ms))

    def _fold_brokers(self, live: Iterable[UpdateMetadataBroker]) -> set[int]:
        """Return the brokers that have another rack than before."""
        nodes = {each.id: BrokerRegistration(each.id, _listeners(each), each.rack, _protocols(each)) for each in live}
        for node_id in self._image.nodes.keys() - nodes.keys():
            self._image.apply(MetadataChange("broker", str(node_id), None))
        for node in nodes.values():
            if self._image.nodes.get(node.id) != node:
                self._image.apply(registration_change(node))
        racks = {node.id: node.rack for node in nodes.values()}
        moved = {node_id for node_id, rack in racks.items() if self.racks.get(node_id) != rack}
        self.racks = {name: rack for name, rack in {**self.racks, **racks}.items() if rack is not None}
        return moved

    def _reracked(self, nodes: Set[int]) -> list[str]:
        """Return the topics that are on these brokers."""
        if not nodes:
            return []
        return [
            topic.name
            for topic in self._image.topics.values()
            if any(not nodes.isdisjoint(row.replicas) for row in topic.partitions)
        ]

    def _delete(self, topic: Topic, effects: Effects) -> None:
        self._image.apply(MetadataChange("topic", topic.name, None))
        for index in range(len(topic.partitions)):
            self._offline.pop((topic.name, index), None)
        effects.deleted.append((topic.name, topic.id))

    def _note_gone(self, topic_id: UUID) -> None:
        if topic_id != NO_ID:
            self._gone[topic_id] = None
            if len(self._gone) > MAX_GONE:
                del self._gone[next(iter(self._gone))]

    def _fold_topic(self, state: UpdateMetadataTopicState, known: Topic | None, effects: Effects) -> None:
        name = state.topic_name
        is_found = known is None and state.topic_id in self._found
        self._found.discard(state.topic_id)
        before = [] if known is None else known.partitions
        rows = list(before)
        moved = False
        for row in state.partition_states:
            index = row.partition_index
            while len(rows) <= index:
                rows.append(_NOT_TOLD)
            old, new = rows[index], _partition(row)
            if known is not None and _is_older(new, old) and known.id != NO_ID:
                continue
            rows[index] = new
            moved |= new.replicas != old.replicas
            self._note_offline((name, index), row.offline_replicas)
            is_new = index >= len(before) and not is_found
            if is_new or (index < len(before) and (new.leader, new.leader_epoch) != (old.leader, old.leader_epoch)):
                effects.leaders.append(LeaderChange(name, index, new.leader, new.leader_epoch, new.isr))
        if known is not None and len(rows) == len(before):
            for row in state.partition_states:
                self._image.apply(partition_change(name, row.partition_index, rows[row.partition_index]))
            if moved:
                effects.moved.append(name)
            return
        self._image.apply(Topic(name, state.topic_id, rows, name in self._internal).change())
        if known is None and not is_found:
            effects.created.append(name)
        else:
            effects.grown.append((name, len(before)))

    def _note_offline(self, name: tuple[str, int], nodes: Sequence[int]) -> None:
        if nodes:
            self._offline[name] = tuple(nodes)
        else:
            self._offline.pop(name, None)


def _listeners(broker: UpdateMetadataBroker) -> dict[str, tuple[str, int]]:
    return {each.listener: (each.host, each.port) for each in broker.endpoints}


def _protocols(broker: UpdateMetadataBroker) -> dict[str, str]:
    """Of the listeners that do not speak PLAINTEXT."""
    known = range(1, len(SECURITY_PROTOCOLS))
    return {
        each.listener: SECURITY_PROTOCOLS[each.security_protocol]
        for each in broker.endpoints
        if each.security_protocol in known
    }


def _is_older(row: Partition, known: Partition) -> bool:
    return (row.leader_epoch, row.partition_epoch) < (known.leader_epoch, known.partition_epoch)


def _can_be(state: UpdateMetadataTopicState) -> bool:
    indexes = (row.partition_index for row in state.partition_states)
    return is_topic_name(state.topic_name) and all(0 <= index < MAX_PARTITIONS for index in indexes)


def _is_deletion(state: UpdateMetadataTopicState) -> bool:
    return any(row.leader == BEING_DELETED for row in state.partition_states)


def _partition(row: UpdateMetadataPartitionState) -> Partition:
    return Partition(tuple(row.replicas), tuple(row.isr), row.leader, row.leader_epoch, row.partition_epoch)
