"""What a broker does by the clock: retention, checkpoints, forgetting idle producers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from logkernel.contracts import CleanupPolicy, DropBefore, LogFacts
from logkernel.errors import KafkaStorageError, PluginError

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.broker.replica import Replica

log = logging.getLogger("logkernel.upkeep")


class Upkeep:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._policies: dict[str, CleanupPolicy] = {}
        self._missing: set[str] = set()

    def start(self) -> None:
        get = self._broker.config.get
        self._every(int(get("log.retention.check.interval.ms")), self.clean)
        self._every(int(get("log.flush.offset.checkpoint.interval.ms")), self.checkpoint_recovery_points)
        self._every(int(get("log.flush.start.offset.checkpoint.interval.ms")), self.checkpoint_log_starts)
        self._every(int(get("replica.high.watermark.checkpoint.interval.ms")), self.checkpoint_watermarks)
        self._every(int(get("producer.id.expiration.check.interval.ms")), self.expire_producers)

    def _every(self, interval_ms: int, action: Callable[[], None]) -> None:
        broker = self._broker

        def run() -> None:
            try:
                action()
            except Exception:
                log.exception("upkeep failed: task=%s", action.__name__)
            finally:
                broker.timers.at(broker.clock.mono_ms() + interval_ms, run)

        broker.timers.at(broker.clock.mono_ms() + interval_ms, run)

    # ------------------------------------------------------------ cleanup

    def clean(self) -> None:
        """Ask every topic's policies for a plan and carry it out; remove files whose delay is over."""
        for replica in list(self._broker.replicas.values()):
            self.clean_replica(replica)

    def clean_replica(self, replica: Replica) -> None:
        """One partition: its policies in the order of `cleanup.policy`."""
        wall_ms = self._broker.clock.wall_ms()
        try:
            for name in replica.settings.cleanup_policy:
                policy = self._policy(name)
                if policy is None:
                    continue
                for step in policy.plan(self._facts(replica, wall_ms)):
                    self._drop(replica, name, step, wall_ms)
            replica.log.purge(wall_ms)
        except OSError as error:
            self._broker.storage_failed(replica, error)

    def _policy(self, name: str) -> CleanupPolicy | None:
        """The policy's object, kept; None with one warning where no plugin provides it."""
        if name not in self._policies:
            try:
                self._policies[name] = self._broker.kernel.cleanup(name)
            except PluginError as error:
                if name not in self._missing:
                    self._missing.add(name)
                    log.warning("cleanup policy not available, nothing is cleaned: %s", error)
                return None
        return self._policies[name]

    def _facts(self, replica: Replica, wall_ms: int) -> LogFacts:
        return LogFacts(
            topic=replica.name.topic,
            partition=replica.name.partition,
            segments=tuple(replica.log.facts()),
            log_start_offset=replica.log.start_offset,
            high_watermark=replica.leader.high_watermark,
            wall_ms=wall_ms,
            settings=replica.settings,
        )

    def _drop(self, replica: Replica, policy: str, step: DropBefore, wall_ms: int) -> None:
        offset = min(step.offset, replica.leader.high_watermark)
        if offset >= replica.log.end_offset and replica.log.facts()[-1].size_bytes:
            replica.log.roll(wall_ms)
        if offset > replica.log.start_offset:
            replica.advance_log_start(offset)
            self.checkpoint_log_starts()  # before the files go: a crash must not bring the offsets back
        dropped = replica.log.drop_before(offset, wall_ms)
        if not dropped:
            return
        log.info(
            "segments deleted: partition=%s count=%d log_start_offset=%d reason=%s",
            replica.name,
            len(dropped),
            replica.log.start_offset,
            step.reason,
        )
        self._broker.kernel.hook.logkernel_cleanup_done(
            topic=replica.name.topic,
            partition=replica.name.partition,
            policy=policy,
            log_start_offset=replica.log.start_offset,
        )

    # ------------------------------------------------------------ checkpoints

    def checkpoint_recovery_points(self) -> None:
        self._checkpoint(self._broker.storage.checkpoint_recovery_points)

    def checkpoint_log_starts(self) -> None:
        self._checkpoint(self._broker.storage.checkpoint_log_starts)

    def checkpoint_watermarks(self) -> None:
        self._checkpoint(self._broker.storage.checkpoint_watermarks)

    def _checkpoint(self, write: Callable[[Broker], None]) -> None:
        try:
            write(self._broker)
        except (OSError, KafkaStorageError) as error:
            log.error("checkpoint failed: error=%s", error)

    def expire_producers(self) -> None:
        wall_ms = self._broker.clock.wall_ms()
        age_ms = int(self._broker.config.get("producer.id.expiration.ms"))
        for replica in self._broker.replicas.values():
            replica.leader.producers.expire(wall_ms, age_ms)
