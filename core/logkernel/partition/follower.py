"""The follower of one partition, as a pure machine: fetch from the log end, append what comes, cut what diverges.

    event            checks                                     effects
    on_records       it answers the current fetch               append
    on_appended      -                                          (the log end)
    on_progress      it comes from the current leader           (watermark and log start follow the leader's)
    on_diverging     it answers the current fetch               truncate | restart
    on_out_of_range  the leader's ends                          truncate | restart
    on_truncated     -                                          (log end and watermark fall)
    on_restarted     -                                          (the log is empty)
    on_error         -                                          (a pause)
    on_leader        a newer leader epoch                       (fetches begin anew)
    on_log_start     -                                          (the watermark is not below it)
    on_offline       -                                          (no more fetches)

The states, and what moves a follower from one to the next:

    state       event      next        why
    FETCHING    error      DELAYED     the leader refused, or could not be reached
    FETCHING    offline    OFFLINE     the log's directory failed
    FETCHING    leader     FETCHING
    DELAYED     due        FETCHING    its pause is over
    DELAYED     leader     FETCHING    another leader owes no pause
    DELAYED     offline    OFFLINE

A follower never judges what it appends beyond its bytes: sequences and transactions are the leader's to judge
(KAFKA-6003). It truncates by leader epoch alone, never to its watermark (KIP-101): the fetch names the epoch of its
last record, and a leader whose log differs there answers the largest epoch at or below and where that ends (KIP-279).
The follower cuts to the smaller of that end and its own end of that epoch, and asks again, until both agree.

Invariants: `log_start <= high_watermark <= log_end`. The watermark follows the leader's and may fall with a cut, never
below the log start.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, Protocol

from logkernel.partition.effects import Effects
from logkernel.transitions import Transitions
from logkernel.vocabulary import NO_EPOCH, BatchFacts, OffsetAndEpoch

NO_LEADER: Final = -1


class Epochs(Protocol):
    """What the log says of its leader epochs (`storage.epochs.LeaderEpochCache`)."""

    @property
    def latest(self) -> int: ...

    def end_offset_for(self, epoch: int, log_end: int) -> OffsetAndEpoch | None: ...


class State(Enum):
    FETCHING = "fetching"
    DELAYED = "delayed"
    OFFLINE = "offline"


class Event(Enum):
    ERROR = "error"
    DUE = "due"
    LEADER = "leader"
    OFFLINE = "offline"


TRANSITIONS: Final = Transitions("a follower", {
    (State.FETCHING, Event.ERROR): State.DELAYED,
    (State.FETCHING, Event.OFFLINE): State.OFFLINE,
    (State.FETCHING, Event.LEADER): State.FETCHING,
    (State.DELAYED, Event.DUE): State.FETCHING,
    (State.DELAYED, Event.LEADER): State.FETCHING,
    (State.DELAYED, Event.OFFLINE): State.OFFLINE,
})  # fmt: skip


class FetchPosition(NamedTuple):
    """One partition of a fetch: everything that a leader needs to judge it."""

    offset: int
    """The follower's log end."""
    last_epoch: int
    """The epoch of its last record, -1 for an empty log."""
    leader_epoch: int
    """The epoch of the leader that is asked (KIP-320)."""
    log_start: int


