"""What a broker does by the clock: retention, checkpoints, forgetting idle producers."""

from __future__ import annotations

import logging
from collections.abc import Callable

from logkernel.broker.log_manager import LogManager
from logkernel.broker.replicas.manager import ReplicaManager
from logkernel.broker.retention import Retention
from logkernel.broker.runtime import Runtime
from logkernel.errors import KafkaStorageError

log = logging.getLogger("logkernel.upkeep")


class Scheduler:
    def __init__(self, runtime: Runtime, replicas: ReplicaManager, logs: LogManager, retention: Retention) -> None:
        self._runtime = runtime
        self._replicas = replicas
        self._logs = logs
        self._retention = retention

    def start(self) -> None:
        self.every("log.retention.check.interval.ms", self._retention.drop_all)
        self.every("log.flush.offset.checkpoint.interval.ms", self.checkpoint_recovery_points)
        self.every("log.flush.start.offset.checkpoint.interval.ms", self.checkpoint_log_starts)
        self.every("replica.high.watermark.checkpoint.interval.ms", self.checkpoint_watermarks)
        self.every("producer.id.expiration.check.interval.ms", self.expire_producers)

    def every(self, setting: str, task: Callable[[], None]) -> None:
        """Again and again; the interval is that of the start."""
        interval_ms = int(self._runtime.config.get(setting))

        def run() -> None:
            try:
                task()
            except Exception:
                log.exception("upkeep failed: task=%s", task.__name__)
            finally:
                self._runtime.after(interval_ms, run)

        self._runtime.after(interval_ms, run)

    # ------------------------------------------------------------ tasks

    def checkpoint_recovery_points(self) -> None:
        self._checkpoint(self._logs.checkpoint_recovery_points)

    def checkpoint_log_starts(self) -> None:
        self._checkpoint(self._logs.checkpoint_log_starts)

    def checkpoint_watermarks(self) -> None:
        self._checkpoint(lambda: self._logs.checkpoint_watermarks(self._replicas.watermarks()))

    def _checkpoint(self, write: Callable[[], None]) -> None:
        try:
            write()
        except (OSError, KafkaStorageError) as error:
            log.error("checkpoint failed: error=%s", error)

    def expire_producers(self) -> None:
        wall_ms = self._runtime.clock.wall_ms()
        age_ms = int(self._runtime.config.get("producer.id.expiration.ms"))
        for replica in self._replicas.all():
            replica.producers.expire(wall_ms, age_ms)
