"""One share-partition: the records of a partition that are in flight for one group. Pure.

A record in flight, from the start offset to the end offset, is in one of four states; the start offset moves past what
is acknowledged or archived, the end offset forward as new records are acquired.

    from          event                                              to
    AVAILABLE     acquired: the delivery count grows by one          ACQUIRED
    ACQUIRED      accepted                                           ACKNOWLEDGED
    ACQUIRED      released, lock timed out, session ended            AVAILABLE, or ARCHIVED at the delivery count limit
    ACQUIRED      rejected, or said to be a gap                      ARCHIVED
    ACQUIRED      renewed: the lock begins anew                      ACQUIRED
    AVAILABLE     not in the log, a marker, or aborted               ARCHIVED

A record that fails again and again may take others with it. So what has been delivered half as often as it may be is
delivered in ever smaller parts, a half of what it was first delivered with, a quarter and so on, and alone the last
time (KAFKA-17541).

State is kept in runs, ranges of offsets that are alike; a batch is one run until its records part ways.
Invariants: runs are ascending and without holes from `start` to `end`; only an ACQUIRED run has a member and a lock;
`1 <= deliveries <= limit` of an ACQUIRED run; `start` never falls; what is ACKNOWLEDGED or ARCHIVED stays so.

A member's word is written to share-state before it holds: until then its runs are `settling`, and neither the
lock's timeout nor another word touches them. One write is under way at a time, so that its start offset is true.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from logkernel.attrs_lite import evolve, mutable
from logkernel.errors import InvalidRecordState, InvalidRequest


class State(IntEnum):
    """KIP-932's numbers, as share-state keeps them."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVED = 4


class Event(IntEnum):
    """The first five by their acknowledge types on the wire."""

    GAP = 0
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    ACQUIRE = 5
    EXPIRE = 6
    VANISH = 7


TRANSITIONS: Final = {
    (State.AVAILABLE, Event.ACQUIRE): State.ACQUIRED,
    (State.AVAILABLE, Event.VANISH): State.ARCHIVED,
    (State.ACQUIRED, Event.ACCEPT): State.ACKNOWLEDGED,
    (State.ACQUIRED, Event.RELEASE): State.AVAILABLE,
    (State.ACQUIRED, Event.EXPIRE): State.AVAILABLE,
    (State.ACQUIRED, Event.REJECT): State.ARCHIVED,
    (State.ACQUIRED, Event.GAP): State.ARCHIVED,
    (State.ACQUIRED, Event.RENEW): State.ACQUIRED,
}
"""What is not here cannot happen. AVAILABLE becomes ARCHIVED where the delivery count limit is reached."""

TERMINAL: Final = frozenset((State.ACKNOWLEDGED, State.ARCHIVED))
BATCH_OPTIMIZED: Final = 0
RECORD_LIMIT: Final = 1
NO_BOUND: Final = 2**63 - 1


@mutable
class Run:
    """Offsets `first` to `last`, both included, that are alike."""

    first: int
    last: int
    state: State = State.AVAILABLE
    deliveries: int = 0
    """Deliveries so far."""
    member: str = ""
    due_ms: int = 0
    """Monotonic ms at which the lock times out."""
    settling: bool = False
    """The member's word is being written."""
    batch: tuple[int, int] = (0, -1)
    """The first and the last of those that it was first delivered with, or stands with in share-state."""

    def alike(self, other: Run) -> bool:
        return (self.batch == other.batch or self.state in TERMINAL) and (
            (self.state, self.deliveries, self.member, self.due_ms, self.settling)
            == (other.state, other.deliveries, other.member, other.due_ms, other.settling)
        )


class Change(NamedTuple):
    """Offsets with their new state, as share-state stores them."""

    first: int
    last: int
    state: State
    deliveries: int


class Acquired(NamedTuple):
    first: int
    last: int
    deliveries: int


class Stretch(NamedTuple):
    """A batch as the log has it. `deliverable` is False for markers and for records of aborted transactions."""

    base: int
    last: int
    deliverable: bool = True


