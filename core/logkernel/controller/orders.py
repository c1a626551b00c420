"""The orders that the controller has still to send to each broker: UpdateMetadata, LeaderAndIsr, StopReplica.

The controller folds its committed changes by `Orders.fold`. That adds the names of the changed partitions to the
backlog of each live broker. A request is built from the image when it is sent, so a partition that changed ten times
meanwhile is sent once. Each broker has at most one request in flight. Its response confirms what it carried; without a
response, all of it goes back into the backlog. A broker that was started again gets everything once, and a new
controller sends everything to every broker once, so a lost response, a restart and a new controller are one case.

A broker gets, in this order, whatever its backlog holds:

    1 UpdateMetadata   the live brokers: a follower needs its leader's address
    2 UpdateMetadata   partitions of deleted topics, leader -2: forget them
    3 StopReplica      of deleted topics, delete false: their replicas stop
    4 StopReplica      of deleted topics and of reassigned replicas, delete true
    5 LeaderAndIsr     partitions with a replica on it, unless 3 or 4 of the same name is not confirmed
    6 UpdateMetadata   partitions that changed

So a topic that was created again under the same name is ordered only after the broker has confirmed that the old one
is gone. A partition of which only the ISR changed gets no LeaderAndIsr: its leader proposed the change, and followers
do not need it.

| a partition's error code in the response | what follows |
|---|---|
| 0, STALE_CONTROLLER_EPOCH, FENCED_LEADER_EPOCH (the broker has this leader epoch, or a later one) | confirmed |
| KAFKA_STORAGE_ERROR | confirmed; the replica is offline until its broker restarts, or says that it has it |
| INCONSISTENT_TOPIC_ID (it has a log of an earlier topic of that name) | 4 for that log, then 5 again, once |
| anything else | sent again after `REFUSED_MS` |

`offline_replicas` names replicas in offline directories; which brokers are down follows from the list of live brokers.
A broker stops a replica by itself if a newer UpdateMetadata places it elsewhere: the controller that reassigned it may
have failed before its StopReplica.

A request costs O(changed partitions). Pure; time is an argument.
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
    BEING_DELETED,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
    LiveLeader,
    Order,
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from logkernel.vocabulary import PLAINTEXT, SECURITY_PROTOCOLS

MAX_PARTITIONS: Final = 1_000
"""Maximum partitions of one request. UpdateMetadata never splits a topic, as brokers derive its partition count."""
RETRY_MS: Final = 100
"""Back-off after a request without a response, as in Kafka."""
REFUSED_MS: Final = 1_000
"""Time before a partition is sent again that a broker refused."""
CONFIRMED: Final = frozenset((0, StaleControllerEpoch.code, FencedLeaderEpoch.code))

Name = tuple[str, int]
"""(topic, partition)."""
K = TypeVar("K")
V = TypeVar("V")


@mutable
class Answered:
    """What follows from a response, besides what it confirms."""

    offline: list[Name] = field(factory=list)
    """The broker's replicas of these partitions went offline."""
    online: list[Name] = field(factory=list)
    """Its replicas of these were offline, and are not any more."""
    erased: list[UUID] = field(factory=list)
    """Deleted topics whose last replica is confirmed to be gone."""
    stale_controller: bool = False
    """The broker has orders of a later controller."""
    stale_broker: bool = False
    """The broker was started again: read its epoch from the coordination."""
    refused: list[tuple[Name, int]] = field(factory=list)
    """(partition, error code) of what is sent again later."""


@mutable
class _Payload:
    """One request, and the part of the backlog that it carries."""

    request: Order
    version: int | None = None
    """Version of the live brokers that the request carries, if it is 1."""
    forgotten: dict[UUID, Topic] = field(factory=dict)
    quieted: dict[Name, None] = field(factory=dict)
    stopped: dict[Name, int] = field(factory=dict)
    ordered: dict[Name, bool] = field(factory=dict)
    changed: dict[str, set[int]] = field(factory=dict)


