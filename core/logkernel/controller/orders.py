"""What the controller has still to tell each broker: the image, minus what that broker was told and confirmed.

The controller folds its changes by `Orders.fold`. That notes for each live broker which partitions it has to hear of,
and nothing else: a request is made of the image as it stands when the request goes out, so a partition that changed ten
times meanwhile is told once. One request is under way a broker. What it carried is confirmed by its answer; without
one, all of it is to be told again. So a lost answer, a broker that was started again (it is told everything, once) and
a new controller (it tells everybody everything, once) are one case.

A broker is told, in this order, as far as there is something to tell:

    1 UpdateMetadata   the live brokers: a follower learns from it where its leader is
    2 UpdateMetadata   partitions of deleted topics, leader -2: forget them
    3 StopReplica      of deleted topics, delete false: nobody writes or follows any more
    4 StopReplica      of deleted topics and of replicas that were taken away, delete true
    5 LeaderAndIsr     partitions that it holds, unless 3 or 4 of the same name is not confirmed
    6 UpdateMetadata   partitions that changed

So a topic that was made again under its name is ordered when the broker has confirmed that the old one is gone. A
partition whose in-sync replicas alone changed is not ordered anew: its leader knows (it proposed the change), and
followers need not.

| what an answer says of a partition | what follows |
|---|---|
| 0, STALE_CONTROLLER_EPOCH, FENCED_LEADER_EPOCH (the broker holds this leader epoch, or a later one) | confirmed |
| KAFKA_STORAGE_ERROR | confirmed; the replica is offline until its broker is started again |
| INCONSISTENT_TOPIC_ID (it holds a log of an earlier topic of that name) | 4 for that log, then 5 again |
| anything else | told again after `REFUSED_MS` |

`offline_replicas` names replicas in offline directories. That a broker is away, the list of live brokers says. A broker
gives up by itself a replica that a newer UpdateMetadata places elsewhere: the controller that took it away may be gone.

A request costs what it carries: O(changed). Pure; time is an argument.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, TypeVar
from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.contracts import MetadataChange
from logkernel.controller.image import BrokerRegistration, ClusterImage, Partition, Topic
from logkernel.errors import (
    FencedLeaderEpoch,
    InconsistentTopicId,
    KafkaStorageError,
    StaleBrokerEpoch,
    StaleControllerEpoch,
)
from logkernel.requests.replication import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    LiveLeader,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)

MAX_PARTITIONS: Final = 1_000
"""Of one request. UpdateMetadata never splits a topic, as brokers go by its number of partitions."""
RETRY_MS: Final = 100
"""After a request without an answer, as in Kafka."""
REFUSED_MS: Final = 1_000
"""Before a partition is told again that a broker refused."""
BEING_DELETED: Final = -2
"""The leader in UpdateMetadata and the leader epoch in StopReplica of a deleted topic's partition."""
CONFIRMED: Final = frozenset((0, StaleControllerEpoch.code, FencedLeaderEpoch.code))

Order = UpdateMetadataRequest | LeaderAndIsrRequest | StopReplicaRequest
Name = tuple[str, int]
"""(topic, partition)."""
K = TypeVar("K")
V = TypeVar("V")


@mutable
class Answered:
    """What an answer says besides what it confirms."""

    offline: list[Name] = field(factory=list)
    """The broker's replicas of these partitions went offline."""
    settled: list[UUID] = field(factory=list)
    """Deleted topics whose last replica is confirmed to be gone."""
    stale_controller: bool = False
    """The broker knows of a later controller."""
    stale_broker: bool = False
    """The broker was started again: ask the coordination for its epoch."""
    refused: list[tuple[Name, int]] = field(factory=list)
    """(partition, error code): told again later."""


@mutable
class _Load:
    """What one request carries."""

    request: Order
    version: int | None = None
    """Of the live brokers."""
    forgotten: dict[UUID, Topic] = field(factory=dict)
    quieted: dict[Name, None] = field(factory=dict)
    stopped: dict[Name, int] = field(factory=dict)
    ordered: dict[Name, bool] = field(factory=dict)
    changed: dict[str, set[int]] = field(factory=dict)


