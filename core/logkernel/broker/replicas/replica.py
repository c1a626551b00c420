"""What a replica is whatever its role: a log of its own, synced by its settings, with readers who wait for its news.

A role is an object: `led.LedReplica` leads, `followed.FollowedReplica` follows. Where a partition's role changes here,
the object of the old role goes out of service and another one takes over its log.

A replica knows nothing of the broker round it: it is lent the runtime, tells its `news` to readers that subscribed, and
tells `storage_failed` of an error after which its directory cannot be trusted.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.config.topic import TopicSettings
from logkernel.errors import KafkaError, KafkaStorageError
from logkernel.partition.news import News
from logkernel.storage.directory import PASSING
from logkernel.storage.flush import Flush
from logkernel.storage.log import Log
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.partition.producers import ProducerStates

log = logging.getLogger("logkernel.replica")

HANDLES = (errno.EMFILE, errno.ENFILE)
"""No sync fails with these: files could not be opened for it. A sync that failed is never tried again."""
PUT_OFF_MS = 1000
NO_DEADLINE: Final = 2**62

StorageFailed = Callable[["Replica", OSError], KafkaStorageError]
"""Takes the replica's directory offline; returns what is answered to those who wait for the write that failed."""


class Replica:
    """A partition's log on this broker, and what both roles do with it."""

    __slots__ = (
        "_flush_again",
        "_flush_timer",
        "_flushing",
        "_runtime",
        "_storage_failed",
        "in_service",
        "log",
        "name",
        "news",
        "producers",
        "settings",
        "topic_id",
    )

    def __init__(
        self,
        runtime: Runtime,
        name: TopicPartition,
        topic_id: UUID,
        disk_log: Log,
        producers: ProducerStates,
        settings: TopicSettings,
        *,
        storage_failed: StorageFailed,
    ) -> None:
        self._runtime = runtime
        self._storage_failed = storage_failed
        self.name = name
        self.topic_id = topic_id
        self.log = disk_log
        self.producers = producers
        self.settings = settings
        self.news = News()
        """Told when a reader may find something else than before."""
        self.in_service = True
        """False once another role, or none, has the partition here, or its directory is offline; its manager's to
        set."""
        self._flush_timer: Timer | None = None
        self._flushing = self._flush_again = False

    # ------------------------------------------------------------ what a role says of itself

    @property
    def leader_epoch(self) -> int:
        """The newest that this broker was told."""
        raise NotImplementedError

    @property
    def high_watermark(self) -> int:
        """All below it is committed, as far as this broker knows."""
        raise NotImplementedError

    def last_stable_offset(self) -> int:
        """Below it no transaction is undecided."""
        raise NotImplementedError

    def _on_log_start(self, offset: int) -> None:
        """The log start moved."""
        raise NotImplementedError

    def _on_flushed(self, end: int) -> None:
        """All below `end` is durable."""
        raise NotImplementedError

    def went_offline(self, error: KafkaError) -> None:
        """The directory is offline: tell who waits."""
        raise NotImplementedError

    # ------------------------------------------------------------ flush

    def flush(self) -> None:
        """Make what is in the log durable. One flush at a time: all that came meanwhile shares the next."""
        if self._flushing:
            self._flush_again = True
            return
        self._flushing = True
        flush = self.log.begin_flush()
        self._runtime.run_flush(flush.run, lambda error: self._flushed(flush, error))

    def _flushed(self, flush: Flush, error: BaseException | None) -> None:
        self._flushing = False
        if isinstance(error, OSError) and error.errno in (PASSING if flush.may_be_repeated else HANDLES):
            log.error("flush put off: partition=%s error=%s", self.name, error)
            self.log.flush_refused()
            self._runtime.after(PUT_OFF_MS, self._flush_again_later)
            return
        if error is not None:
            self._storage_failed(self, error if isinstance(error, OSError) else OSError(str(error)))
            return
        self.log.end_flush(flush, self._runtime.clock.wall_ms())
        self._on_flushed(flush.end)
        if self._flush_again:
            self._flush_again = False
            self.flush()

    def flush_soon(self) -> None:
        """A segment was closed: sync it off the request's path, so that recovery need not read it again."""
        if self._flush_timer is None:
            self._flush_timer = self._runtime.after(0, self._flush_due)

    def _flush_again_later(self) -> None:
        if self.in_service:
            self.flush()

    def _flush_due(self) -> None:
        self._flush_timer = None
        if self.in_service and self.log.unflushed_records:
            self.flush()

    @property
    def is_flushing(self) -> bool:
        return self._flushing

    # ------------------------------------------------------------ the log's bounds and place

    def move_to(self, disk_log: Log) -> None:
        """The log lies elsewhere from now on, complete and synced."""
        self.log = disk_log
        self._on_flushed(disk_log.end_offset)
        self.news.tell()

    def advance_log_start(self, offset: int) -> None:
        """Hide what lies below `offset`."""
        self.log.advance_log_start(offset)
        self._on_log_start(offset)
        self.news.tell()
