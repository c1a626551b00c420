"""Which partitions this broker leads and follows, which are offline, and what a client is told of the others.

A standalone broker leads all that it has (`lead`). In a cluster a controller orders roles by LeaderAndIsr and
StopReplica: `take` and `stop` are the door for that (`roles`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol
from uuid import UUID

from logkernel.broker.runtime import Runtime
from logkernel.broker.turn import Turn
from logkernel.config.topic import TopicSettings
from logkernel.contracts import Codec, IsrPolicy
from logkernel.errors import (
    FencedLeaderEpoch,
    KafkaError,
    KafkaStorageError,
    LeaderNotAvailable,
    NotLeaderOrFollower,
    PluginError,
    UnknownTopicOrPartition,
    meaning,
    no_partition,
)
from logkernel.storage.directories import LogAbsent
from logkernel.vocabulary import IsrProposal, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.replicas.follower_replica import FollowerReplica
    from logkernel.broker.replicas.leader_replica import LeaderReplica
    from logkernel.broker.replicas.quotas import TopicQuotas
    from logkernel.broker.replicas.replica import Replica
    from logkernel.broker.replicas.roles import Logs, Obtain
    from logkernel.controller.image import Partition
    from logkernel.partition.producers import ProducerStates
    from logkernel.requests.replication import LeaderAndIsrPartitionState
    from logkernel.storage.log import Log

log = logging.getLogger("logkernel.replica")

AS_IT_CAME: Final = ("producer", "uncompressed")
"""Values of `compression.type` that leave batches as their producers made them."""


NO_EPOCHS: Final = (-1, -2)
"""Leader epochs of StopReplica that count as newer than any: no epoch, and a deleted topic."""
ROOM_MS: Final = 10_000
"""How often logs are tried again for which there was no room."""


class ReplicaEvents(Protocol):
    """What the rest of the broker does about changes of replicas."""

    def role_changed(self, name: TopicPartition) -> None:
        """The role, leader or leader epoch of a partition here changed, or it is gone: `led`, `followed` or neither has
        it by then."""
        ...

    def log_cut(self, name: TopicPartition) -> None:
        """A log was truncated: a copy of it must start again."""
        ...

    def before_delete(self, name: TopicPartition) -> None:
        """The log of a partition is about to be deleted."""
        ...

    def logs_came(self, names: Sequence[TopicPartition]) -> None:
        """These logs are had by now, for which there was no room: have them led or followed."""
        ...

    def isr_proposed(self, replica: LeaderReplica, proposal: IsrProposal) -> None:
        """Ask the controller for in-sync replicas. Must not answer before it returns; the replica is then told
        `isr_accepted`, `isr_refused` or `isr_unanswered`."""
        ...


class ReplicaManager:
    """Owns the replicas of one broker and the list of partitions that are offline."""

    def __init__(
        self,
        runtime: Runtime,
        turn: Turn,
        *,
        partition_count: Callable[[str], int | None],
        logs: Logs,
        events: ReplicaEvents,
    ) -> None:
        self._runtime = runtime
        self._turn = turn
        self._partition_count = partition_count
        self._logs = logs
        self._events = events
        self.led: dict[tuple[str, int], LeaderReplica] = {}
        """Replicas that this broker leads, and serves to clients; read-only."""
        self.followed: dict[tuple[str, int], FollowerReplica] = {}
        """Replicas that another broker leads, or none; read-only."""
        self._live: frozenset[int] = frozenset()
        self._ticking = False
        self._looks_for_room = False
        self._offline: dict[TopicPartition, LogAbsent] = {}
        """What belongs here and is not served, and why."""
        self._lacking_room: dict[TopicPartition, Obtain] = {}
        """Those of them that only lacked room; how they are tried again."""
        self._quotas: dict[str, TopicQuotas] = {}
        """By topic, of those that name some."""
        self._codecs: dict[tuple[str, int], Codec | None] = {}
        """By name and level; None for one that cannot be had, which was logged."""

    # ------------------------------------------------------------ questions

    def all(self) -> list[Replica]:
        """Every replica in service, whatever its role."""
        return [*self.led.values(), *self.followed.values()]

    def find(self, name: tuple[str, int]) -> Replica | None:
        """The replica in service, whatever its role."""
        return self.led.get(name) or self.followed.get(name)

    def held(self, name: TopicPartition) -> Replica:
        """Like `find`, but raises the error to send to the client if there is none."""
        replica = self.find(name)
        if replica is None:
            raise self._absent(name)
        return replica

    def get(self, name: TopicPartition) -> LeaderReplica:
        """The replica that this broker leads; raises the error to send to the client if there is none."""
        replica = self.led.get(name)
        if replica is None:
            raise self._absent(name)
        return replica

    def of_topic(self, topic: str) -> list[LeaderReplica]:
        """The replicas led here, by partition; raises the error to send to the client if there is none."""
        found = sorted((each for each in self.led.values() if each.name.topic == topic), key=lambda each: each.name)
        if not found:
            raise self.absence(topic, 0)(topic)
        return found

    def absence(self, topic: str, partition: int) -> type[KafkaError]:
        """Why a partition is not served here."""
        count = self._partition_count(topic)
        if count is None or not 0 <= partition < count:
            return UnknownTopicOrPartition
        if self.is_offline(topic, partition):
            return KafkaStorageError
        return NotLeaderOrFollower

    def _absent(self, name: TopicPartition) -> KafkaError:
        error, count = self.absence(*name), self._partition_count(name.topic)
        if error is KafkaStorageError and name in self._lacking_room:
            return error(
                f"{name}: its log cannot be made for want of room or of file handles; make room, then ask again"
            )
        if error is not UnknownTopicOrPartition:
            return error(meaning(error, name))
        if count is None:
            return error(f"there is no topic {name.topic!r}; create it first")
        return error(no_partition(*name, count))

    def has_living_follower(self, name: tuple[str, int]) -> bool:
        """Whether this broker leads the partition, and another replica of it is on a broker that is alive."""
        led = self.led.get(name)
        return led is not None and led.leader.sync is not None and not self._live.isdisjoint(led.leader.sync.followers)

    def is_offline(self, topic: str, partition: int) -> bool:
        """Whether the partition belongs here, but what it holds cannot be known."""
        return (topic, partition) in self._offline

    def leader_error(self, topic: str, partition: int, leader: int) -> int:
        """The error code that metadata gives of a partition with this leader."""
        if leader < 0 or self.is_offline(topic, partition):
            return LeaderNotAvailable.code
        return 0

    def offline_replicas(self, topic: str, partition: int, replicas: tuple[int, ...]) -> list[int]:
        node = self._runtime.node_id
        return [node] if self.is_offline(topic, partition) and node in replicas else []

    def keep_log_starts(self) -> None:
        """Make log starts durable: what a follower has reported to its leader must not be undone."""
        self._logs.write_log_starts()

    def watermarks(self) -> dict[TopicPartition, int]:
        return {replica.name: replica.high_watermark for replica in self.all()}

    # ------------------------------------------------------------ coming and going

    def lead(
        self,
        name: TopicPartition,
        topic_id: UUID,
        row: Partition,
        settings: TopicSettings,
        disk_log: Log,
        producers: ProducerStates,
        high_watermark: int,
    ) -> None:
        """Serve a partition as its leader; `high_watermark` is the last one that was noted."""
        from logkernel.broker.replicas.leader_replica import (
            LeaderReplica,
        )  # a first start leads nothing, and waits for every import
        from logkernel.partition.leader import Leader

        self._online(name)
        leader = Leader(
            node_id=self._runtime.node_id,
            leader_epoch=row.leader_epoch,
            isr=row.isr,
            log_start=disk_log.start_offset,
            log_end=disk_log.end_offset,
            high_watermark=high_watermark,
            min_isr=settings.min_insync_replicas,
            producers=producers,
        )
        self.led[name] = LeaderReplica(
            self._runtime, name, topic_id, disk_log, leader, settings, self._target_codec(settings),
            storage_failed=self.storage_failed,
        )  # fmt: skip
        self._set_quotas(self.led[name])

    # ------------------------------------------------------------ orders of a controller

    def take(
        self, name: TopicPartition, topic_id: UUID, state: LeaderAndIsrPartitionState, settings: TopicSettings
    ) -> int:
        """Take one row of a LeaderAndIsr, as `roles` tabulates; returns the error code that its sender is answered.

        Raises nothing. The request itself was fenced by its receiver, which also tells `on_live_brokers`.
        """
        try:
            self._take(name, topic_id, state, settings)
        except KafkaError as error:
            log.warning("order refused: partition=%s leader_epoch=%d error=%s", name, state.leader_epoch, error)
            return error.code
        return 0

    def stop(self, name: TopicPartition, *, delete: bool, leader_epoch: int = -1) -> int:
        """Give a partition up, with its log where `delete`; returns the error code that StopReplica is answered.

        0 also for a partition that is not served: its log goes where `delete`. FENCED_LEADER_EPOCH for an order that is
        older than the replica's leader epoch; -1 and -2 are older than none. KAFKA_STORAGE_ERROR where its directory is
        offline. Raises nothing.
        """
        if self.is_offline(*name):
            if delete:
                self._online(name)
                self._logs.delete(name)
            return KafkaStorageError.code
        current = self.find(name)
        if current is not None and leader_epoch not in NO_EPOCHS and leader_epoch < current.leader_epoch:
            return FencedLeaderEpoch.code
        if current is not None:
            self._logs.note_watermark(name, current.high_watermark)
            self._resign(name)
            self._retire(name)
            self._events.role_changed(name)
        if delete:
            self._quotas.pop(name.topic, None)
            self._events.before_delete(name)
            self._logs.delete(name)
        return 0

    def on_live_brokers(self, live: frozenset[int]) -> frozenset[int]:
        """Brokers that are alive and not shutting down, as the controller says: who may join in-sync replicas. Returns
        those that came."""
        came = live - self._live
        if live == self._live:
            return came
        self._live = live
        mono_ms = self._runtime.clock.mono_ms()
        for replica in list(self.led.values()):
            replica.on_live_brokers(live, mono_ms)
        return came

    def _take(
        self, name: TopicPartition, topic_id: UUID, state: LeaderAndIsrPartitionState, settings: TopicSettings
    ) -> None:
        from logkernel.broker.replicas import roles

        absent = self._offline.get(name)
        if absent is not None and not absent.may_come:
            raise KafkaStorageError(f"{name}: {absent.reason}")
        current, runtime = self.find(name), self._runtime
        if not roles.is_news(name, topic_id, state, current, runtime.node_id):
            return
        leads, led, followed = state.leader == runtime.node_id, self.led.get(name), self.followed.get(name)
        if leads and led is not None:
            led.go_on_leading(
                state.leader_epoch, state.replicas, state.isr, state.partition_epoch, runtime.clock.mono_ms()
            )
        elif not leads and followed is not None:
            followed.follower.on_leader(state.leader, state.leader_epoch)
        else:
            obtain = roles.obtaining(self._logs, name, topic_id, state, leads=leads)
            held = roles.hold(self._logs, name, topic_id, obtain, current)
            if isinstance(held, LogAbsent):
                self.never_came(name, held, obtain)
                raise KafkaStorageError(f"{name}: {held.reason}")
            self._online(name)
            if leads:
                made = roles.make_leader(
                    runtime, name, topic_id, state, held, settings, self._target_codec(settings),
                    storage_failed=self.storage_failed, propose=self._events.isr_proposed,
                    isr_policy=self._isr_policy(name.topic, settings),
                )  # fmt: skip
                self._retire(name)
                self.led[name] = made
                self._set_quotas(made)
            else:
                follower = roles.make_follower(
                    runtime, name, topic_id, state, held, settings,
                    cuts=self._logs, log_cut=self._events.log_cut, storage_failed=self.storage_failed,
                )  # fmt: skip
                self._resign(name)
                self._retire(name)
                self.followed[name] = follower
        if leads:
            self._began_to_lead(self.led[name])
        self._events.role_changed(name)

    def _began_to_lead(self, led: LeaderReplica) -> None:
        led.on_live_brokers(self._live, self._runtime.clock.mono_ms())
        if led.leader.sync is not None:
            self._tick_later()

    # ------------------------------------------------------------ by the clock

    @property
    def _lag_ms(self) -> int:
        return int(self._runtime.config.get("replica.lag.time.max.ms"))

    def _tick_later(self) -> None:
        """Start the timer that checks for lagging followers; not if no partition has followers."""
        if not self._ticking:
            self._ticking = True
            self._runtime.after(max(1, self._lag_ms // 2), self._tick)

    def _tick(self) -> None:
        self._ticking = False
        mono_ms, patience_ms = self._runtime.clock.mono_ms(), int(self._runtime.config.get("request.timeout.ms"))
        followed = [replica for replica in self.led.values() if replica.leader.sync is not None]
        for replica in followed:
            replica.tick(mono_ms, patience_ms)
        if followed:
            self._tick_later()

    # ------------------------------------------------------------ settings, segments, the end

    def configure(self, topics: Collection[str] | None, settings_of: Callable[[str], TopicSettings]) -> None:
        """The settings of topics changed, None: of all. A replica may be here before its topic is in the image."""
        names = [name for name in (*self.led, *self.followed) if topics is None or name[0] in topics]
        found = {topic: settings_of(topic) for topic in {topic for topic, _ in names}}
        for name in names:
            settings = found[name[0]]
            led, followed = self.led.get(name), self.followed.get(name)
            if led is not None:
                if (settings.isr, settings.plugin) != (led.settings.isr, led.settings.plugin):
                    led.leader.take_isr_policy(self._isr_policy(name[0], settings))
                led.configure(settings, self._target_codec(settings))
                self._set_quotas(led)
                led.tick(self._runtime.clock.mono_ms(), int(self._runtime.config.get("request.timeout.ms")))
            elif followed is not None:
                followed.configure(settings)

    def _set_quotas(self, led: LeaderReplica) -> None:
        """Give a replica its topic's quotas, which all led partitions of the topic share."""
        topic, settings = led.name.topic, led.settings
        if not settings.quotas:
            self._quotas.pop(topic, None)
            led.take_quotas(None)
            return
        from logkernel.broker.replicas.quotas import quotas_of

        self._quotas[topic] = quotas_of(self._runtime.kernel, topic, settings, self._quotas.get(topic))
        led.take_quotas(self._quotas[topic])

    def _isr_policy(self, topic: str, settings: TopicSettings) -> IsrPolicy | None:
        """Return a new ISR policy of the topic's kind; None if that plugin is missing, and `replica.lag.time.max.ms`
        decides."""
        try:
            return self._runtime.kernel.isr(settings.isr, settings.plugin)
        except PluginError as error:
            log.error("replica.lag.time.max.ms decides who is in sync: topic=%s isr=%s %s", topic, settings.isr, error)
            return None

    def _target_codec(self, settings: TopicSettings) -> Codec | None:
        """The codec that `compression.type` asks for; None where batches stay as they came, or it cannot be had."""
        name = settings.compression_type
        if name in AS_IT_CAME:
            return None
        level = getattr(settings, f"compression_{name}_level", None)
        key = (name, -1 if level is None else level)
        if key not in self._codecs:
            try:
                self._codecs[key] = self._runtime.kernel.codec(name, level)
            except PluginError as error:
                log.error("batches stay as their producers made them: compression.type=%s %s", name, error)
                self._codecs[key] = None
        return self._codecs[key]

    def segment_rolled(self, name: TopicPartition, base_offset: int, size_bytes: int) -> None:
        """A segment of a log was closed: have it synced soon, and call plugins."""
        replica = self.find(name)
        if replica is not None:
            replica.flush_soon()
        self._runtime.kernel.tell(
            "logkernel_segment_rolled",
            topic=name.topic, partition=name.partition, base_offset=base_offset, size_bytes=size_bytes,
        )  # fmt: skip

    def delete_topic(self, topic: str) -> None:
        """Serve no partition of it any more, and forget which were offline."""
        for name in [each.name for each in self.all() if each.name.topic == topic]:
            self._retire(name)
        self._quotas.pop(topic, None)
        for name in [each for each in self._offline if each.topic == topic]:
            self._online(name)

    def _retire(self, name: TopicPartition) -> Replica | None:
        replica: Replica | None = self.led.pop(name, None) or self.followed.pop(name, None)
        if replica is not None:
            replica.in_service = False
            replica.tell()
        return replica

    def _resign(self, name: TopicPartition) -> None:
        """Wake requests that wait for a led partition, at the end of the turn."""
        led = self.led.get(name)
        if led is not None:
            self._turn.call_soon(led.resign())

    # ------------------------------------------------------------ failure

    def storage_failed(self, replica: Replica, error: OSError) -> KafkaStorageError:
        """A write failed: its directory goes offline with its partitions, the others go on. Not for a partition that
        was deleted meanwhile: work on it that was under way misses its files."""
        if replica.in_service:
            self._logs.fail_directory_of(replica.name, error)
        return KafkaStorageError(f"{replica.name}: {error}")

    def _online(self, name: TopicPartition) -> None:
        self._offline.pop(name, None)
        self._lacking_room.pop(name, None)

    def never_came(self, name: TopicPartition, absent: LogAbsent, obtain: Obtain) -> None:
        """The partition belongs here, but its log cannot be had. If it only lacked room, `obtain` is tried again."""
        self._online(name)
        self._offline[name] = absent
        if absent.may_come:
            self._lacking_room[name] = obtain
            self._look_for_room_later()

    def _look_for_room_later(self) -> None:
        if not self._looks_for_room:
            self._looks_for_room = True
            self._runtime.after(ROOM_MS, self._look_for_room)

    def _look_for_room(self) -> None:
        """Try to make the logs before anything else: a controller that is told orders all of this broker's replicas."""
        self._looks_for_room = False
        came = []
        for name, obtain in list(self._lacking_room.items()):
            found = obtain()
            if isinstance(found, LogAbsent):
                self.never_came(name, found, obtain)
            else:
                came.append(name)
        if came:
            self._look_for_room_later()  # until they are led or followed
            self._events.logs_came(came)

    def went_offline(self, name: TopicPartition, error: KafkaStorageError) -> None:
        """Take a partition out of service as its directory is offline, and answer requests that wait for it."""
        replica = self._retire(name)
        if replica is not None:
            self._offline[name] = LogAbsent("its directory is offline")
            self._events.role_changed(name)
            self._turn.call_soon(partial(replica.went_offline, error))
