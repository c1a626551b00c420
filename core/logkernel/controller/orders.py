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

A request costs O(changed partitions). Pure; time is an argument. Beside it:

    backlog          what one broker has not confirmed, and what comes back into it
    order_requests   the requests, built from the image
    deletions        which replicas of deleted topics are not confirmed to be gone
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final
from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.contracts import MetadataChange
from logkernel.controller.backlog import Backlog, Name, Payload
from logkernel.controller.deletions import Deletions
from logkernel.controller.image import ClusterImage, Partition, Topic
from logkernel.controller.order_requests import OrderRequests
from logkernel.errors import (
    FencedLeaderEpoch,
    InconsistentTopicId,
    KafkaStorageError,
    StaleBrokerEpoch,
    StaleControllerEpoch,
)
from logkernel.requests.replication import BEING_DELETED, LeaderAndIsrRequest, Order, StopReplicaRequest

RETRY_MS: Final = 100
"""Back-off after a request without a response, as in Kafka."""
CONFIRMED: Final = frozenset((0, StaleControllerEpoch.code, FencedLeaderEpoch.code))


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


class Orders:
    """The orders of one controller in one term. It owns the image, which only `fold` changes."""

    def __init__(self, controller_id: int, term: int, image: ClusterImage) -> None:
        self.controller_id = controller_id
        self.term = term
        self.image = image
        self.brokers: dict[int, Backlog] = {}
        """Node id → backlog; read-only for others."""
        self.offline: dict[Name, set[int]] = {}
        """Partition → live brokers whose replica of it is in an offline directory; read-only for others."""
        self._version = 0
        """Version of the live brokers; grows when one registers, leaves or changes its address."""
        self._requests = OrderRequests(controller_id, term, image, self.offline)
        self._deletions = Deletions()
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
        waiting = {pair for pair in replicas if not self.image.has_replica(pair[0], topic.name, pair[1])}
        if waiting:
            self._deletions.begin(topic.name, topic.id, waiting)
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

    def _may_send(self, backlog: Backlog, mono_ms: int) -> bool:
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
        backlog = self.brokers[node] = Backlog(broker_epoch)
        for name in self._deletions.of(node):
            if self.image.has_replica(node, *name):
                self.erased += self._deletions.gone(node, name)
            else:
                backlog.stop(name, BEING_DELETED)
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
        self._deletions.begin(topic.name, topic.id, replicas)
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

    def _next_payload(self, backlog: Backlog) -> Payload:
        """Take the first of 1 to 6 (see the module) that the backlog holds."""
        make, epoch = self._requests, backlog.broker_epoch
        if backlog.version != self._version:
            return Payload(make.live_brokers(epoch), version=self._version)
        if backlog.forget:
            gone = backlog.take_forgotten()
            return Payload(make.forget(epoch, gone.values()), forgotten=gone)
        if backlog.quiet:
            quieted = backlog.take_quiet()
            stops = dict.fromkeys(quieted, BEING_DELETED)
            return Payload(make.stop_replica(epoch, stops, delete=False), quieted=quieted)
        if backlog.stops:
            stopped = backlog.take_stops()
            return Payload(make.stop_replica(epoch, stopped, delete=True), stopped=stopped)
        ordered = backlog.take_orders()
        if ordered:
            return Payload(make.leader_and_isr(epoch, ordered), ordered=ordered)
        changed = backlog.take_changed()
        return Payload(make.partitions(epoch, changed), changed=changed)

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
            backlog.put_back(node, payload, self.image)
            backlog.not_before_ms = mono_ms + RETRY_MS
            return answered
        if payload.version is not None:
            backlog.version = payload.version
        refused = Payload(request)
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
                    answered.erased += self._deletions.gone(node, name)
            else:
                refused.stopped[name] = leader_epoch
        for name, is_new in payload.ordered.items():
            if self.image.has_replica(node, *name):
                self._ordered(node, backlog, name, is_new, errors.get(name, 0), answered, refused)
        if answered.refused:
            backlog.defer(refused, mono_ms)
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

    def _ordered(
        self, node: int, backlog: Backlog, name: Name, is_new: bool, code: int, answered: Answered, refused: Payload
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


def _commands(row: Partition) -> tuple[int, int, tuple[int, ...]]:
    """The fields that make a new LeaderAndIsr necessary when they change."""
    return row.leader, row.leader_epoch, row.replicas