@mutable
class _Backlog:
    """What one broker, in one broker epoch, has not confirmed yet."""

    broker_epoch: int
    version: int = -1
    """Version of the live brokers that it confirmed."""
    forget: dict[UUID, Topic] = field(factory=dict)
    quiet: dict[Name, None] = field(factory=dict)
    stops: dict[Name, int] = field(factory=dict)
    """Partition whose replica is to be deleted → its leader epoch; `BEING_DELETED` if its topic is deleted."""
    orders: dict[Name, bool] = field(factory=dict)
    """Partition → whether the replica is new: this broker never had a log of it."""
    changed: dict[str, set[int]] = field(factory=dict)
    stopping: set[Name] = field(factory=set)
    """All of `quiet` and `stops`, be they waiting, in flight or deferred; these get no LeaderAndIsr before."""
    inconsistent: set[Name] = field(factory=set)
    """Partitions of which it had a log of an earlier topic, and was told to delete it."""
    under_way: _Payload | None = None
    not_before_ms: int = 0
    """Monotonic ms before which nothing is sent."""
    deferred: _Payload | None = None
    """What the broker refused."""
    deferred_until_ms: int = 0

    # ------------------------------------------------------------ questions

    def has_orders(self) -> bool:
        return any(name not in self.stopping for name in self.orders)

    def has_something(self, version: int) -> bool:
        some = self.version != version or self.forget or self.quiet or self.stops or self.changed
        return bool(some) or self.has_orders()

    def is_idle(self, version: int) -> bool:
        return self.under_way is None and self.deferred is None and not self.has_something(version) and not self.orders

    # ------------------------------------------------------------ additions

    def change(self, topic: str, indexes: Iterable[int]) -> None:
        self.changed.setdefault(topic, set()).update(indexes)

    def order(self, name: Name, *, is_new: bool) -> None:
        self.orders[name] = is_new or self.orders.get(name, False)
        self._undefer(name)

    def _undefer(self, name: Name) -> None:
        if self.deferred is not None:
            self.deferred.ordered.pop(name, None)

    def stop(self, name: Name, leader_epoch: int) -> None:
        self.orders.pop(name, None)
        self._undefer(name)
        self.stops[name] = leader_epoch
        self.stopping.add(name)

    def keep(self, name: Name) -> None:
        """Take back a `stop`: the partition is assigned to this broker again."""
        if self.stops.get(name, BEING_DELETED) != BEING_DELETED:
            del self.stops[name]
            self.stopping.discard(name)

    def delete(self, topic: Topic, held: Iterable[int]) -> None:
        self.changed.pop(topic.name, None)
        for index in range(len(topic.partitions)):
            name = (topic.name, index)
            self.orders.pop(name, None)
            self._undefer(name)
            self.inconsistent.discard(name)
        self.forget[topic.id] = topic
        for index in held:
            name = (topic.name, index)
            self.stops.pop(name, None)
            self.quiet[name] = None
            self.stopping.add(name)

    def take_changed(self) -> dict[str, set[int]]:
        """Take out whole topics, until they have `MAX_PARTITIONS` partitions."""
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
        """Move what was deferred long enough back into the backlog."""
        if self.deferred is not None and mono_ms >= self.deferred_until_ms:
            payload, self.deferred = self.deferred, None
            self.quiet |= payload.quieted
            self.stops |= payload.stopped
            self.orders = payload.ordered | self.orders


