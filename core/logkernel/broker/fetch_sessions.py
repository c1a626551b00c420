"""Incremental fetch sessions (KIP-227), as a pure machine.

    session id   epoch   meaning
    0            -1      a full fetch without a session
    0            0       open a session: full answer, new id
    n            0       drop session n, open another
    n            -1      drop session n, full fetch without a session
    n            e > 0   incremental: must be session n's next epoch (2**31 - 1 is followed by 1)

A session remembers for each partition what was last sent; an incremental answer holds only what has records, an error,
or a changed watermark, stable offset or log start. A session looks only at partitions that may have something to tell:

    a partition is     when                                                      a fetch reads it
    pending            new, asked for again, told of news; has records or an     yes
                       error left
    caught up          told all, nothing left to read: it subscribes to its      no
                       partition's news, which makes it pending again

so that an incremental fetch costs what changed, not what the session holds. Invariant: each partition of a session is
pending, or subscribed, or both (a fetch that is parked on it subscribes to what is pending, too). A fetch without a
session reads all its partitions, and listens to them itself while it is parked.

Fairness: partitions are read in the order of their `rank`; one that gave records gets the last rank, so that none
starves under `max_bytes`.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterator, Sequence
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from logkernel.errors import FetchSessionIdNotFound, FetchSessionTopicIdError, InvalidFetchSessionEpoch
from logkernel.vocabulary import NO_ID, READ_COMMITTED, TopicPartition

if TYPE_CHECKING:
    from logkernel.partition.news import News
    from logkernel.requests.data import FetchPartition, FetchRequest, PartitionData

MAX_EPOCH = 0x7FFFFFFF
EVICTION_AGE_MS = 120_000
"""`min.incremental.fetch.session.eviction.ms` of Kafka: younger sessions are not evicted."""

Key = tuple[str, UUID, int]
"""(topic name or "", topic id or NO_ID, partition)."""

_by_rank = attrgetter("rank")


class NewsSubscriber(Protocol):
    """Waits for news of partitions: a session, or a parked fetch."""

    def heard(self, partition: CachedPartition) -> None:
        """The partition has news; no fetch is answered in here."""


class CachedPartition:
    """A partition that a fetch asks for, with what its session sent of it last (Kafka's name)."""

    __slots__ = (
        "_sent",
        "key",
        "name",
        "news",
        "rank",
        "request",
        "subscriber",
    )

    def __init__(
        self, key: Key, request: FetchPartition, subscriber: NewsSubscriber | None = None, rank: int = 0
    ) -> None:
        self.key = key
        self.name: TopicPartition | None = TopicPartition(key[0], key[2]) if key[1] is NO_ID else None
        """None: the id was not looked up yet, or is unknown."""
        self.request = request
        self.subscriber = subscriber
        """Its session, or the parked fetch where there is no session. None: nobody, or the session forgot it."""
        self.rank = rank
        self.news: News | None = None
        """Where its partition tells of itself; None until the partition was found."""
        self._sent: tuple[int, int, int] | None = None

    # ------------------------------------------------------------ what was sent

    def has_news(self, data: PartitionData) -> bool:
        """Whether `data` belongs into an incremental answer."""
        return bool(
            data.error_code
            or data.records
            or data.diverging_epoch.end_offset >= 0
            or (data.high_watermark, data.last_stable_offset, data.log_start_offset) != self._sent
        )

    def start_moved(self, data: PartitionData) -> bool:
        """Whether the log start is another than was sent, or none was sent."""
        return self._sent is None or data.log_start_offset != self._sent[2]

    def forget_sent(self) -> None:
        """Send it anew."""
        self._sent = None

    def sent(self, data: PartitionData) -> None:
        if data.error_code or data.diverging_epoch.end_offset >= 0:
            self._sent = None  # send it again when the error is over, and the follower cut its log
        else:
            self._sent = (data.high_watermark, data.last_stable_offset, data.log_start_offset)

    def is_caught_up(self, data: PartitionData, isolation: int) -> bool:
        """Whether only news can bring more than `data`."""
        if data.error_code or data.records is not None:
            return False
        end = data.last_stable_offset if isolation == READ_COMMITTED else data.high_watermark
        # an offset outside is an error, which `data` does not say where `max_bytes` left no room to read
        return end <= self.request.fetch_offset <= data.high_watermark

    # ------------------------------------------------------------ its partition's news

    def follow(self, news: News) -> None:
        """Listen to `news` from now on: another than before, where the partition was made again."""
        if self.news is not None:
            self.news.unsubscribe(self)
        self.news = news

    def subscribe(self) -> None:
        if self.news is not None and self.subscriber is not None:
            self.news.subscribe(self)

    def unsubscribe(self) -> None:
        if self.news is not None:
            self.news.unsubscribe(self)

    def on_news(self) -> None:
        if self.subscriber is not None:
            self.subscriber.heard(self)


class FetchSession:
    """The partitions of one client's fetches to this broker."""

    __slots__ = (
        "_next_rank",
        "by_id",
        "closed",
        "epoch",
        "isolation",
        "partitions",
        "pending",
        "replica",
        "rules",
        "session_id",
        "used_ms",
        "waiting",
    )

    def __init__(self, session_id: int, by_id: bool, mono_ms: int, replica: int = -1) -> None:
        """`replica` is the follower that fetches, negative for a client."""
        self.session_id = session_id
        self.by_id = by_id
        self.replica = replica
        self.epoch = 1
        self.used_ms = mono_ms
        self.isolation = 0
        self.partitions: dict[Key, CachedPartition] = {}
        self.pending: set[CachedPartition] = set()
        """Those that the next incremental fetch reads."""
        self.waiting: dict[NewsSubscriber, None] = {}
        """Fetches that are parked on it."""
        self.closed = False
        self.rules = -1
        """Which ACLs the last fetch was judged by; -1: none yet."""
        self._next_rank = count(1)

    def update(self, request: FetchRequest) -> None:
        """Take what an incremental request adds, changes and forgets."""
        if request.isolation_level != self.isolation:
            self.isolation = request.isolation_level
            self.pending.update(self.partitions.values())  # another end to read to, in each
        for key, asked in _asked(request):
            known = self.partitions.get(key)
            if known is None:
                known = self.partitions[key] = CachedPartition(key, asked, self, next(self._next_rank))
            else:
                if asked.current_leader_epoch != known.request.current_leader_epoch:
                    known.forget_sent()  # what was sent in another epoch may have been dropped
                known.request = asked
            self.pending.add(known)
        for topic in request.forgotten_topics_data:
            name = "" if topic.topic_id != NO_ID else topic.topic
            for partition in topic.partitions:
                gone = self.partitions.pop((name, topic.topic_id, partition), None)
                if gone is not None:
                    gone.subscriber = None
                    gone.unsubscribe()
                    self.pending.discard(gone)

    def look_anew(self, rules: int) -> None:
        """Read every partition if the ACLs are others than at the last fetch: one may be refused now."""
        if rules != self.rules:
            self.rules = rules
            self.pending.update(self.partitions.values())

    def heard(self, partition: CachedPartition) -> None:
        self.pending.add(partition)
        for fetch in self.waiting:
            fetch.heard(partition)

    def sent(self, partition: CachedPartition, data: PartitionData) -> None:
        """`data` was answered, or held nothing that the client does not know."""
        if partition.subscriber is None:
            return
        if data.records is not None:
            partition.rank = next(self._next_rank)
        elif partition.is_caught_up(data, self.isolation):
            self.pending.discard(partition)
            partition.subscribe()

    def close(self) -> None:
        """The session is over; a fetch that is parked on it goes on until it is answered."""
        self.closed = True
        if not self.waiting:
            for partition in self.partitions.values():
                partition.unsubscribe()


Row = tuple[CachedPartition, "PartitionData"]
"""A partition, and what a read of it found."""


class FetchContext:
    """One fetch: which partitions it reads, and what of them it tells."""

    __slots__ = ("_all", "_parked", "incremental", "session")

    def __init__(
        self, session: FetchSession | None, incremental: bool, everything: Sequence[CachedPartition] = ()
    ) -> None:
        self.session = session
        self.incremental = incremental
        self._all = everything
        self._parked: NewsSubscriber | None = None

    @property
    def session_id(self) -> int:
        return self.session.session_id if self.session is not None else 0

    @property
    def reads(self) -> int:
        """How many partitions an attempt reads."""
        return len(self.session.pending) if self.incremental and self.session is not None else len(self._all)

    @property
    def is_empty(self) -> bool:
        """Whether there is no partition to wait for."""
        return not (self.session.partitions if self.incremental and self.session is not None else self._all)

    def to_read(self) -> Sequence[CachedPartition]:
        """The partitions to read, in their order: all of a full fetch, the pending ones of an incremental fetch."""
        if not self.incremental or self.session is None:
            return self._all
        pending = self.session.pending
        return list(pending) if len(pending) < 2 else sorted(pending, key=_by_rank)

    def park(self, fetch: NewsSubscriber) -> None:
        """`fetch` waits: from now on it hears of all its partitions."""
        self._parked = fetch
        if self.session is None:
            for partition in self._all:
                partition.subscriber = fetch
                partition.subscribe()
            return
        for partition in self.to_read():
            partition.subscribe()
        self.session.waiting[fetch] = None

    def answered(self, rows: list[Row]) -> list[Row]:
        """Note that the fetch is answered from `rows`; returns those of them that the answer holds."""
        session = self.session
        if session is None:
            if self._parked is not None:
                for partition in self._all:
                    partition.unsubscribe()
            return rows
        answered = []
        for row in rows:
            partition, data = row
            if not self.incremental or partition.has_news(data):
                partition.sent(data)
                answered.append(row)
            session.sent(partition, data)
        if self._parked is not None:
            session.waiting.pop(self._parked, None)
            if session.closed:
                session.close()
        return answered


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
            self._close(session_id)
        if epoch == 0:
            session = self._create(by_id, mono_ms, replica_of(request))
            if session is not None:
                session.update(request)
                return FetchContext(session, False, list(session.partitions.values()))
        return FetchContext(None, False, [CachedPartition(key, asked) for key, asked in _asked(request)])

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
        return FetchContext(session, True)

    def _create(self, by_id: bool, mono_ms: int, replica: int) -> FetchSession | None:
        if len(self._sessions) >= self._slots:
            oldest = next(iter(self._sessions.values()), None)
            if oldest is None or mono_ms - oldest.used_ms < EVICTION_AGE_MS:
                return None
            self._close(oldest.session_id)
        while True:
            self._last_id = self._last_id % MAX_EPOCH + 1
            if self._last_id not in self._sessions:
                break
        session = self._sessions[self._last_id] = FetchSession(self._last_id, by_id, mono_ms, replica)
        return session

    def forget_followers(self, nodes: Collection[int]) -> None:
        """End the sessions of these brokers, which came back: their next fetch says of every partition how far they
        are. In a session that goes on they say nothing of one that is idle, and the leader forgot it when they went."""
        for session_id in [number for number, each in self._sessions.items() if each.replica in nodes]:
            self._close(session_id)

    def _close(self, session_id: int) -> None:
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.close()


def replica_of(request: FetchRequest) -> int:
    """The broker that fetches, -1 where a consumer does."""
    return request.replica_id if request.replica_id >= 0 else request.replica_state.replica_id


def _asked(request: FetchRequest) -> Iterator[tuple[Key, FetchPartition]]:
    for topic in request.topics:
        name = "" if topic.topic_id != NO_ID else topic.topic
        for partition in topic.partitions:
            yield (name, topic.topic_id, partition.partition), partition
