"""What a broker does by the clock: retention (see `dropping`), checkpoints, forgetting idle producers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from logkernel.errors import KafkaStorageError

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

log = logging.getLogger("logkernel.upkeep")


class Scheduler:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def start(self) -> None:
        broker = self._broker
        get = broker.config.get
        self._every(int(get("log.retention.check.interval.ms")), broker.cleaner.retention.drop_all)
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

    # ------------------------------------------------------------ checkpoints

    def checkpoint_recovery_points(self) -> None:
        self._checkpoint(self._broker.logs.checkpoint_recovery_points)

    def checkpoint_log_starts(self) -> None:
        self._checkpoint(self._broker.logs.checkpoint_log_starts)

    def checkpoint_watermarks(self) -> None:
        self._checkpoint(self._broker.logs.checkpoint_watermarks)

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