@mutable
class _Told:
    """What one broker, in one broker epoch, has still to be told."""

    broker_epoch: int
    version: int = -1
    """Of the live brokers that it confirmed."""
    forget: dict[UUID, Topic] = field(factory=dict)
    quiet: dict[Name, None] = field(factory=dict)
    stops: dict[Name, int] = field(factory=dict)
    """Replica that has to go → leader epoch: the partition's then, -2 where its topic is deleted."""
    orders: dict[Name, bool] = field(factory=dict)
    """Partition → whether it is new: no log of it was ever here."""
    changed: dict[str, set[int]] = field(factory=dict)
    stopping: set[Name] = field(factory=set)
    """All of `quiet` and `stops`, waiting, under way or put off: no order of that name before."""
    under_way: _Load | None = None
    not_before_ms: int = 0
    """Monotonic: nothing is sent before."""
    put_off: _Load | None = None
    """What was refused."""
    put_off_until_ms: int = 0

    # ------------------------------------------------------------ questions

    def has_orders(self) -> bool:
        return any(name not in self.stopping for name in self.orders)

    def has_something(self, version: int) -> bool:
        some = self.version != version or self.forget or self.quiet or self.stops or self.changed
        return bool(some) or self.has_orders()

    def is_idle(self, version: int) -> bool:
        return self.under_way is None and self.put_off is None and not self.has_something(version) and not self.orders

    # ------------------------------------------------------------ to be told

    def tell(self, topic: str, indexes: Iterable[int]) -> None:
        self.changed.setdefault(topic, set()).update(indexes)

    def order(self, name: Name, *, is_new: bool) -> None:
        self.orders[name] = is_new or self.orders.get(name, False)
        if self.put_off is not None:
            self.put_off.ordered.pop(name, None)

    def stop(self, name: Name, leader_epoch: int) -> None:
        self.orders.pop(name, None)
        self.stops[name] = leader_epoch
        self.stopping.add(name)

    def keep(self, name: Name) -> None:
        """The replica stays after all."""
        if self.stops.get(name, BEING_DELETED) != BEING_DELETED:
            del self.stops[name]
            self.stopping.discard(name)

    def delete(self, topic: Topic, held: Iterable[int]) -> None:
        self.changed.pop(topic.name, None)
        for index in range(len(topic.partitions)):
            self.orders.pop((topic.name, index), None)
        self.forget[topic.id] = topic
        for index in held:
            name = (topic.name, index)
            self.stops.pop(name, None)
            self.quiet[name] = None
            self.stopping.add(name)

    def take_changed(self) -> dict[str, set[int]]:
        """Whole topics, until there are enough."""
        taken: dict[str, set[int]] = {}
        count = 0
        while self.changed and count < MAX_PARTITIONS:
            topic = next(iter(self.changed))
            taken[topic] = self.changed.pop(topic)
            count += len(taken[topic])
        return taken

    def take_orders(self) -> dict[Name, bool]:
        taken = {}
        for name in self.orders:
            if name not in self.stopping:
                taken[name] = self.orders[name]
                if len(taken) == MAX_PARTITIONS:
                    break
        for name in taken:
            del self.orders[name]
        return taken

    def resume(self, mono_ms: int) -> None:
        """What was put off for long enough is to be told again."""
        if self.put_off is not None and mono_ms >= self.put_off_until_ms:
            load, self.put_off = self.put_off, None
            self.quiet |= load.quieted
            self.stops |= load.stopped
            self.orders = load.ordered | self.orders