class Orders:
    """The orders of one controller in one term. It owns the image, which only `fold` changes."""

    def __init__(self, controller_id: int, term: int, image: ClusterImage) -> None:
        self.controller_id = controller_id
        self.term = term
        self.image = image
        self.brokers: dict[int, _Backlog] = {}
        """Node id → backlog; read-only for others."""
        self.offline: dict[Name, set[int]] = {}
        """Partition → live brokers whose replica of it is in an offline directory; read-only for others."""
        self._version = 0
        """Version of the live brokers; grows when one registers, leaves or changes its address."""
        self._deleting: dict[str, dict[UUID, set[tuple[int, int]]]] = {}
        """Topic name → deleted topic id → (broker, partition) of each replica whose deletion is not confirmed."""
        self.erased: list[UUID] = []
        """Deleted topics whose last replica is gone, besides those in `Answered.erased`."""
        for topic in image.gone.values():
            if topic is not None:
                self._resume_deletion(topic)

    def _resume_deletion(self, topic: Topic) -> None:
        """Continue a deletion that an earlier controller did not finish.

        A replica that now belongs to a later topic of that name is not stopped, neither here nor when a broker
        registers: StopReplica has no topic id, so it could delete the later log. A broker that still has the earlier
        log answers LeaderAndIsr with INCONSISTENT_TOPIC_ID.
        """
        rows = enumerate(topic.partitions)
        replicas = {(node, index) for index, row in rows for node in row.replicas}
        waiting = {pair for pair in replicas if not self._holds(pair[0], (topic.name, pair[1]))}
        if waiting:
            self._deleting.setdefault(topic.name, {})[topic.id] = waiting
        else:
            self.erased.append(topic.id)

    # ------------------------------------------------------------ questions

    def alive(self, topic: str, index: int, living: frozenset[int]) -> frozenset[int]:
        """Return those of `living` whose replica of the partition is not offline."""
        offline = self.offline.get((topic, index))
        return living if offline is None else living - offline

    def ready(self, mono_ms: int) -> list[int]:
        """Return the brokers for which `next_request` returns a request now."""
        return [node for node, backlog in self.brokers.items() if self._may_send(backlog, mono_ms)]

    def _may_send(self, backlog: _Backlog, mono_ms: int) -> bool:
        backlog.resume(mono_ms)
        return backlog.under_way is None and mono_ms >= backlog.not_before_ms and backlog.has_something(self._version)

    def next_deadline(self) -> int | None:
        """Return the monotonic ms at which the next back-off ends; None if there is none."""
        due = []
        for backlog in self.brokers.values():
            if backlog.deferred is not None:
                due.append(max(backlog.deferred_until_ms, backlog.not_before_ms))
            if backlog.under_way is None and backlog.has_something(self._version):
                due.append(backlog.not_before_ms)
        return min(due, default=None)

    def is_up_to_date(self, node: int) -> bool:
        """Whether a broker has confirmed everything, or is not alive."""
        backlog = self.brokers.get(node)
        return backlog is None or backlog.is_idle(self._version)

    @property
    def is_idle(self) -> bool:
        """Whether every live broker has confirmed everything."""
        return all(backlog.is_idle(self._version) for backlog in self.brokers.values())

    # ------------------------------------------------------------ events

    def broker_came(self, node: int, broker_epoch: int) -> None:
        """A broker registered with this broker epoch: its backlog is everything."""
        self.broker_gone(node)
        backlog = self.brokers[node] = _Backlog(broker_epoch)
        for topic_name, ids in list(self._deleting.items()):
            for index in {index for replicas in ids.values() for holder, index in replicas if holder == node}:
                if self._holds(node, (topic_name, index)):
                    self._gone(node, (topic_name, index), self.erased)
                else:
                    backlog.stop((topic_name, index), BEING_DELETED)
        backlog.forget |= {topic_id: topic for topic_id, topic in self.image.gone.items() if topic is not None}
        for topic in self.image.topics.values():
            backlog.change(topic.name, range(len(topic.partitions)))
            for index, row in enumerate(topic.partitions):
                if node in row.replicas:
                    backlog.order((topic.name, index), is_new=False)

    def replicas_again(self, node: int) -> None:
        """A log directory of the broker failed: send it LeaderAndIsr again; the response names the replicas that it
        lost."""
        backlog = self.brokers.get(node)
        if backlog is not None:
            for topic in self.image.topics.values():
                for index, row in enumerate(topic.partitions):
                    if node in row.replicas:
                        backlog.order((topic.name, index), is_new=False)

    def broker_gone(self, node: int) -> None:
        """A broker's session ended: drop its backlog. Its replicas count as down, not as offline."""
        self.brokers.pop(node, None)
        self._version += 1
        for name in list(self.offline):
            self._is_online(node, name)

    def fold(self, changes: Iterable[MetadataChange]) -> None:
        """Fold committed changes into the image, and add them to the backlogs."""
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
        """A partition changed; `before` is None for a new one."""
        if after == before:
            return
        is_new = before is None
        held = () if before is None else before.replicas
        obeyed = before is not None and _commands(before) == _commands(after)
        for node, backlog in self.brokers.items():
            backlog.change(name[0], (name[1],))
            if node in after.replicas:
                if not is_new:
                    backlog.keep(name)
                if not obeyed:
                    backlog.order(name, is_new=node not in held)
            elif node in held:
                backlog.stop(name, after.leader_epoch)

    def _deleted(self, topic: Topic) -> None:
        rows = topic.partitions
        replicas = {(node, index) for index, row in enumerate(rows) for node in row.replicas}
        self._deleting.setdefault(topic.name, {})[topic.id] = replicas
        for index in range(len(rows)):
            self.offline.pop((topic.name, index), None)
        for node, backlog in self.brokers.items():
            backlog.delete(topic, [index for index, row in enumerate(rows) if node in row.replicas])

    def _change_for_all(self, name: Name) -> None:
        topic = self.image.topics.get(name[0])
        if topic is not None and name[1] < len(topic.partitions):
            for backlog in self.brokers.values():
                backlog.change(name[0], (name[1],))

    # ------------------------------------------------------------ requests

    def next_request(self, node: int, mono_ms: int) -> Order | None:
        """Return the next request to a broker; None if one is in flight, during a back-off, or if its backlog is empty.

        The caller sends it, and calls `on_answer` once.
        """
        backlog = self.brokers.get(node)
        if backlog is None or not self._may_send(backlog, mono_ms):
            return None
        payload = backlog.under_way = self._next_payload(backlog)
        return payload.request

    def _next_payload(self, backlog: _Backlog) -> _Payload:
        """Take the first of 1 to 6 (see the module) that the backlog holds."""
        if backlog.version != self._version:
            return _Payload(self._update_metadata(backlog, []), version=self._version)
        if backlog.forget:
            gone = _take(backlog.forget, 1)
            return _Payload(self._update_metadata(backlog, [_forgetting(row) for row in gone.values()]), forgotten=gone)
        if backlog.quiet:
            quieted = _take(backlog.quiet)
            stops = dict.fromkeys(quieted, BEING_DELETED)
            return _Payload(self._stop_replica(backlog, stops, delete=False), quieted=quieted)
        if backlog.stops:
            stopped = _take(backlog.stops)
            return _Payload(self._stop_replica(backlog, stopped, delete=True), stopped=stopped)
        ordered = backlog.take_orders()
        if ordered:
            return _Payload(self._leader_and_isr(backlog, ordered), ordered=ordered)
        changed = backlog.take_changed()
        return _Payload(self._update_metadata(backlog, self._rows(changed)), changed=changed)

    def _update_metadata(self, backlog: _Backlog, topics: list[UpdateMetadataTopicState]) -> UpdateMetadataRequest:
        return UpdateMetadataRequest(
            controller_id=self.controller_id,
            controller_epoch=self.term,
            broker_epoch=backlog.broker_epoch,
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

    def _leader_and_isr(self, backlog: _Backlog, ordered: Mapping[Name, bool]) -> LeaderAndIsrRequest:
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
            broker_epoch=backlog.broker_epoch,
            topic_states=list(topics.values()),
            live_leaders=[_leader(node) for node in nodes if node is not None],
        )

    def _stop_replica(self, backlog: _Backlog, stops: Mapping[Name, int], *, delete: bool) -> StopReplicaRequest:
        topics: dict[str, StopReplicaTopicState] = {}
        for (name, index), leader_epoch in stops.items():
            state = topics.get(name)
            if state is None:
                state = topics[name] = StopReplicaTopicState(name)
            state.partition_states.append(StopReplicaPartitionState(index, leader_epoch, delete))
        return StopReplicaRequest(
            controller_id=self.controller_id,
            controller_epoch=self.term,
            broker_epoch=backlog.broker_epoch,
            topic_states=list(topics.values()),
        )

    # ------------------------------------------------------------ answers

    def on_answer(self, node: int, request: Order, response: Any, mono_ms: int) -> Answered:
        """Take the response to a request; None if there was none. The response to a request that is not in flight any
        more (the broker was started again) is ignored."""
        answered = Answered()
        backlog = self.brokers.get(node)
        if backlog is None or backlog.under_way is None or backlog.under_way.request is not request:
            return answered
        payload, backlog.under_way = backlog.under_way, None
        if response is None or response.error_code:
            if response is not None:
                answered.stale_controller = response.error_code == StaleControllerEpoch.code
                answered.stale_broker = response.error_code == StaleBrokerEpoch.code
            self._requeue(node, backlog, payload)
            backlog.not_before_ms = mono_ms + RETRY_MS
            return answered
        if payload.version is not None:
            backlog.version = payload.version
        refused = _Payload(request)
        errors = self._errors(request, response)
        for name in payload.quieted:
            if self._is_confirmed(name, errors.get(name, 0), answered):
                backlog.stops[name] = BEING_DELETED
            else:
                refused.quieted[name] = None
        for name, leader_epoch in payload.stopped.items():
            if self._is_confirmed(name, errors.get(name, 0), answered):
                if name not in backlog.quiet and name not in backlog.stops:
                    backlog.stopping.discard(name)
                if errors.get(name) != KafkaStorageError.code:
                    self._gone(node, name, answered.erased)
            else:
                refused.stopped[name] = leader_epoch
        for name, is_new in payload.ordered.items():
            if self._holds(node, name):
                self._ordered(node, backlog, name, is_new, errors.get(name, 0), answered, refused)
        if answered.refused:
            self._defer(backlog, refused, mono_ms)
        return answered

    def _errors(self, request: Order, response: Any) -> dict[Name, int]:
        """Return partition → its error code in the response."""
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

    def _gone(self, node: int, name: Name, erased: list[UUID]) -> None:
        """A broker has no replica of any deleted topic of that name any more: none was ordered since the
        StopReplica."""
        deleting = self._deleting.get(name[0])
        if deleting is None:
            return
        for topic_id, waiting in list(deleting.items()):
            waiting.discard((node, name[1]))
            if not waiting:
                del deleting[topic_id]
                erased.append(topic_id)
        if not deleting:
            del self._deleting[name[0]]

    def _ordered(
        self, node: int, backlog: _Backlog, name: Name, is_new: bool, code: int, answered: Answered, refused: _Payload
    ) -> None:
        if code == InconsistentTopicId.code and name not in backlog.inconsistent:
            backlog.inconsistent.add(name)
            backlog.stop(name, BEING_DELETED)
            backlog.order(name, is_new=is_new)
            return
        backlog.inconsistent.discard(name)
        if not self._is_confirmed(name, code, answered):
            refused.ordered[name] = is_new
        elif code == KafkaStorageError.code:
            nodes = self.offline.setdefault(name, set())
            if node not in nodes:  # it asks again and again while it lacks room, and brokers know already
                nodes.add(node)
                self._change_for_all(name)
            answered.offline.append(name)
        else:
            if node in self.offline.get(name, ()):
                answered.online.append(name)
            self._is_online(node, name)

    def _is_online(self, node: int, name: Name) -> None:
        nodes = self.offline.get(name)
        if nodes is not None and node in nodes:
            nodes.discard(node)
            if not nodes:
                del self.offline[name]
            self._change_for_all(name)

    def _holds(self, node: int, name: Name) -> bool:
        """Whether the partition exists and has a replica on that broker."""
        topic = self.image.topics.get(name[0])
        return topic is not None and name[1] < len(topic.partitions) and node in topic.partitions[name[1]].replicas

    def _requeue(self, node: int, backlog: _Backlog, payload: _Payload) -> None:
        """Put an unconfirmed payload back, except for what is obsolete by now."""
        backlog.forget = payload.forgotten | backlog.forget
        backlog.quiet = payload.quieted | backlog.quiet
        for name, leader_epoch in payload.stopped.items():
            if leader_epoch != BEING_DELETED and self._holds(node, name):
                backlog.stopping.discard(name)  # it was assigned to the broker again meanwhile
            elif name not in backlog.quiet:
                backlog.stops.setdefault(name, leader_epoch)
        for name, is_new in payload.ordered.items():
            if self._holds(node, name) and name not in backlog.stopping:
                backlog.order(name, is_new=is_new)
        for topic, indexes in payload.changed.items():
            found = self.image.topics.get(topic)
            if found is not None:
                backlog.change(topic, (index for index in indexes if index < len(found.partitions)))

    def _defer(self, backlog: _Backlog, refused: _Payload, mono_ms: int) -> None:
        if backlog.deferred is None:
            backlog.deferred, backlog.deferred_until_ms = refused, mono_ms + REFUSED_MS
        else:
            backlog.deferred.quieted |= refused.quieted
            backlog.deferred.stopped |= refused.stopped
            backlog.deferred.ordered |= refused.ordered


def _take(waiting: dict[K, V], count: int = MAX_PARTITIONS) -> dict[K, V]:
    """Take out and return the first `count` entries."""
    taken = dict(zip(list(waiting)[:count], list(waiting.values())[:count], strict=True))
    for key in taken:
        del waiting[key]
    return taken


def _commands(row: Partition) -> tuple[int, int, tuple[int, ...]]:
    """The fields that make a new LeaderAndIsr necessary when they change."""
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
    endpoints = [
        UpdateMetadataEndpoint(port, host, name, SECURITY_PROTOCOLS.index(node.protocols.get(name, PLAINTEXT)))
        for name, (host, port) in node.listeners.items()
    ]
    return UpdateMetadataBroker(node.id, endpoints, node.rack)


def _leader(node: BrokerRegistration) -> LiveLeader:
    host, port = next(iter(node.listeners.values()), ("", 0))
    return LiveLeader(node.id, host, port)
