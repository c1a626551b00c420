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

A follower checks the bytes of what it appends, not sequences or transactions: those the leader has checked
(KAFKA-6003). It truncates by leader epoch only, never to its watermark (KIP-101). Its fetch names the epoch of its last
record. If the leader's log differs there, the leader answers with its largest epoch at or below, and that epoch's end
(KIP-279). The follower truncates to the smaller of that end and its own end of that epoch, and fetches again, until
both logs agree.

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
    """The leader epochs of the log (`storage.epochs.LeaderEpochCache`)."""

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
    """One partition of a fetch request."""

    offset: int
    """The follower's log end."""
    last_epoch: int
    """The epoch of its last record, -1 for an empty log."""
    leader_epoch: int
    """The follower's current leader epoch (KIP-320)."""
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
        """Return the position to fetch from; None while there is no leader, during a pause, or if the log is
        offline."""
        if self._state is State.DELAYED and mono_ms >= self._due_ms:
            self._state = TRANSITIONS[self._state, Event.DUE]
        if self._state is not State.FETCHING or self.leader == NO_LEADER:
            return None
        return FetchPosition(self.log_end, self._epochs.latest, self.leader_epoch, self.log_start)

    def next_deadline(self) -> int | None:
        """Return the monotonic ms at which the pause ends, or None."""
        return self._due_ms if self._state is State.DELAYED else None

    # ------------------------------------------------------------ events

    def on_records(self, asked: FetchPosition, batches: list[BatchFacts]) -> Effects:
        """Take the batches of the answer to `asked`: whole, checked, in order of offsets. Batches that answer another
        fetch (KAFKA-7786) or are below the log end are dropped.

        A batch of the leader's that holds the log end says that the logs differ below it. The leader could not say so
        itself: its log starts within that batch, and what it knows of epochs with it.
        """
        effects = Effects()
        if not self._is_current(asked):
            return effects
        new = [facts for facts in batches if facts.last_offset >= self.log_end]
        if new and new[0].base_offset < self.log_end != self.log_start:
            effects.truncate = max(new[0].base_offset, self.log_start)
        else:  # KAFKA-6975: an empty log may begin inside the leader's batch
            effects.append = new or None
        return effects

    def on_appended(self, batches: list[BatchFacts]) -> None:
        """The batches of `on_records` were appended."""
        self.log_end = batches[-1].last_offset + 1

    def on_progress(self, asked: FetchPosition, leader_watermark: int, leader_start: int) -> int | None:
        """Take the leader's watermark and log start, the last part of an answer. Return a new log start to store, or
        None."""
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
        """The leader's log does not have the fetched offset; it is from `leader_start` to `leader_end`. Never fatal
        (KAFKA-7414)."""
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
        """The log, its epochs and producers were truncated to `log_end`, which is at or below what was asked for."""
        self.log_end = log_end
        self.high_watermark = min(self.high_watermark, log_end)

    def on_restarted(self, offset: int) -> None:
        """The log was emptied: it starts and ends at `offset`, and so does the watermark (KAFKA-9491)."""
        self.log_start = self.log_end = self.high_watermark = offset

    def on_error(self, asked: FetchPosition, mono_ms: int, backoff_ms: int) -> None:
        """The leader refused or could not be reached: pause."""
        if self._is_of_this_leader(asked) and self._state is State.FETCHING:
            self._state = TRANSITIONS[self._state, Event.ERROR]
            self._due_ms = mono_ms + backoff_ms

    def on_leader(self, leader: int, leader_epoch: int) -> bool:
        """Take the leader from a LeaderAndIsr. Return False if its leader epoch is older than the known one."""
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
        """The log moved to another directory; its epochs are the same."""
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