class Orders:
    """The orders of one controller in one term. It owns the image: `fold` alone changes it."""

    def __init__(self, controller_id: int, term: int, image: ClusterImage) -> None:
        self.controller_id = controller_id
        self.term = term
        self.image = image
        self.brokers: dict[int, _Told] = {}
        """Node id → what it has to be told; read-only for others."""
        self.offline: dict[Name, set[int]] = {}
        """Partition → live brokers whose replica of it lies in an offline directory; read-only for others."""
        self._version = 0
        """Grows when a broker comes, goes or moves."""
        self._deleting: dict[str, dict[UUID, set[tuple[int, int]]]] = {}
        """Topic → deleted ids of that name → (broker, partition) of each replica that is not confirmed to be gone."""
        self.settled: list[UUID] = []
        """Deleted topics of which no broker holds anything any more, besides those that answers tell of."""
        for topic in image.gone.values():
            if topic is not None:
                self._resume_deletion(topic)

    def _resume_deletion(self, topic: Topic) -> None:
        """Another controller did not hear the end of it. Where a later topic of that name has a replica instead,
        nothing is stopped, here and when a broker comes: StopReplica names no id, so it could hit the later one. The
        broker says if it still has the earlier one (INCONSISTENT_TOPIC_ID)."""
        rows = enumerate(topic.partitions)
        replicas = {(node, index) for index, row in rows for node in row.replicas}
        waiting = {pair for pair in replicas if not self._holds(pair[0], (topic.name, pair[1]))}
        if waiting:
            self._deleting.setdefault(topic.name, {})[topic.id] = waiting
        else:
            self.settled.append(topic.id)

    # ------------------------------------------------------------ questions

    def alive(self, topic: str, index: int, living: frozenset[int]) -> frozenset[int]:
        """Those of `living` whose replica of the partition is not offline."""
        offline = self.offline.get((topic, index))
        return living if offline is None else living - offline

    def ready(self, mono_ms: int) -> list[int]:
        """Brokers for which `next_request` has one now."""
        return [node for node, told in self.brokers.items() if self._may_be_told(told, mono_ms)]

    def _may_be_told(self, told: _Told, mono_ms: int) -> bool:
        told.resume(mono_ms)
        return told.under_way is None and mono_ms >= told.not_before_ms and told.has_something(self._version)

    def next_deadline(self) -> int | None:
        """Monotonic ms at which a back-off ends; None where none is under way."""
        due = []
        for told in self.brokers.values():
            if told.put_off is not None:
                due.append(max(told.put_off_until_ms, told.not_before_ms))
            if told.under_way is None and told.has_something(self._version):
                due.append(told.not_before_ms)
        return min(due, default=None)

    def is_told(self, node: int) -> bool:
        """A broker has confirmed all that there is to tell it, or is away."""
        told = self.brokers.get(node)
        return told is None or told.is_idle(self._version)

    @property
    def is_idle(self) -> bool:
        """Every live broker has confirmed all that there is to tell."""
        return all(told.is_idle(self._version) for told in self.brokers.values())

    # ------------------------------------------------------------ events

    def broker_came(self, node: int, broker_epoch: int) -> None:
        """A broker registered, in this broker epoch: it is told everything."""
        self.broker_gone(node)
        told = self.brokers[node] = _Told(broker_epoch)
        for topic_name, ids in list(self._deleting.items()):
            for index in {index for replicas in ids.values() for holder, index in replicas if holder == node}:
                if self._holds(node, (topic_name, index)):
                    self._gone(node, (topic_name, index), self.settled)
                else:
                    told.stop((topic_name, index), BEING_DELETED)
        told.forget |= {topic_id: topic for topic_id, topic in self.image.gone.items() if topic is not None}
        for topic in self.image.topics.values():
            told.tell(topic.name, range(len(topic.partitions)))
            for index, row in enumerate(topic.partitions):
                if node in row.replicas:
                    told.order((topic.name, index), is_new=False)

    def replicas_again(self, node: int) -> None:
        """A log directory of the broker failed: it is ordered again, and its answer says which replicas it lost."""
        told = self.brokers.get(node)
        if told is not None:
            for topic in self.image.topics.values():
                for index, row in enumerate(topic.partitions):
                    if node in row.replicas:
                        told.order((topic.name, index), is_new=False)

    def broker_gone(self, node: int) -> None:
        """Its session ended: it is told nothing any more. Its replicas are away, and not offline."""
        self.brokers.pop(node, None)
        self._version += 1
        for name in list(self.offline):
            self._is_online(node, name)

    def fold(self, changes: Iterable[MetadataChange]) -> None:
        """Fold what was committed into the image, and note who has to hear of it."""
        for change in changes:
            if change.kind == "topic":
                self._fold_topic(change)
            elif change.kind == "partition":
                self._fold_partition(change)
            elif change.kind == "broker":
                self._fold_broker(change)
            else:
                self.image.apply(change)

    def _fold_broker(self, change: MetadataChange) -> None:
        node = int(change.key)
        before = self.image.nodes.get(node)
        self.image.apply(change)
        if self.image.nodes.get(node) != before:
            self._version += 1

    def _fold_topic(self, change: MetadataChange) -> None:
        before = self.image.topics.get(change.key)
        self.image.apply(change)
        after = self.image.topics.get(change.key)
        if before is not None and (after is None or after.id != before.id):
            self._deleted(before)
            before = None
        if after is not None:
            rows = before.partitions if before is not None else []
            for index, row in enumerate(after.partitions):
                self._moved((after.name, index), rows[index] if index < len(rows) else None, row)

    def _fold_partition(self, change: MetadataChange) -> None:
        topic, _, number = change.key.rpartition(":")
        index = int(number)
        before = self.image.topics[topic].partitions[index]
        self.image.apply(change)
        self._moved((topic, index), before, self.image.topics[topic].partitions[index])

    def _moved(self, name: Name, before: Partition | None, after: Partition) -> None:
        """A partition is another than before, or new."""
        if after == before:
            return
        is_new = before is None
        held = () if before is None else before.replicas
        obeyed = before is not None and _commands(before) == _commands(after)
        for node, told in self.brokers.items():
            told.tell(name[0], (name[1],))
            if node in after.replicas:
                if not is_new:
                    told.keep(name)
                if not obeyed:
                    told.order(name, is_new=node not in held)
            elif node in held:
                told.stop(name, after.leader_epoch)

    def _deleted(self, topic: Topic) -> None:
        rows = topic.partitions
        replicas = {(node, index) for index, row in enumerate(rows) for node in row.replicas}
        self._deleting.setdefault(topic.name, {})[topic.id] = replicas
        for index in range(len(rows)):
            self.offline.pop((topic.name, index), None)
        for node, told in self.brokers.items():
            told.delete(topic, [index for index, row in enumerate(rows) if node in row.replicas])

    def _tell_all(self, name: Name) -> None:
        topic = self.image.topics.get(name[0])
        if topic is not None and name[1] < len(topic.partitions):
            for told in self.brokers.values():
                told.tell(name[0], (name[1],))

    # ------------------------------------------------------------ requests

    def next_request(self, node: int, mono_ms: int) -> Order | None:
        """The next order for a broker; None while one is under way, during a back-off, or where it knows all.

        What is returned is to be sent, and `on_answer` told once what came of it.
        """
        told = self.brokers.get(node)
        if told is None or not self._may_be_told(told, mono_ms):
            return None
        load = told.under_way = self._load(told)
        return load.request

    def _load(self, told: _Told) -> _Load:
        """The docstring's order."""
        if told.version != self._version:
            return _Load(self._update_metadata(told, []), version=self._version)
        if told.forget:
            gone = _take(told.forget, 1)
            return _Load(self._update_metadata(told, [_forgetting(row) for row in gone.values()]), forgotten=gone)
        if told.quiet:
            quieted = _take(told.quiet)
            stops = dict.fromkeys(quieted, BEING_DELETED)
            return _Load(self._stop_replica(told, stops, delete=False), quieted=quieted)
        if told.stops:
            stopped = _take(told.stops)
            return _Load(self._stop_replica(told, stopped, delete=True), stopped=stopped)
        ordered = told.take_orders()
        if ordered:
            return _Load(self._leader_and_isr(told, ordered), ordered=ordered)
        changed = told.take_changed()
        return _Load(self._update_metadata(told, self._rows(changed)), changed=changed)

    def _update_metadata(self, told: _Told, topics: list[UpdateMetadataTopicState]) -> UpdateMetadataRequest:
        return UpdateMetadataRequest(
            controller_id=self.controller_id,
            controller_epoch=self.term,
            broker_epoch=told.broker_epoch,
            topic_states=topics,
            live_brokers=[_live(node) for _, node in sorted(self.image.nodes.items())],
        )

    def _rows(self, changed: Mapping[str, Collection[int]]) -> list[UpdateMetadataTopicState]:
        found = []
        for name, indexes in changed.items():
            topic = self.image.topics[name]
            rows = [self._row(name, index, topic.partitions[index]) for index in sorted(indexes)]
            found.append(UpdateMetadataTopicState(name, topic.id, rows))
        return found

    def _row(self, topic: str, index: int, row: Partition) -> UpdateMetadataPartitionState:
        return UpdateMetadataPartitionState(
            partition_index=index,
            controller_epoch=self.term,
            leader=row.leader,
            leader_epoch=row.leader_epoch,
            isr=list(row.isr),
            partition_epoch=row.partition_epoch,
            replicas=list(row.replicas),
            offline_replicas=sorted(self.offline.get((topic, index), ())),
        )

    def _leader_and_isr(self, told: _Told, ordered: Mapping[Name, bool]) -> LeaderAndIsrRequest:
        topics: dict[str, LeaderAndIsrTopicState] = {}
        leaders: dict[int, None] = {}
        for (name, index), is_new in ordered.items():
            topic = self.image.topics[name]
            row = topic.partitions[index]
            leaders[row.leader] = None
            state = topics.get(name)
            if state is None:
                state = topics[name] = LeaderAndIsrTopicState(name, topic.id)
            state.partition_states.append(
                LeaderAndIsrPartitionState(
                    partition_index=index,
                    controller_epoch=self.term,
                    leader=row.leader,
                    leader_epoch=row.leader_epoch,
                    isr=list(row.isr),
                    partition_epoch=row.partition_epoch,
                    replicas=list(row.replicas),
                    adding_replicas=list(row.adding),
                    removing_replicas=list(row.removing),
                    is_new=is_new,
                )
            )
        nodes = (self.image.nodes.get(leader) for leader in leaders)
        return LeaderAndIsrRequest(
            controller_id=self.controller_id,
            controller_epoch=self.term,
            broker_epoch=told.broker_epoch,
            topic_states=list(topics.values()),
            live_leaders=[_leader(node) for node in nodes if node is not None],
        )

    def _stop_replica(self, told: _Told, stops: Mapping[Name, int], *, delete: bool) -> StopReplicaRequest:
        topics: dict[str, StopReplicaTopicState] = {}
        for (name, index), leader_epoch in stops.items():
            state = topics.get(name)
            if state is None:
                state = topics[name] = StopReplicaTopicState(name)
            state.partition_states.append(StopReplicaPartitionState(index, leader_epoch, delete))
        return StopReplicaRequest(
            controller_id=self.controller_id,
            controller_epoch=self.term,
            broker_epoch=told.broker_epoch,
            topic_states=list(topics.values()),
        )

    # ------------------------------------------------------------ answers

    def on_answer(self, node: int, request: Order, response: Any, mono_ms: int) -> Answered:
        """What came of a request; `response` is None where no answer came. What belongs to no request under way (the
        broker was started again since) counts for nothing."""
        answered = Answered()
        told = self.brokers.get(node)
        if told is None or told.under_way is None or told.under_way.request is not request:
            return answered
        load, told.under_way = told.under_way, None
        if response is None or response.error_code:
            if response is not None:
                answered.stale_controller = response.error_code == StaleControllerEpoch.code
                answered.stale_broker = response.error_code == StaleBrokerEpoch.code
            self._tell_again(node, told, load)
            told.not_before_ms = mono_ms + RETRY_MS
            return answered
        if load.version is not None:
            told.version = load.version
        refused = _Load(request)
        errors = self._errors(request, response)
        for name in load.quieted:
            if self._is_confirmed(name, errors.get(name, 0), answered):
                told.stops[name] = BEING_DELETED
            else:
                refused.quieted[name] = None
        for name, leader_epoch in load.stopped.items():
            if self._is_confirmed(name, errors.get(name, 0), answered):
                if name not in told.quiet and name not in told.stops:
                    told.stopping.discard(name)
                if errors.get(name) != KafkaStorageError.code:
                    self._gone(node, name, answered.settled)
            else:
                refused.stopped[name] = leader_epoch
        for name, is_new in load.ordered.items():
            if self._holds(node, name):
                self._ordered(node, told, name, is_new, errors.get(name, 0), answered, refused)
        if answered.refused:
            self._put_off(told, refused, mono_ms)
        return answered

    def _errors(self, request: Order, response: Any) -> dict[Name, int]:
        """Partition → the error code that the answer has for it."""
        if isinstance(request, StopReplicaRequest):
            return {(row.topic_name, row.partition_index): row.error_code for row in response.partition_errors}
        if isinstance(request, LeaderAndIsrRequest):
            names = {state.topic_id: state.topic_name for state in request.topic_states}
            return {
                (names[topic.topic_id], row.partition_index): row.error_code
                for topic in response.topics
                for row in topic.partition_errors
                if topic.topic_id in names
            }
        return {}

    def _is_confirmed(self, name: Name, code: int, answered: Answered) -> bool:
        if code in CONFIRMED or code == KafkaStorageError.code:
            return True
        answered.refused.append((name, code))
        return False

    def _gone(self, node: int, name: Name, settled: list[UUID]) -> None:
        """A broker holds no replica of deleted topics of that name: of the one that was meant, or of one since, as
        nothing was ordered meanwhile."""
        deleting = self._deleting.get(name[0])
        if deleting is None:
            return
        for topic_id, waiting in list(deleting.items()):
            waiting.discard((node, name[1]))
            if not waiting:
                del deleting[topic_id]
                settled.append(topic_id)
        if not deleting:
            del self._deleting[name[0]]

    def _ordered(
        self, node: int, told: _Told, name: Name, is_new: bool, code: int, answered: Answered, refused: _Load
    ) -> None:
        if code == InconsistentTopicId.code:
            told.stop(name, BEING_DELETED)
            told.order(name, is_new=is_new)
        elif not self._is_confirmed(name, code, answered):
            refused.ordered[name] = is_new
        elif code == KafkaStorageError.code:
            self.offline.setdefault(name, set()).add(node)
            self._tell_all(name)
            answered.offline.append(name)
        else:
            self._is_online(node, name)

    def _is_online(self, node: int, name: Name) -> None:
        nodes = self.offline.get(name)
        if nodes is not None and node in nodes:
            nodes.discard(node)
            if not nodes:
                del self.offline[name]
            self._tell_all(name)

    def _holds(self, node: int, name: Name) -> bool:
        """Whether the partition exists, with a replica on that broker."""
        topic = self.image.topics.get(name[0])
        return topic is not None and name[1] < len(topic.partitions) and node in topic.partitions[name[1]].replicas

    def _tell_again(self, node: int, told: _Told, load: _Load) -> None:
        """Nothing of it was confirmed. What changed since is told as it is now."""
        told.forget = load.forgotten | told.forget
        told.quiet = load.quieted | told.quiet
        for name, leader_epoch in load.stopped.items():
            if leader_epoch != BEING_DELETED and self._holds(node, name):
                told.stopping.discard(name)  # it was given back meanwhile
            elif name not in told.quiet:
                told.stops.setdefault(name, leader_epoch)
        for name, is_new in load.ordered.items():
            if self._holds(node, name) and name not in told.stopping:
                told.order(name, is_new=is_new)
        for topic, indexes in load.changed.items():
            found = self.image.topics.get(topic)
            if found is not None:
                told.tell(topic, (index for index in indexes if index < len(found.partitions)))

    def _put_off(self, told: _Told, refused: _Load, mono_ms: int) -> None:
        if told.put_off is None:
            told.put_off, told.put_off_until_ms = refused, mono_ms + REFUSED_MS
        else:
            told.put_off.quieted |= refused.quieted
            told.put_off.stopped |= refused.stopped
            told.put_off.ordered |= refused.ordered


