"""When a replica's log is synced: one flush at a time, whatever role the replica has.

It outlives a role. A flush may be under way when a leader becomes a follower; what came of it concerns the log, and
goes to the role that the replica has by then.
"""

from __future__ import annotations

import errno
import logging
from typing import Final, Protocol

from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.errors import KafkaStorageError
from logkernel.storage.disk import PASSING
from logkernel.storage.flush import Flush
from logkernel.storage.log import Log
from logkernel.vocabulary import TopicPartition

log = logging.getLogger("logkernel.replica")

HANDLES = (errno.EMFILE, errno.ENFILE)
"""No sync fails with these: files could not be opened for it. A sync that failed is never tried again."""
PUT_OFF_MS = 1000
NO_DEADLINE: Final = 2**62


class Owner(Protocol):
    """A replica in its present role."""

    name: TopicPartition
    log: Log
    in_service: bool

    def on_flushed(self, end: int) -> None:
        """All below `end` is durable."""

    def storage_failed(self, error: OSError) -> KafkaStorageError:
        """The directory goes offline."""


class LogFlushing:
    """Flush scheduling of one log."""

    __slots__ = ("_again", "_put_off", "_runtime", "_timer", "owner", "under_way")

    def __init__(self, runtime: Runtime, owner: Owner) -> None:
        self._runtime = runtime
        self.owner = owner
        self.under_way = False
        self._again = False
        self._put_off = False
        self._timer: Timer | None = None

    def begin(self) -> None:
        """As `flush`, unless one is under way or was put off."""
        if not (self.under_way or self._put_off):
            self.flush()

    def flush(self) -> None:
        """Make what is in the log durable. One flush at a time: all that came meanwhile shares the next."""
        if self.under_way:
            self._again = True
            return
        self.under_way = True
        flush = self.owner.log.begin_flush()
        self._runtime.run_flush(flush.run, lambda error: self._flushed(flush, error))

    def flush_in(self, wait_ms: int) -> None:
        """Flush by the clock, if there is anything to flush then; one timer at a time, the first that was asked for."""
        if self._timer is None and wait_ms < NO_DEADLINE:
            self._timer = self._runtime.after(wait_ms, self._due)

    def _flushed(self, flush: Flush, error: BaseException | None) -> None:
        owner = self.owner
        self.under_way = False
        if isinstance(error, OSError) and error.errno in (PASSING if flush.may_be_repeated else HANDLES):
            log.error("flush put off: partition=%s error=%s", owner.name, error)
            owner.log.flush_refused()
            self._put_off = True
            self._runtime.after(PUT_OFF_MS, self._retry)
            return
        if error is not None:
            owner.storage_failed(error if isinstance(error, OSError) else OSError(str(error)))
            return
        owner.log.end_flush(flush, self._runtime.clock.wall_ms())
        owner.on_flushed(flush.end)
        if self._again:
            self._again = False
            self.flush()

    def _retry(self) -> None:
        self._put_off = False
        if self.owner.in_service:
            self.flush()

    def _due(self) -> None:
        self._timer = None
        if self.owner.in_service and self.owner.log.unflushed_records:
            self.flush()