@mutable
class Limits:
    """What the group's settings say."""

    delivery_count: int = 5
    in_flight: int = 2000
    lock_ms: int = 30_000


class StateWrite(NamedTuple):
    """One WriteShareGroupState of a share-partition."""

    start: int
    complete: int
    """Offsets from `start` on whose delivery is completed."""
    changes: tuple[Change, ...]


class SharePartition:
    """See the module. Every time is monotonic ms."""

    __slots__ = ("_kept_start", "_queued", "_runs", "_writing", "_written_start", "end", "limits", "start")

    def __init__(self, start: int, known: Iterable[Change] = (), limits: Limits | None = None) -> None:
        """As share-state knows it: what it does not name up to the last offset that it does was never settled."""
        self.start = self.end = start
        self.limits = limits or Limits()
        self._runs: list[Run] = []
        self._queued: list[tuple[Change, bool]] = []
        """Changes to be written; True: they wait for it to hold."""
        self._writing: list[tuple[Change, bool]] | None = None
        self._kept_start = self._written_start = start
        for first, last, state, count in sorted(known):
            if last < start:
                continue
            if first > self.end:
                self._extend(Run(self.end, first - 1))
            self._extend(Run(max(first, self.end), last, State(state), count))
        self._tidy()

    # ------------------------------------------------------------ questions

    @property
    def runs(self) -> Sequence[Run]:
        """To look at."""
        return self._runs

    def next_offset(self) -> int | None:
        """Where to fetch next: the first available record, else the end; None while too many are in flight."""
        for run in self._runs:
            if run.state is State.AVAILABLE:
                return run.first
        return self.end if self.end - self.start < self.limits.in_flight else None

    def next_due_ms(self) -> int | None:
        """When the next lock times out."""
        return min((run.due_ms for run in self._runs if run.state is State.ACQUIRED and not run.settling), default=None)

    @property
    def is_held(self) -> bool:
        """A member holds a record, or something waits to be written."""
        return bool(self._queued) or any(run.state is State.ACQUIRED for run in self._runs)

    # ------------------------------------------------------------ acquire

    def acquire(
        self,
        member: str,
        fetched_at: int,
        stretches: Sequence[Stretch],
        max_records: int,
        now_ms: int,
        *,
        batch_size: int = 0,
        strict: bool = False,
    ) -> list[Acquired]:
        """Give `member` what is available in `stretches`, the log from offset `fetched_at` on.

        Whole batches, up to the one that reaches `max_records`; `strict`: not one record more. Neighbours of one
        delivery count are told as one, cut at batches of at least `batch_size` records (0: never cut).
        """
        given: list[Acquired] = []
        left = max_records
        at = max(fetched_at, self.start)
        bound = self._bound(at)
        fresh = self.end
        for base, last, deliverable in stretches:
            if left <= 0 or max(base, at) > bound:
                break
            if last < at:
                continue
            if base > at:
                self._vanish(at, base - 1)
            first, last = max(base, at), min(last, bound)
            if first >= self.end and self.end - self.start >= self.limits.in_flight:
                break
            if deliverable:
                left -= self._take(member, first, last, left if strict else 2**63, now_ms, batch_size, given)
            else:
                self._vanish(first, last)
            at = last + 1
        for first, last, _ in given:
            for run in self._cut(max(first, fresh), last):
                run.batch = max(first, fresh), last
        self._tidy()
        return given

    def _bound(self, at: int) -> int:
        """The last offset that may be acquired together with the first available one from `at` on."""
        limit = self.limits.delivery_count
        often = max(2, (limit + 1) // 2)
        alone = True
        for run in self._runs:
            if run.last < at or run.state is not State.AVAILABLE:
                continue
            if run.deliveries < often:
                alone = False
            elif not alone:
                return run.first - 1
            else:
                size = run.batch[1] - run.batch[0] + 1
                part = 1 if run.deliveries >= limit - 1 else max(1, size >> (run.deliveries - often + 1))
                return min(run.last, max(run.first, at) + part - 1)
        return NO_BOUND

    def _take(
        self, member: str, first: int, last: int, limit: int, now_ms: int, batch_size: int, given: list[Acquired]
    ) -> int:
        """Acquire what can be of one batch; returns how many."""
        due_ms = now_ms + self.limits.lock_ms
        taken = 0
        if first < self.end:
            for run in self._cut(first, min(last, self.end - 1)):
                if run.state is not State.AVAILABLE or taken >= limit:
                    continue
                if run.last - run.first + 1 > limit - taken:
                    (run, *_) = self._cut(run.first, run.first + limit - taken - 1)
                run.state, run.deliveries, run.member, run.due_ms = State.ACQUIRED, run.deliveries + 1, member, due_ms
                taken += run.last - run.first + 1
                _tell(given, run, batch_size)
        if last >= self.end and taken < limit:
            begin = max(first, self.end)
            if begin > self.end:
                self._extend(Run(self.end, begin - 1, State.ARCHIVED))
            end = min(last, begin + limit - taken - 1)
            run = Run(begin, end, State.ACQUIRED, 1, member, due_ms)
            self._extend(run)
            taken += end - begin + 1
            _tell(given, run, batch_size)
        return taken

    def _vanish(self, first: int, last: int) -> None:
        """There is nothing to deliver at these offsets."""
        if first < self.end:
            for run in self._cut(first, min(last, self.end - 1)):
                if run.state is State.AVAILABLE:
                    run.state = State.ARCHIVED
        if last >= self.end:
            self._extend(Run(max(first, self.end), last, State.ARCHIVED))

    # ------------------------------------------------------------ a member's word

    def acknowledge(self, member: str, first: int, last: int, types: Sequence[int], now_ms: int) -> None:
        """Take note; all of a request's batches, or (where one raises) none: see `undo`.

        One type for all offsets, or one for each. Raises `InvalidRequest` for offsets that were never acquired,
        `InvalidRecordState` for records that the member does not hold.
        """
        if last >= self.end:
            raise InvalidRequest(f"offsets {first} to {last} go past the last acquired one, {self.end - 1}")
        at = max(first, self.start)  # what lies before is settled already, or gone from the log
        while at <= last:
            kind = types[0] if len(types) == 1 else types[at - first]
            to = last
            if len(types) > 1:
                to = at
                while to < last and types[to + 1 - first] == kind:
                    to += 1
            self._word(member, at, to, Event(kind), now_ms)
            at = to + 1

    def _word(self, member: str, first: int, last: int, event: Event, now_ms: int) -> None:
        for run in self._cut(first, last):
            if run.state is not State.ACQUIRED or run.settling or run.member != member:
                raise InvalidRecordState(f"offsets {run.first} to {run.last} are not held by member {member}")
            if event is Event.RENEW:
                run.due_ms = now_ms + self.limits.lock_ms
                continue
            run.settling = True
            self._queued.append((self._change(run, event), True))

    def mark(self) -> int:
        """Where the queue stands, for `undo`."""
        return len(self._queued)

    def undo(self, mark: int) -> None:
        """Forget what was queued since `mark`."""
        for change, _ in self._queued[mark:]:
            for run in self._cut(change.first, change.last):
                run.settling = False
        del self._queued[mark:]
        self._tidy()

    # ------------------------------------------------------------ time, sessions, the log's start

    def expire(self, now_ms: int) -> bool:
        """Locks that are due time out. Returns whether any did."""
        return self._let_go(lambda run: run.due_ms <= now_ms, Event.EXPIRE)

    def release(self, member: str) -> bool:
        """Release what a member that left has acquired. Return whether there was any."""
        return self._let_go(lambda run: run.member == member, Event.RELEASE)

    def _let_go(self, chosen: Callable[[Run], bool], event: Event) -> bool:
        found = [run for run in self._runs if run.state is State.ACQUIRED and not run.settling and chosen(run)]
        for run in found:
            change = self._change(run, event)
            run.state, run.member, run.due_ms = change.state, "", 0
            self._queued.append((change, False))
        self._tidy()
        return bool(found)

    def advance(self, log_start: int) -> None:
        """The log starts at `log_start` now: drop all offsets below, acquired ones too."""
        if log_start <= self.start:
            return
        if log_start < self.end:
            self._cut(log_start, self.end - 1)
        self._runs = [run for run in self._runs if run.first >= log_start]
        self.start = log_start
        self.end = max(self.end, log_start)
        self._tidy()

    def _change(self, run: Run, event: Event) -> Change:
        state = TRANSITIONS[run.state, event]
        if state is State.AVAILABLE and run.deliveries >= self.limits.delivery_count:
            state = State.ARCHIVED
        return Change(run.first, run.last, state, run.deliveries)

    # ------------------------------------------------------------ writing

    def begin_write(self) -> StateWrite | None:
        """All that is queued, if there is any and no write is under way; end it by `end_write`."""
        if self._writing is not None or not (self._queued or self.start > self._written_start):
            return None
        self._writing, self._queued = self._queued, []
        changes = tuple(change for change, _ in self._writing)
        start, complete = self._start_with([change for change, holds in self._writing if holds])
        self._written_start = start
        return StateWrite(start, complete, tuple(change for change in changes if change.last >= start))

    def _start_with(self, changes: list[Change]) -> tuple[int, int]:
        """The start offset, and what is complete beyond, once `changes` hold."""
        after = SharePartition(self.start)
        after.end = self.end
        after._runs = [evolve(run) for run in self._runs]
        after._settle(changes)
        complete = sum(run.last - run.first + 1 for run in after._runs if run.state in TERMINAL)
        return after.start, complete

    def end_write(self, *, kept: bool) -> None:
        """End the write under way. If it failed (`kept` is False), the changes that waited for it are undone."""
        assert self._writing is not None
        waiting = [change for change, holds in self._writing if holds]
        self._writing = None
        if kept:
            self._kept_start = self._written_start
            self._settle(waiting)
            return
        self._written_start = self._kept_start
        for change in waiting:
            for run in self._cut(change.first, change.last):
                run.settling = False
        self._tidy()

    def _settle(self, changes: Iterable[Change]) -> None:
        for change in changes:
            for run in self._cut(change.first, change.last):
                run.state, run.member, run.due_ms, run.settling = change.state, "", 0, False
        self._tidy()

    # ------------------------------------------------------------ runs

    def _extend(self, run: Run) -> None:
        run.batch = run.first, run.last
        self._runs.append(run)
        self.end = run.last + 1

    def _cut(self, first: int, last: int) -> list[Run]:
        """The runs of these offsets, split at the edges; what lies before the start is left out."""
        first = max(first, self.start)
        if first > last:
            return []
        low = self._split(first)
        high = self._split(last + 1)
        return self._runs[low:high]

    def _split(self, offset: int) -> int:
        """Make a run begin at `offset`; its index."""
        index = bisect_right(self._runs, offset, key=lambda run: run.first)
        if not index or self._runs[index - 1].last < offset:
            return index
        run = self._runs[index - 1]
        if run.first == offset:
            return index - 1
        self._runs.insert(index, evolve(run, first=offset))
        run.last = offset - 1
        return index

    def _tidy(self) -> None:
        """Join what is alike, and move the start past what is done with."""
        joined: list[Run] = []
        for run in self._runs:
            if not joined and run.state in TERMINAL:
                self.start = run.last + 1
            elif joined and joined[-1].alike(run):
                joined[-1].last = run.last
            else:
                joined.append(run)
        self._runs = joined


def _tell(given: list[Acquired], run: Run, batch_size: int) -> None:
    last = given[-1] if given else None
    if (
        last is not None
        and last.last + 1 == run.first
        and last.deliveries == run.deliveries
        and (batch_size <= 0 or last.last - last.first + 1 < batch_size)
    ):
        given[-1] = last._replace(last=run.last)
    else:
        given.append(Acquired(run.first, run.last, run.deliveries))