def _take(waiting: dict[K, V], count: int = MAX_PARTITIONS) -> dict[K, V]:
    """Take out the first of them."""
    taken = dict(zip(list(waiting)[:count], list(waiting.values())[:count], strict=True))
    for key in taken:
        del waiting[key]
    return taken


def _commands(row: Partition) -> tuple[int, int, tuple[int, ...]]:
    """What a replica is ordered: the rest it learns by itself, or need not know."""
    return row.leader, row.leader_epoch, row.replicas


def _forgetting(topic: Topic) -> UpdateMetadataTopicState:
    rows = [
        UpdateMetadataPartitionState(
            partition_index=index, leader=BEING_DELETED, leader_epoch=row.leader_epoch, replicas=list(row.replicas)
        )
        for index, row in enumerate(topic.partitions)
    ]
    return UpdateMetadataTopicState(topic.name, topic.id, rows)


def _live(node: BrokerRegistration) -> UpdateMetadataBroker:
    endpoints = [UpdateMetadataEndpoint(port, host, name) for name, (host, port) in node.listeners.items()]
    return UpdateMetadataBroker(node.id, endpoints, node.rack)


def _leader(node: BrokerRegistration) -> LiveLeader:
    host, port = next(iter(node.listeners.values()), ("", 0))
    return LiveLeader(node.id, host, port)