class Follower:
    """State of a partition that another node leads. Time is an argument; nothing here does I/O."""

    __slots__ = ("_due_ms", "_epochs", "_state", "high_watermark", "leader", "leader_epoch", "log_end", "log_start")

    def __init__(
        self,
        *,
        leader: int,
        leader_epoch: int,
        log_start: int,
        log_end: int,
        high_watermark: int,
        epochs: Epochs,
    ) -> None:
        self.leader = leader
        self.leader_epoch = leader_epoch
        self.log_start = log_start
        self.log_end = log_end
        self.high_watermark = max(log_start, min(high_watermark, log_end))
        self._epochs = epochs
        self._state = State.FETCHING
        self._due_ms = 0

    # ------------------------------------------------------------ questions

    @property
    def state(self) -> State:
        return self._state

    def next_fetch(self, mono_ms: int) -> FetchPosition | None:
        """Where to fetch from, None while nobody leads, the follower pauses or its log is gone."""
        if self._state is State.DELAYED and mono_ms >= self._due_ms:
            self._state = TRANSITIONS[self._state, Event.DUE]
        if self._state is not State.FETCHING or self.leader == NO_LEADER:
            return None
        return FetchPosition(self.log_end, self._epochs.latest, self.leader_epoch, self.log_start)

    def next_deadline(self) -> int | None:
        """Monotonic ms at which a pause ends."""
        return self._due_ms if self._state is State.DELAYED else None

    # ------------------------------------------------------------ events

    def on_records(self, asked: FetchPosition, batches: list[BatchFacts]) -> Effects:
        """Batches came for the fetch `asked`, whole and checked, in order of offsets. Where they answer another fetch
        (KAFKA-7786), or a part of them lies before the log end, that is dropped."""
        effects = Effects()
        if self._is_current(asked):
            if self.log_end == self.log_start:  # KAFKA-6975: an empty log may begin inside the leader's batch
                new = [facts for facts in batches if facts.last_offset >= self.log_end]
            else:
                new = [facts for facts in batches if facts.base_offset >= self.log_end]
            effects.append = new or None
        return effects

    def on_appended(self, batches: list[BatchFacts]) -> None:
        """The batches of `on_records` lie in the log."""
        self.log_end = batches[-1].last_offset + 1

    def on_progress(self, asked: FetchPosition, leader_watermark: int, leader_start: int) -> int | None:
        """The last of an answer: the leader's watermark and log start. Returns a new log start to keep, or None."""
        if not self._is_of_this_leader(asked):
            return None
        self.high_watermark = max(self.high_watermark, min(leader_watermark, self.log_end))
        if leader_start > self.log_start and leader_start <= self.log_end:
            self.log_start = leader_start
            self.high_watermark = max(self.high_watermark, leader_start)
            return leader_start
        return None

    def on_diverging(self, asked: FetchPosition, epoch: int, end_offset: int) -> Effects:
        """The leader's log differs: its largest epoch at or below the asked one is `epoch` and ends at `end_offset`."""
        effects = Effects()
        if not self._is_current(asked):
            return effects
        own = self._epochs.end_offset_for(epoch, self.log_end)
        if epoch == NO_EPOCH or own is None:
            cut = min(end_offset, self.log_end)
        else:
            cut = min(end_offset, own.offset, self.log_end)
        if cut < self.log_start or self.log_start == self.log_end:
            # It holds nothing of the leader's, and an empty log cannot be cut further. Not at the cut: the leader may
            # hold committed records below. Where its log starts, the next answer tells.
            effects.restart = 0
        else:
            effects.truncate = cut
        return effects

    def on_out_of_range(self, asked: FetchPosition, leader_start: int, leader_end: int) -> Effects:
        """The leader does not hold the log end that was asked for; its own ends are told. Never fatal (KAFKA-7414)."""
        effects = Effects()
        if not self._is_current(asked):
            return effects
        if leader_end < self.log_end:
            effects.truncate = max(leader_end, self.log_start)
        if leader_end < self.log_start or leader_start > self.log_end:
            effects.truncate = None
            effects.restart = leader_start
        return effects

    def on_truncated(self, log_end: int) -> None:
        """The log, its epochs and producers were cut; it ends at `log_end` (at or before what was wanted)."""
        self.log_end = log_end
        self.high_watermark = min(self.high_watermark, log_end)

    def on_restarted(self, offset: int) -> None:
        """Every record is gone; the log starts and ends at `offset` (KAFKA-9491: so does the watermark)."""
        self.log_start = self.log_end = self.high_watermark = offset

    def on_error(self, asked: FetchPosition, mono_ms: int, backoff_ms: int) -> None:
        """The leader refused, or could not be reached: pause."""
        if self._is_of_this_leader(asked) and self._state is State.FETCHING:
            self._state = TRANSITIONS[self._state, Event.ERROR]
            self._due_ms = mono_ms + backoff_ms

    def on_leader(self, leader: int, leader_epoch: int) -> bool:
        """An order names the leader. False for one that is older than what is known."""
        if leader_epoch < self.leader_epoch or self._state is State.OFFLINE:
            return False
        if leader_epoch > self.leader_epoch or leader != self.leader:
            self._state = TRANSITIONS[self._state, Event.LEADER]
            self.leader, self.leader_epoch = leader, leader_epoch
        return True

    def on_log_start(self, offset: int) -> None:
        """Retention moved the log start."""
        self.log_start = max(self.log_start, offset)
        self.high_watermark = max(self.high_watermark, self.log_start)

    def take_epochs(self, epochs: Epochs) -> None:
        """The log lies elsewhere from now on; its epochs are the same."""
        self._epochs = epochs

    def on_offline(self) -> None:
        """The log's directory failed."""
        if self._state is not State.OFFLINE:
            self._state = TRANSITIONS[self._state, Event.OFFLINE]

    # ------------------------------------------------------------ inside

    def _is_of_this_leader(self, asked: FetchPosition) -> bool:
        return asked.leader_epoch == self.leader_epoch and self._state is not State.OFFLINE

    def _is_current(self, asked: FetchPosition) -> bool:
        """Whether an answer to `asked` still applies: not after a change of leader, an append or a truncation."""
        same_end = (asked.offset, asked.last_epoch) == (self.log_end, self._epochs.latest)
        return same_end and self._is_of_this_leader(asked)
