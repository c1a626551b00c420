"""What a controller orders of a partition (LeaderAndIsr): whether it is obeyed, and the replica in its new role.

    the order of `take`                                      answer
    the partition's directory is offline                     KAFKA_STORAGE_ERROR, but a log that only lacked room is
                                                             tried again
    the topic has another id here                            INCONSISTENT_TOPIC_ID
    an older leader epoch than the replica's                 STALE_CONTROLLER_EPOCH
    the same leader epoch                                    0, and nothing changes
    the partition's number is negative                       UNKNOWN_TOPIC_OR_PARTITION
    this broker is not among the replicas                    UNKNOWN_TOPIC_OR_PARTITION
    the log cannot be had                                    KAFKA_STORAGE_ERROR
    it leads                                                 0: a `LeaderReplica`, or the one that is there goes on
    it follows                                               0: a `FollowerReplica`, or the one that is there turns

A refused order changes no replica (KAFKA-9769). If the log cannot be had, the partition is marked offline before the
refusal; orders for it are then refused as for an offline directory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple, Protocol
from uuid import UUID

from logkernel.broker.replicas.follower_replica import Cuts, FollowerReplica
from logkernel.broker.replicas.leader_replica import LeaderReplica, Propose
from logkernel.broker.replicas.replica import Replica, StorageFailed
from logkernel.broker.runtime import Runtime
from logkernel.config.topic import TopicSettings
from logkernel.contracts import Codec, IsrPolicy
from logkernel.errors import InconsistentTopicId, StaleControllerEpoch, UnknownTopicOrPartition
from logkernel.partition.follower import Follower
from logkernel.partition.leader import Leader
from logkernel.partition.producers import ProducerStates
from logkernel.requests.replication import LeaderAndIsrPartitionState
from logkernel.storage.directories import LogAbsent
from logkernel.storage.log import Log
from logkernel.vocabulary import NO_ID, TopicPartition

Obtain = Callable[[], "Log | LogAbsent"]
"""`Logs.obtain` of one partition."""


class Logs(Cuts, Protocol):
    """What the replicas of a broker need of its logs (`LogManager`)."""

    def obtain(
        self, name: TopicPartition, topic_id: UUID, *, is_new: bool | None = None, takes_unnamed: bool = True
    ) -> Log | LogAbsent:
        """Return the open log, or a new one; else the reason why it cannot be had."""

    def producers_of(self, name: TopicPartition) -> ProducerStates:
        """What the log says of its producers."""

    def noted_watermark(self, name: TopicPartition) -> int:
        """The last watermark of a partition that is not served."""

    def note_watermark(self, name: TopicPartition, watermark: int) -> None:
        """Keep the watermark of a partition that is served no more."""

    def write_log_starts(self) -> bool:
        """Keep where logs start, durably; False where some directory failed."""

    def delete(self, name: TopicPartition) -> None:
        """Remove the log, even if it is unreadable."""

    def fail_directory_of(self, name: TopicPartition, error: OSError) -> None:
        """The directory of a partition goes offline with every partition in it."""


class Held(NamedTuple):
    """What is here of a partition that gets a role."""

    log: Log
    producers: ProducerStates
    watermark: int
    before: Replica | None = None
    """In its role until now."""


def is_news(
    name: TopicPartition, topic_id: UUID, state: LeaderAndIsrPartitionState, current: Replica | None, node_id: int
) -> bool:
    """Whether an order changes anything. Raises the error for its sender if it is refused."""
    if name.partition < 0:
        raise UnknownTopicOrPartition(f"{name}: no partition has a negative number")
    if current is not None:
        _check_id(name, current.topic_id, topic_id)
        if state.leader_epoch < current.leader_epoch:
            raise StaleControllerEpoch(f"{name}: the leader epoch is {current.leader_epoch} here")
        if state.leader_epoch == current.leader_epoch:
            return False
    if node_id not in state.replicas:
        raise UnknownTopicOrPartition(f"{name}: broker {node_id} is none of its replicas")
    return True


def obtaining(
    logs: Logs, name: TopicPartition, topic_id: UUID, state: LeaderAndIsrPartitionState, *, leads: bool
) -> Obtain:
    """How the log for an order is had, now or when there is room.

    Only who was elected to lead a partition, and not with its creation, may hold records that nobody else has: it takes
    a log for its own whose topic's id is lost. Others copy the leader's anew.
    """
    return partial(logs.obtain, name, topic_id, is_new=state.is_new, takes_unnamed=leads and not state.is_new)


def hold(
    logs: Logs,
    name: TopicPartition,
    topic_id: UUID,
    obtain: Obtain,
    current: Replica | None,
) -> Held | LogAbsent:
    """What is here, or made new; else why it cannot be had. Raises `InconsistentTopicId`."""
    if current is not None:
        return Held(current.log, current.producers, current.high_watermark, current)
    disk_log = obtain()
    if isinstance(disk_log, LogAbsent):
        return disk_log
    _check_id(name, disk_log.topic_id, topic_id)
    return Held(disk_log, logs.producers_of(name), logs.noted_watermark(name))


def make_leader(
    runtime: Runtime,
    name: TopicPartition,
    topic_id: UUID,
    state: LeaderAndIsrPartitionState,
    held: Held,
    settings: TopicSettings,
    target_codec: Codec | None,
    *,
    storage_failed: StorageFailed,
    propose: Propose,
    isr_policy: IsrPolicy | None,
) -> LeaderReplica:
    """Lead from the log end on. The epoch is noted at once, whether anything is written in it or not (KAFKA-7415)."""
    disk_log = held.log
    disk_log.epochs.assign(state.leader_epoch, disk_log.end_offset)
    leader = Leader(
        node_id=runtime.node_id,
        leader_epoch=state.leader_epoch,
        isr=tuple(state.isr),
        log_start=disk_log.start_offset,
        log_end=disk_log.end_offset,
        high_watermark=held.watermark,
        min_isr=settings.min_insync_replicas,
        producers=held.producers,
        replicas=state.replicas,
        partition_epoch=state.partition_epoch,
        lag_ms=int(runtime.config.get("replica.lag.time.max.ms")),
        mono_ms=runtime.clock.mono_ms(),
        isr_policy=isr_policy,
    )
    return LeaderReplica(
        runtime, name, topic_id, disk_log, leader, settings, target_codec,
        storage_failed=storage_failed, propose=propose, before=held.before,
    )  # fmt: skip


def make_follower(
    runtime: Runtime,
    name: TopicPartition,
    topic_id: UUID,
    state: LeaderAndIsrPartitionState,
    held: Held,
    settings: TopicSettings,
    *,
    cuts: Cuts,
    log_cut: Callable[[TopicPartition], None],
    storage_failed: StorageFailed,
) -> FollowerReplica:
    """Follow from the log end on, with the epoch of the last record: what differs is cut by the leader's answer."""
    disk_log = held.log
    follower = Follower(
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        log_start=disk_log.start_offset,
        log_end=disk_log.end_offset,
        high_watermark=held.watermark,
        epochs=disk_log.epochs,
    )
    return FollowerReplica(
        runtime, name, topic_id, disk_log, held.producers, follower, settings,
        cuts=cuts, log_cut=log_cut, storage_failed=storage_failed, before=held.before,
    )  # fmt: skip


def _check_id(name: TopicPartition, known: UUID | None, told: UUID) -> None:
    """A topic of the same name and another id is another topic (KIP-516). Raises `InconsistentTopicId`."""
    if known is not None and known != NO_ID and told != NO_ID and known != told:
        raise InconsistentTopicId(f"{name}: its topic has id {known} here, not {told}")
