"""Incremental fetch sessions (KIP-227), as a pure machine.

    session id   epoch   meaning
    0            -1      a full fetch without a session
    0            0       open a session: full answer, new id
    n            0       drop session n, open another
    n            -1      drop session n, full fetch without a session
    n            e > 0   incremental: must be session n's next epoch (2**31 - 1 is followed by 1)

A session remembers for each partition what was last told; an incremental answer holds only what has
records, an error, or a changed watermark, stable offset or log start.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING
from uuid import UUID

from logkernel.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from logkernel.vocabulary import NO_ID

if TYPE_CHECKING:
    from logkernel.requests.data import FetchPartition, FetchRequest, PartitionData

MAX_EPOCH = 0x7FFFFFFF
EVICTION_AGE_MS = 120_000
"""`min.incremental.fetch.session.eviction.ms` of Kafka: younger sessions are not evicted."""

Key = tuple[str, UUID, int]
"""(topic name or "", topic id or NO_ID, partition)."""


class Wanted:
    """A partition that a fetch asks for, with what the session told of it last."""

    __slots__ = ("key", "log_start", "request", "stable", "watermark")

    def __init__(self, key: Key, request: FetchPartition) -> None:
        self.key = key
        self.request = request
        self.watermark = self.stable = self.log_start = -2

    def news(self, data: PartitionData) -> bool:
        """Whether `data` must be told in an incremental answer."""
        return bool(
            data.error_code
            or data.records
            or data.high_watermark != self.watermark
            or data.last_stable_offset != self.stable
            or data.log_start_offset != self.log_start
        )

    def told(self, data: PartitionData) -> None:
        if data.error_code:
            self.watermark = -2  # tell it again when the error is over
            return
        self.watermark = data.high_watermark
        self.stable = data.last_stable_offset
        self.log_start = data.log_start_offset


class FetchSession:
    __slots__ = ("by_id", "epoch", "partitions", "session_id", "used_ms")

    def __init__(self, session_id: int, by_id: bool, mono_ms: int) -> None:
        self.session_id = session_id
        self.by_id = by_id
        self.epoch = 1
        self.used_ms = mono_ms
        self.partitions: OrderedDict[Key, Wanted] = OrderedDict()

    def update(self, request: FetchRequest) -> None:
        for key, wanted in _asked(request):
            known = self.partitions.get(key)
            if known is None:
                self.partitions[key] = Wanted(key, wanted)
            else:
                known.request = wanted
        for topic in request.forgotten_topics_data:
            name = "" if topic.topic_id != NO_ID else topic.topic
            for partition in topic.partitions:
                self.partitions.pop((name, topic.topic_id, partition), None)

    def served(self, keys: Iterable[Key]) -> None:
        """Partitions that gave records go last next time, so that none starves under `max_bytes`."""
        for key in keys:
            if key in self.partitions:
                self.partitions.move_to_end(key)


class FetchContext:
    """What one fetch reads: all partitions of it, and whether the answer may leave some out."""

    __slots__ = ("incremental", "session", "wanted")

    def __init__(self, wanted: list[Wanted], session: FetchSession | None, incremental: bool) -> None:
        self.wanted = wanted
        self.session = session
        self.incremental = incremental

    @property
    def session_id(self) -> int:
        return self.session.session_id if self.session is not None else 0


class FetchSessions:
    """All sessions of a broker, at most `slots` (`max.incremental.fetch.session.cache.slots`)."""

    def __init__(self, slots: int, seed: int) -> None:
        self._slots = slots
        self._sessions: OrderedDict[int, FetchSession] = OrderedDict()
        self._last_id = seed & MAX_EPOCH

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, request: FetchRequest, by_id: bool, mono_ms: int) -> FetchContext:
        """The context of a request; raises the session errors of KIP-227."""
        session_id, epoch = request.session_id, request.session_epoch
        if epoch > 0:
            return self._continue(request, by_id, mono_ms)
        if session_id:
            self._sessions.pop(session_id, None)
        if epoch == 0:
            session = self._create(by_id, mono_ms)
            if session is not None:
                session.update(request)
                return FetchContext(list(session.partitions.values()), session, False)
        return FetchContext([Wanted(key, asked) for key, asked in _asked(request)], None, False)

    def _continue(self, request: FetchRequest, by_id: bool, mono_ms: int) -> FetchContext:
        session = self._sessions.get(request.session_id)
        if session is None:
            raise FetchSessionIdNotFound(f"no fetch session {request.session_id}")
        if session.epoch != request.session_epoch:
            raise InvalidFetchSessionEpoch(
                f"fetch session {session.session_id} is at epoch {session.epoch}, not {request.session_epoch}"
            )
        if session.by_id is not by_id:
            raise FetchSessionTopicIdError("a fetch session names topics by id or by name, not both")
        session.epoch = 1 if session.epoch == MAX_EPOCH else session.epoch + 1
        session.used_ms = mono_ms
        self._sessions.move_to_end(session.session_id)
        session.update(request)
        return FetchContext(list(session.partitions.values()), session, True)

    def _create(self, by_id: bool, mono_ms: int) -> FetchSession | None:
        if len(self._sessions) >= self._slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or mono_ms - oldest.used_ms < EVICTION_AGE_MS:
                return None
            del self._sessions[oldest.session_id]
        while True:
            self._last_id = self._last_id % MAX_EPOCH + 1
            if self._last_id not in self._sessions:
                break
        session = self._sessions[self._last_id] = FetchSession(self._last_id, by_id, mono_ms)
        return session


def _asked(request: FetchRequest) -> Iterator[tuple[Key, FetchPartition]]:
    for topic in request.topics:
        name = "" if topic.topic_id != NO_ID else topic.topic
        for partition in topic.partitions:
            yield (name, topic.topic_id, partition.partition), partition
