"""What members of both group protocols have in common: ids, owned partitions, `max.poll.interval.ms`. Pure.

`classic_member` speaks the classic protocol, `kip848_member` KIP-848. What either decides lies in `events` until the
user's poll carries it out: that is where partitions are revoked and assigned, and where the listener is called.
Nothing else waits for the user.

    REVOKE    these go to others next; what was read of them can still be committed
    ASSIGN    these are new
    LOST      these may be others' already
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import define

from logkernel.client.cluster.calls import ClientCore
from logkernel.client.metrics import WindowedMetrics
from logkernel.errors import REFUSALS, CoordinatorLoadInProgress, CoordinatorNotAvailable, KafkaError, NotCoordinator
from logkernel.peer.backoff import Backoff
from logkernel.vocabulary import TopicPartition

OUT, PREPARING, JOINING, ASSIGNING, SYNCING, STABLE, FAILED, LEFT = range(8)
REVOKE, ASSIGN, LOST = "revoke", "assign", "lost"
LEAVE_MS: Final = 5_000
COORDINATOR_ERRORS: Final = (CoordinatorLoadInProgress.code, CoordinatorNotAvailable.code, NotCoordinator.code)


def passes(error: Exception) -> bool:
    """Whether the membership tries again after this error of a call. A refusal of the client is told by the next poll,
    and the polls after it find a broker that takes it, or another refusal."""
    return isinstance(error, REFUSALS) or (isinstance(error, KafkaError) and error.retriable)


def coordinator_error(response: Any) -> int:
    """The verdict of calls whose other errors the member handles itself."""
    return response.error_code if response.error_code in COORDINATOR_ERRORS else 0


@define(eq=False)
class Event:
    """The event that the user's poll must carry out, and then report to `handled`."""

    kind: str
    partitions: list[TopicPartition]


class GroupMembership(ABC):
    """See the module. `topics` is set by `subscribe`; `owned` are the partitions that events gave."""

    def __init__(self, core: ClientCore, settings: Mapping[str, Any], metrics: WindowedMetrics) -> None:
        self.core = core
        self.group_id: str = settings["group.id"]
        self.instance_id: str | None = settings["group.instance.id"]
        self.key = ("group", self.group_id)
        self.state = OUT
        self.member_id = ""
        self.generation = -1
        """The classic generation, or the member's epoch; -1 outside."""
        self.topics: frozenset[str] = frozenset()
        self.regex = ""
        """Topics by the coordinator's matching (KIP-848)."""
        self.owned: set[TopicPartition] = set()
        self.events: deque[Event] = deque()
        self.error: Exception | None = None
        self.polled_ms: int | None = None
        self.leaving = False
        """Whether a request that leaves the group is in flight."""
        self._settings = settings
        self._metrics = metrics
        self._max_poll_ms: int = settings["max.poll.interval.ms"]
        self._backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], core.random)
        self._failures = 0
        self._round = 0
        """Answers to what was asked in an earlier round are not looked at."""
        self._retry_ms = 0
        self._now_ms = 0

    # ------------------------------------------------------------ what users do

    def subscribe(self, topics: Iterable[str], regex: str = "") -> None:
        self.topics, self.regex = frozenset(topics), regex

    def polled(self, now_ms: int) -> None:
        """A poll began. Where only polls step the machine, it is here that one is seen to come too late."""
        if self.polled_ms is not None:
            self._check_late(now_ms)
        self.polled_ms = now_ms

    @property
    def member(self) -> bool:
        """Whether commits may name this member."""
        return self.generation >= 0

    def is_next(self, event: Event) -> bool:
        """Whether this event still stands: a membership that ends takes its events back."""
        return bool(self.events) and self.events[0] is event

    def _check_late(self, now_ms: int) -> bool:
        """Whether the user did not poll for too long; the membership is over then."""
        assert self.polled_ms is not None
        if now_ms <= self.polled_ms + self._max_poll_ms or self.state in (FAILED, LEFT):
            return False
        if self.generation >= 0 or self.state in (JOINING, ASSIGNING, SYNCING):
            self._too_slow()
        return True

    def _over(self) -> None:
        """All owned partitions are lost; the poll gets a LOST event, then the state is OUT."""
        self._round += 1
        self.generation = -1
        self.events.clear()
        self.state = OUT
        if self.owned:
            self.events.append(Event(LOST, sorted(self.owned)))
            self.state = PREPARING

    def _wait(self) -> None:
        """Not before a while, longer after each failure."""
        self._retry_ms = self._now_ms + self._backoff.delay_ms(self._failures)
        self._failures += 1

    # ------------------------------------------------------------ each its own

    @abstractmethod
    def handled(self, event: Event) -> None:
        """The user's poll carried an event out."""

    @abstractmethod
    def step(self, now_ms: int) -> int | None:
        """Do what is due; returns when to come again."""

    @abstractmethod
    def rejoin(self) -> None:
        """The coordinator answered a commit with REBALANCE_IN_PROGRESS."""

    @abstractmethod
    def stale(self) -> None:
        """A commit was answered with STALE_MEMBER_EPOCH: send a heartbeat to get the newer epoch."""

    @abstractmethod
    def lost(self, code: int) -> None:
        """The coordinator answered a commit as to a stranger."""

    @abstractmethod
    def leave(self) -> None:
        """Close. Events are not waited for any more."""

    @abstractmethod
    def _too_slow(self) -> None:
        """The user did not poll for `max.poll.interval.ms`: what is owned is lost."""
