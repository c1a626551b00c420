"""The leader of one partition, as a pure machine.

    event             checks                                      effects
    on_verification   open transaction                            (a guard for on_produce)
    on_produce        epoch, min ISR, sequences, guard            append | answer(error, or a committed duplicate)
    on_marker         min ISR, producer's and coordinator's epoch append, aborted? | answer(error)
    on_appended       -                                           persist?, answer or park, wake
    on_flushed        -                                           answer what waited for the disk, wake
    on_append_failed  -                                           answer(error)
    on_offline        -                                           answer(error) to all that wait, wake
    on_expired        deadlines of parked answers                 answer(REQUEST_TIMED_OUT)
    on_fetch          (judged by `replica_fetch`)                 propose(expansion)?, answer what it passed, wake
    on_tick           who lags or caught up, an open proposal     propose(a change, or once more)?, answer, wake
    on_isr_accepted   it is the proposal under way                propose(expansion)?, answer, wake
    on_isr_refused    it answers the last attempt                 (reverted, or stuck until an order)
    on_order          a newer leader epoch                        answer, wake
    on_live_brokers   who may join                                propose(expansion)?, answer, wake
    on_resigned       -                                           answer(NOT_LEADER_OR_FOLLOWER) to all that wait, wake
    on_log_start      -                                           (the watermark is not below it)

Invariants: `log_start <= last_stable_offset <= high_watermark <= log_end`; the watermark never falls; answers to
acks=all leave only when the watermark has passed the last offset of their batches. The last stable offset moves only
when the watermark does, as a transaction stays in doubt until its marker is committed.

The watermark waits for every replica that may be in sync for the controller by now, and for those about to join
(`isr.py`); it does not advance while fewer than `min_isr` of the replicas are in sync (KAFKA-15583). A partition with
one replica has no `sync`, and skips all of this.

Writes that wait meanwhile are answered as by Kafka 3.9: with success if enough replicas come back, else with
REQUEST_TIMED_OUT. NOT_ENOUGH_REPLICAS_AFTER_APPEND does not occur: Kafka returns it if the ISR shrinks between the
advance of the watermark and a check in another thread. Here that is one step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any, Final

from logkernel.contracts import IsrPolicy
from logkernel.errors import (
    DuplicateSequenceNumber,
    KafkaError,
    KafkaStorageError,
    NotEnoughReplicas,
    NotLeaderOrFollower,
    OutOfOrderSequenceNumber,
    RequestTimedOut,
)
from logkernel.partition.effects import Effects, Outcome
from logkernel.partition.isr import InSyncReplicas
from logkernel.partition.producers import Duplicate, ProducerStates
from logkernel.partition.watermark import high_watermark
from logkernel.record.control import EndTxnMarker
from logkernel.vocabulary import READ_COMMITTED, BatchFacts, IsrProposal

NO_DEADLINE: Final = 2**63 - 1


class Leader:
    """The state of a partition that this node leads. Time is an argument; no I/O."""

    __slots__ = (
        "_epoch_start",
        "_flushed",
        "_isr_policy",
        "_lag_ms",
        "_live",
        "_no_room",
        "_now_ms",
        "_outstanding",
        "flush_messages",
        "high_watermark",
        "isr",
        "leader_epoch",
        "log_append_time",
        "log_end",
        "log_start",
        "min_isr",
        "node_id",
        "parked",
        "producers",
        "sync",
        "unflushed",
    )

    def __init__(
        self,
        *,
        node_id: int,
        leader_epoch: int,
        isr: tuple[int, ...],
        log_start: int,
        log_end: int,
        high_watermark: int,
        min_isr: int = 1,
        flush_messages: int = 2**63 - 1,
        log_append_time: bool = False,
        producers: ProducerStates,
        replicas: Iterable[int] = (),
        partition_epoch: int = 0,
        lag_ms: int = 30_000,
        mono_ms: int = 0,
        isr_policy: IsrPolicy | None = None,
    ) -> None:
        """`replicas` is the assignment, this node included; `lag_ms` is `replica.lag.time.max.ms`. Without a policy,
        that time decides who is in sync."""
        self.node_id = node_id
        self.leader_epoch = leader_epoch
        self.isr = isr
        self.min_isr = min_isr
        self.flush_messages = flush_messages
        self.log_append_time = log_append_time
        self.log_start = log_start
        self.log_end = log_end
        self.high_watermark = max(log_start, min(high_watermark, log_end))
        self.producers = producers
        self.unflushed = 0
        """Records appended since the last flush."""
        self._outstanding: int | None = None
        """Log end that a flush under way will make durable; the watermark waits for it."""
        self._no_room: KafkaStorageError | None = None
        """Why the last batch was not written."""
        self._flushed = log_end
        self._epoch_start = log_end
        """The first offset that this leader writes. A replica that joins the ISR has every record before it."""
        self._live: frozenset[int] = frozenset()
        """Brokers that may join the ISR: alive, and not shutting down."""
        self._now_ms = mono_ms
        """The time of the latest event, monotonic ms."""
        self._lag_ms = lag_ms
        self._isr_policy = isr_policy
        self.sync = self._make_sync(replicas, isr, partition_epoch, mono_ms)
        """The ISR; None while this node has the only replica."""
        self.parked: deque[tuple[int, Any, Outcome, int]] = deque()
        """(end offset, receiver, outcome, deadline in mono ms), in order of end offset."""
        producers.on_watermark(self.high_watermark)
        self._advance(Effects())

    def _make_sync(
        self, replicas: Iterable[int], isr: Iterable[int], partition_epoch: int, mono_ms: int
    ) -> InSyncReplicas | None:
        nodes = tuple(dict.fromkeys((*replicas, *isr)))
        if all(node == self.node_id for node in nodes):
            return None
        return InSyncReplicas(
            node_id=self.node_id, replicas=nodes, isr=isr, leader_epoch=self.leader_epoch,
            partition_epoch=partition_epoch, lag_ms=self._lag_ms, mono_ms=mono_ms, policy=self._isr_policy,
        )  # fmt: skip

    # ------------------------------------------------------------ events

    def on_verification(self, producer_id: int, epoch: int, sequence: int, epoch_bump: bool, wall_ms: int) -> int:
        """A transactional batch came. Return 0 if its transaction is open here, else a guard: ask the transaction's
        coordinator, and pass the guard to `on_produce` if it confirms. A marker in between invalidates the guard."""
        return self.producers.verify(producer_id, epoch, sequence, epoch_bump, wall_ms)

    def on_produce(
        self,
        batches: list[BatchFacts],
        acks: int,
        receiver: Any,
        guard: int | None = None,
        deadline_ms: int = NO_DEADLINE,
    ) -> Effects:
        """Decide on validated batches; accepted ones get their offsets, in place.

        `guard` is None for a request without a transactional id, else the result of `on_verification`. A duplicate is
        answered like the original: when that is durable, with acks=all committed, or refused at `deadline_ms`
        (monotonic). One whose offset is forgotten gets DuplicateSequenceNumber then, which clients take for success.
        """
        effects = Effects()
        try:
            if acks == -1 and len(self.isr) < self.min_isr:
                self._check_min_isr()
            for facts in batches:
                if facts.producer_id >= 0:
                    known = self.producers.check_append(facts, guard)
                    if known is not None:
                        outcome = self._repeated(facts, known)
                        end = known.end_offset
                        if end > self.high_watermark and (acks == -1 or self._outstanding is not None):
                            self._park((end, receiver, outcome, deadline_ms))
                        else:
                            effects.answer.append((receiver, outcome))
                        return effects
        except OutOfOrderSequenceNumber as error:
            # Behind a batch that found no room it is told the same: on an error of sequence librdkafka begins a new
            # epoch, and sends again what leaders of other partitions have written, but not acknowledged.
            effects.answer.append((receiver, _refused(self._no_room or error)))
            return effects
        except KafkaError as error:
            effects.answer.append((receiver, _refused(error)))
            return effects
        self._assign(batches)
        effects.append = batches
        return effects

    def _repeated(self, facts: BatchFacts, known: Duplicate) -> Outcome:
        if known.base_offset >= 0:
            return Outcome(0, known.base_offset, -1, self.log_start)
        return _refused(
            DuplicateSequenceNumber(
                f"sequence {facts.base_sequence} of producer {facts.producer_id} was written before; its offset is not"
                " remembered"
            )
        )

    def on_marker(self, facts: BatchFacts, marker: EndTxnMarker, version: int, receiver: Any) -> Effects:
        """Decide on a control batch that ends a transaction; `version` is the coordinator's transaction version."""
        effects = Effects()
        try:
            self._check_min_isr()
            self.producers.judge_marker(facts, marker, version)
        except KafkaError as error:
            effects.answer.append((receiver, _refused(error)))
            return effects
        effects.append = [facts]
        self._assign(effects.append)
        effects.aborted = self.producers.would_abort(facts, marker)
        return effects

    def _effective_min_isr(self) -> int:
        """`min.insync.replicas`, at most the number of replicas, as in Kafka since 3.7."""
        return min(self.min_isr, 1 if self.sync is None else len(self.sync.followers) + 1)

    def _check_min_isr(self) -> None:
        if len(self.isr) < self._effective_min_isr():
            raise NotEnoughReplicas(f"{len(self.isr)} in-sync replicas, min.insync.replicas is {self.min_isr}")

    def _assign(self, batches: list[BatchFacts]) -> None:
        offset = self.log_end
        epoch = self.leader_epoch
        for facts in batches:
            delta = facts.last_offset - facts.base_offset
            facts.base_offset = offset
            facts.last_offset = offset + delta
            facts.leader_epoch = epoch
            offset += delta + 1

    def on_appended(
        self,
        batches: list[BatchFacts],
        acks: int,
        receiver: Any,
        wall_ms: int,
        deadline_ms: int,
        marker: EndTxnMarker | None = None,
    ) -> Effects:
        """The batches, or the one of `marker`, were appended: park or answer `receiver`. `deadline_ms` is monotonic."""
        effects = Effects()
        self._no_room = None
        for facts in batches:
            if marker is not None:
                self.producers.end(facts, marker)
            elif facts.producer_id >= 0:
                self.producers.note(facts)
            self.unflushed += facts.last_offset - facts.base_offset + 1
        end = self.log_end = batches[-1].last_offset + 1
        if self.unflushed >= self.flush_messages:
            if self._outstanding is None:
                self._flushed = max(self._flushed, batches[0].base_offset)
            effects.persist = self._outstanding = end
            self.unflushed = 0
        self._advance(effects)  # requests that waited are answered first
        outcome = Outcome(0, batches[0].base_offset, wall_ms if self.log_append_time else -1, self.log_start)
        if end > self.high_watermark and (acks == -1 or effects.persist is not None):
            self.parked.append((end, receiver, outcome, deadline_ms))
        else:
            effects.answer.append((receiver, outcome))
        return effects

    def on_append_failed(self, receiver: Any, error: KafkaError) -> Effects:
        """After a KafkaStorageError, a batch out of order is told the same until one is appended."""
        effects = Effects()
        if isinstance(error, KafkaStorageError):
            self._no_room = error
        effects.answer.append((receiver, _refused(error)))
        return effects

    def on_flushed(self, end: int) -> Effects:
        """Everything below `end` is durable."""
        effects = Effects()
        self._flushed = max(self._flushed, end)
        if self._outstanding is not None and end >= self._outstanding:
            self._outstanding = None
        if end >= self.log_end:
            self.unflushed = 0
        self._advance(effects)
        return effects

    def on_offline(self, error: KafkaError) -> Effects:
        """The log is offline: answer all waiting requests with `error`, as nothing more becomes durable here."""
        effects = Effects()
        while self.parked:
            effects.answer.append((self.parked.popleft()[1], _refused(error)))
        effects.wake = True
        return effects

    def on_expired(self, mono_ms: int) -> Effects:
        """Answer requests whose deadline has passed. Their records stay, and may still be committed."""
        effects = Effects()
        keep: deque[tuple[int, Any, Outcome, int]] = deque()
        for entry in self.parked:
            if entry[3] <= mono_ms:
                effects.answer.append((entry[1], _refused(RequestTimedOut("not replicated in time"))))
            else:
                keep.append(entry)
        self.parked = keep
        return effects

    def on_fetch(self, node: int, offset: int, log_start: int, mono_ms: int, broker_epoch: int = -1) -> Effects:
        """A follower fetches from `offset`, which `replica_fetch.judge_fetch` admitted: it has every record below.

        Raises KeyError for a node that is no replica.
        """
        effects = Effects()
        sync = self.sync
        if sync is None:
            raise KeyError(node)
        self._now_ms = max(self._now_ms, mono_ms)
        sync.on_fetch(node, offset, log_start, self.log_end, mono_ms, broker_epoch)
        effects.propose = sync.propose_expansion(
            node, self.high_watermark, self._epoch_start, self._live, self.log_end, self._now_ms
        )
        self._advance(effects)
        return effects

    def on_tick(self, mono_ms: int) -> Effects:
        """Time passed. Propose to remove members that lag, or repeat a proposal that was not answered."""
        effects = Effects()
        self._now_ms = max(self._now_ms, mono_ms)
        if self.sync is not None:
            effects.propose = self.sync.repeat() or self.sync.propose_shrink(self.log_end, mono_ms)
            self._advance(effects)
            self._expand(effects)
        return effects

    def on_isr_accepted(self, proposal: IsrProposal, partition_epoch: int) -> Effects:
        """The controller stored the proposal."""
        effects = Effects()
        if self.sync is not None and self.sync.on_accepted(proposal, partition_epoch):
            self._take_isr(self.sync)
            self._advance(effects)
            self._expand(effects)
        return effects

    def on_isr_refused(self, proposal: IsrProposal, *, revert: bool) -> None:
        """The controller refused the proposal. With `revert` it never accepts it; else this leader is behind the
        controller, and waits for an order."""
        if self.sync is not None:
            self.sync.on_refused(proposal, revert=revert)

    def on_order(
        self, leader_epoch: int, replicas: Iterable[int], isr: Iterable[int], partition_epoch: int, mono_ms: int
    ) -> Effects:
        """This node stays the leader in a newer leader epoch, from its log end on. Older orders change nothing."""
        effects = Effects()
        if leader_epoch <= self.leader_epoch:
            return effects
        self._now_ms = max(self._now_ms, mono_ms)
        self.leader_epoch, self._epoch_start = leader_epoch, self.log_end
        members, nodes = tuple(isr), tuple(replicas)
        if self.sync is None:
            self.sync = self._make_sync(nodes, members, partition_epoch, mono_ms)
        else:
            self.sync.on_order(leader_epoch, nodes, members, partition_epoch, mono_ms)
        if self.sync is not None:
            self._take_isr(self.sync)
        self._advance(effects)
        return effects

    def on_live_brokers(self, live: frozenset[int], mono_ms: int = 0) -> Effects:
        """Take the brokers that are alive and not shutting down, from the controller."""
        effects = Effects()
        gone, self._live = self._live - live, live
        self._now_ms = max(self._now_ms, mono_ms)
        if self.sync is not None:
            self.sync.on_gone(gone)
            self._advance(effects)
            self._expand(effects)
        return effects

    def on_resigned(self, error: KafkaError | None = None) -> Effects:
        """Another broker leads: answer waiting requests with NOT_LEADER_OR_FOLLOWER. Verification guards end."""
        self.producers.void_guards()
        return self.on_offline(error or NotLeaderOrFollower("another broker leads now; ask Metadata which"))

    def take_isr_policy(self, policy: IsrPolicy | None) -> None:
        """Use `policy` from now on, first at the next `on_tick`."""
        self._isr_policy = policy
        if self.sync is not None:
            self.sync.take_policy(policy)

    def on_log_start(self, offset: int) -> None:
        """Retention or DeleteRecords moved the log start."""
        self.log_start = max(self.log_start, offset)
        if self.log_start > self.high_watermark:
            self.high_watermark = self.log_start
            self.producers.on_watermark(self.high_watermark)

    # ------------------------------------------------------------ questions

    def next_deadline(self) -> int | None:
        """Monotonic ms at which `on_expired` is due."""
        return min((entry[3] for entry in self.parked), default=None)

    def low_watermark(self) -> int:
        """Return the lowest log start of live replicas, which DeleteRecords waits for."""
        if self.sync is None:
            return self.log_start
        starts = [follower.log_start for node, follower in self.sync.followers.items() if node in self._live]
        return min(self.log_start, *starts) if starts else self.log_start

    def last_stable_offset(self) -> int:
        """The offset below which every transaction has ended."""
        unstable = self.producers.first_unstable_offset
        if unstable is None:
            return self.high_watermark
        return max(self.log_start, min(unstable, self.high_watermark))

    def readable_end(self, isolation: int) -> int:
        """First offset that a consumer of this isolation level may not see yet."""
        return self.last_stable_offset() if isolation == READ_COMMITTED else self.high_watermark

    # ------------------------------------------------------------ inside

    def _advance(self, effects: Effects) -> None:
        """Advance the watermark as far as the in-sync replicas allow, and answer requests that it passed."""
        own_end = self.log_end
        if self._outstanding is not None:
            own_end = self._flushed  # records that are not flushed yet do not count
        before = self.high_watermark
        sync = self.sync
        if sync is None:
            self.high_watermark = max(before, own_end)
        elif len(sync.isr) >= self._effective_min_isr():
            ends = sync.holding(self.log_end, self._now_ms, self._live)
            self.high_watermark = high_watermark(before, (own_end, *ends))
        if self.high_watermark > before:
            effects.wake = True
            self.producers.on_watermark(self.high_watermark)
        parked = self.parked
        while parked and parked[0][0] <= self.high_watermark:
            _, receiver, outcome, _ = parked.popleft()
            effects.answer.append((receiver, outcome))

    def _park(self, entry: tuple[int, Any, Outcome, int]) -> None:
        """Insert after all entries with the same end."""
        at = len(self.parked)
        while at and self.parked[at - 1][0] > entry[0]:
            at -= 1
        self.parked.insert(at, entry)

    def _expand(self, effects: Effects) -> None:
        """A follower may have caught up while another proposal was under way, or before it counted as alive. It may
        not fetch again by itself: where nothing is written, its session has nothing to ask."""
        if self.sync is not None and effects.propose is None:
            effects.propose = self.sync.propose_waiting(
                self.high_watermark, self._epoch_start, self._live, self.log_end, self._now_ms
            )

    def _take_isr(self, sync: InSyncReplicas) -> None:
        self.isr = tuple(sorted(sync.isr))


def _refused(error: KafkaError) -> Outcome:
    return Outcome(error.code, -1, -1, -1, str(error) or None)
