"""One transactional id: its states, their transitions, and which producers it accepts.

A transaction ends in two steps. First its end is decided: PrepareCommit or PrepareAbort is appended to the
coordinator's log, and from then on nothing but that end can happen. Then every partition that took part gets a marker,
and only when all have theirs the Complete record follows. Whatever crashes in between, the log says what was decided,
and writing a marker twice does no harm; so the end is carried through by whoever reads the log next.

    Empty             an id and an epoch were given out, nothing has begun
    Ongoing           partitions take part
    PrepareCommit     committed for good; markers are on their way
    PrepareAbort      aborted for good; markers are on their way
    CompleteCommit    every marker is written; the next transaction may begin
    CompleteAbort     likewise
    Dead              a tombstone was written; the id is forgotten

Who may speak for an id is said by producer id and epoch alone. Each InitProducerId bumps the epoch, which fences all
before it; taking a transaction away from its producer (a timeout, a successor) bumps it as well. Since transactions v2
(KIP-890) every end bumps it, so that what arrives late for one transaction cannot fall into the next; an end by timeout
too, and its producer goes on from there as after an end of his own. When the epochs of a producer id are used up, a new
id follows; the highest epoch is kept back, so that fencing always has one.

A `Transaction` is a value: what the log holds of the id, and one soft field. Methods give the value that comes
next; the machine appends it, and only its replay makes it so.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from attrs import evolve, field, frozen

from logkernel.errors import ConcurrentTransactions, InvalidProducerIdMapping, InvalidTxnState, ProducerFenced
from logkernel.transitions import Transitions
from logkernel.vocabulary import TopicPartition

NO_PRODUCER: Final = -1
NO_EPOCH: Final = -1
NO_TIME: Final = -1
MAX_EPOCH: Final = 2**15 - 1
LAST_CLIENT_EPOCH: Final = MAX_EPOCH - 1
"""The highest epoch that a producer is given."""
NO_TIMEOUT_MS: Final = 2**31 - 1
"""The timeout of a transaction that an outside coordinator may hold open for ever (KIP-939)."""
V2: Final = 2
"""The `transaction.version` from which on every end bumps the epoch."""
DONE: Final = 0
"""The judgement over a retry: what it asks for was done."""


class State(Enum):
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"


class Event(Enum):
    INIT = "InitProducerId"
    ADD = "partitions or offsets are added"
    COMMIT = "EndTxn commits"
    ABORT = "EndTxn aborts, a timeout, or a successor"
    ABORT_NOTHING = "EndTxn aborts before anything was added (v2)"
    MARKED = "every marker is written"
    EXPIRED = "unused for transactional.id.expiration.ms"


TRANSITIONS: Final = Transitions("a transaction", {
    (State.EMPTY, Event.INIT): State.EMPTY,
    (State.EMPTY, Event.ADD): State.ONGOING,
    (State.EMPTY, Event.ABORT_NOTHING): State.PREPARE_ABORT,
    (State.EMPTY, Event.EXPIRED): State.DEAD,
    (State.ONGOING, Event.ADD): State.ONGOING,
    (State.ONGOING, Event.COMMIT): State.PREPARE_COMMIT,
    (State.ONGOING, Event.ABORT): State.PREPARE_ABORT,
    (State.PREPARE_COMMIT, Event.MARKED): State.COMPLETE_COMMIT,
    (State.PREPARE_ABORT, Event.MARKED): State.COMPLETE_ABORT,
    (State.COMPLETE_COMMIT, Event.INIT): State.EMPTY,
    (State.COMPLETE_COMMIT, Event.ADD): State.ONGOING,
    (State.COMPLETE_COMMIT, Event.ABORT_NOTHING): State.PREPARE_ABORT,
    (State.COMPLETE_COMMIT, Event.EXPIRED): State.DEAD,
    (State.COMPLETE_ABORT, Event.INIT): State.EMPTY,
    (State.COMPLETE_ABORT, Event.ADD): State.ONGOING,
    (State.COMPLETE_ABORT, Event.ABORT_NOTHING): State.PREPARE_ABORT,
    (State.COMPLETE_ABORT, Event.EXPIRED): State.DEAD,
})  # fmt: skip

ENDING: Final = frozenset((State.PREPARE_COMMIT, State.PREPARE_ABORT))
COMPLETE: Final = frozenset((State.COMPLETE_COMMIT, State.COMPLETE_ABORT))


@frozen
class Transaction:
    state: State
    producer_id: int
    epoch: int
    """0 <= epoch <= MAX_EPOCH, NO_EPOCH before the first InitProducerId is through."""
    timeout_ms: int
    partitions: frozenset[TopicPartition] = frozenset()
    """Those that must get a marker; empty in Empty and Complete."""
    started_ms: int = NO_TIME
    updated_ms: int = NO_TIME
    previous_producer_id: int = NO_PRODUCER
    """The producer id as of the record before this one."""
    next_producer_id: int = NO_PRODUCER
    """The one that takes over when this end is complete, as the epochs are used up."""
    client_version: int = 0
    """The `transaction.version` of the client that began or ended it last."""
    last_epoch: int = field(default=NO_EPOCH, eq=False)
    """Soft: the epoch before this one, if its owner may ask for this one again (KIP-360)."""

    @classmethod
    def first(cls, producer_id: int, timeout_ms: int, wall_ms: int) -> Transaction:
        """What an unknown transactional id begins from; `init` gives its first epoch."""
        return cls(State.EMPTY, producer_id, NO_EPOCH, timeout_ms, updated_ms=wall_ms)

    # ------------------------------------------------------------ facts

    @property
    def is_ending(self) -> bool:
        return self.state in ENDING

    @property
    def is_exhausted(self) -> bool:
        return self.epoch >= LAST_CLIENT_EPOCH

    @property
    def is_commit(self) -> bool:
        return self.state is State.PREPARE_COMMIT

    def has_timed_out(self, wall_ms: int) -> bool:
        ongoing = self.state is State.ONGOING and self.timeout_ms != NO_TIMEOUT_MS
        return ongoing and self.started_ms + self.timeout_ms < wall_ms

    def has_expired(self, wall_ms: int, expiration_ms: int) -> bool:
        return (self.state, Event.EXPIRED) in TRANSITIONS and self.updated_ms <= wall_ms - expiration_ms

    # ------------------------------------------------------------ what comes next

    def init(self, timeout_ms: int, wall_ms: int, expected_epoch: int | None) -> Transaction:
        """InitProducerId: the next epoch, or the present one to an owner who asks again (KIP-360).

        Raises `ProducerFenced`.
        """
        if expected_epoch is None:
            epoch, last = self.epoch + 1, NO_EPOCH
        elif expected_epoch == self.epoch or self.epoch == NO_EPOCH:
            epoch, last = self.epoch + 1, self.epoch
        elif expected_epoch == self.last_epoch != NO_EPOCH:
            epoch, last = self.epoch, self.last_epoch
        else:
            raise ProducerFenced(f"epoch {expected_epoch} of producer {self.producer_id} is not {self.epoch}")
        return self._emptied(self.producer_id, epoch, last, timeout_ms, wall_ms)

    def rotate(self, producer_id: int, timeout_ms: int, wall_ms: int, *, known: bool) -> Transaction:
        """InitProducerId where the epochs are used up; `known`: by the owner, who may ask again."""
        return self._emptied(producer_id, 0, self.epoch if known else NO_EPOCH, timeout_ms, wall_ms)

    def _emptied(self, producer_id: int, epoch: int, last: int, timeout_ms: int, wall_ms: int) -> Transaction:
        return evolve(
            self,
            state=TRANSITIONS[self.state, Event.INIT],
            producer_id=producer_id,
            epoch=epoch,
            last_epoch=last,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            started_ms=NO_TIME,
            updated_ms=wall_ms,
            previous_producer_id=self.producer_id,
        )

    def add(self, partitions: Iterable[TopicPartition], wall_ms: int, client_version: int) -> Transaction:
        begun = self.state is State.ONGOING
        return evolve(
            self,
            state=TRANSITIONS[self.state, Event.ADD],
            partitions=self.partitions.union(partitions),
            started_ms=self.started_ms if begun else wall_ms,
            updated_ms=wall_ms,
            previous_producer_id=self.producer_id,
            client_version=client_version,
        )

    def end(self, committed: bool, wall_ms: int, client_version: int, next_producer_id: int) -> Transaction:
        """Decide the end. `next_producer_id` is one where v2 has used up the epochs (`needs_producer_id`)."""
        if self.state is State.ONGOING:
            event, started_ms = Event.COMMIT if committed else Event.ABORT, self.started_ms
        else:
            event, started_ms = Event.ABORT_NOTHING, wall_ms
        bumped = client_version >= V2
        return evolve(
            self,
            state=TRANSITIONS[self.state, event],
            epoch=min(self.epoch + 1, MAX_EPOCH) if bumped else self.epoch,
            last_epoch=self.epoch if bumped else self.last_epoch,
            started_ms=started_ms,
            updated_ms=wall_ms,
            previous_producer_id=self.producer_id,
            next_producer_id=next_producer_id,
            client_version=client_version,
        )

    def needs_producer_id(self, client_version: int) -> bool:
        """Whether ending it must bring a new producer id."""
        return client_version >= V2 and self.is_exhausted

    def fence(self, wall_ms: int, client_version: int, next_producer_id: int) -> Transaction:
        """Abort it without its producer, whose epoch ends with it.

        With v2 that is as if he had ended it himself: he goes on with the next epoch, unless another producer follows
        him (KIP-588). Without, he is fenced for good.
        """
        ended = self.end(False, wall_ms, client_version, next_producer_id)
        if client_version >= V2:
            return ended
        return evolve(ended, epoch=min(self.epoch + 1, MAX_EPOCH), last_epoch=NO_EPOCH)

    def complete(self, wall_ms: int) -> Transaction:
        rotates = self.client_version >= V2 and self.next_producer_id != NO_PRODUCER
        return evolve(
            self,
            state=TRANSITIONS[self.state, Event.MARKED],
            producer_id=self.next_producer_id if rotates else self.producer_id,
            epoch=0 if rotates else self.epoch,
            partitions=frozenset(),
            updated_ms=wall_ms,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER,
        )

    # ------------------------------------------------------------ who may speak

    def judge(self, producer_id: int, epoch: int) -> int:
        """Return the error code for a producer that adds partitions, 0 for the owner."""
        if self.is_ending:
            return ConcurrentTransactions.code  # the owner may know the next id already
        if producer_id != self.producer_id:
            return InvalidProducerIdMapping.code
        return ProducerFenced.code if epoch != self.epoch else 0

    def judge_end(self, producer_id: int, epoch: int, committed: bool, v2: bool) -> int | None:
        """None: go on; DONE: a retry of what was done; else an error code."""
        retried = v2 and self._is_retry(producer_id, epoch)
        if self.is_ending and (retried or (producer_id, epoch) == self._successor):
            return ConcurrentTransactions.code
        if not retried and producer_id != self.producer_id:
            return InvalidProducerIdMapping.code
        if self.is_ending or not (retried or epoch == self.epoch):
            return ProducerFenced.code
        if self.state is State.ONGOING:
            return None
        if self.state in COMPLETE and (retried or not v2):
            return DONE if committed == (self.state is State.COMPLETE_COMMIT) else InvalidTxnState.code
        return None if v2 and not committed else InvalidTxnState.code

    @property
    def _successor(self) -> tuple[int, int]:
        """Return the producer id and epoch that the producer uses once this end is complete."""
        after = self.complete(self.updated_ms)
        return after.producer_id, after.epoch

    def _is_retry(self, producer_id: int, epoch: int) -> bool:
        """Whether a v2 producer uses the epoch that its own EndTxn has ended, because the response was lost."""
        if self.client_version < V2 or not (self.is_ending or self.state in COMPLETE):
            return False
        if producer_id == self.producer_id:
            return epoch + 1 == self.epoch
        rotated = self.state in COMPLETE and self.epoch == 0 and producer_id == self.previous_producer_id
        return rotated and epoch == LAST_CLIENT_EPOCH
