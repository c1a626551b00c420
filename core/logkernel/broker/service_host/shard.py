"""One partition of a service: its machine, its timer, and how a decision of the machine is carried out.

A decision's records are appended as one batch and replayed at the local append; its answers leave at commit. Where the
append fails, the machine is built anew from the log.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

from logkernel.attrs_lite import mutable
from logkernel.broker.replicas.leader_replica import LeaderReplica, PendingAppend
from logkernel.broker.runtime import Runtime
from logkernel.broker.service_host.guard import ServiceFailed, ServiceGuard
from logkernel.broker.timers import Timer
from logkernel.broker.turn import Turn
from logkernel.contracts import (
    Answer,
    BulkMachine,
    ColumnarMachine,
    Decision,
    RequestContext,
    Service,
    ServiceDeclaration,
    ServiceMachine,
    TransactionalMachine,
)
from logkernel.errors import KafkaError, RequestTimedOut
from logkernel.partition.effects import Outcome
from logkernel.plugin_faults import SLOW_MS
from logkernel.record.control import parse_marker
from logkernel.record.loops import Columns
from logkernel.record.validate import own_batch
from logkernel.vocabulary import BatchFacts, Record

log = logging.getLogger("logkernel.services")

BACKOFF_MS, LONGEST_BACKOFF_MS = 100, 60_000
"""A timer whose machine fails is run again after so long, and twice as long after each further failure."""
NEVER_MS = 2**62
NO_RECORDS = "the shard is rebuilt from its log"


class ShardHost(Protocol):
    """What a shard needs of the service that it is a part of."""

    runtime: Runtime
    turn: Turn
    guard: ServiceGuard
    declared: ServiceDeclaration
    commit_timeout_ms: int
    is_led: bool
    """Whether a shard is here only while its partition is led here."""

    @property
    def submit(self) -> Callable[[Any, RequestContext, Answer], None]: ...
    @property
    def service(self) -> Service: ...
    def new_id(self) -> str: ...
    def replica(self, shard: int) -> LeaderReplica | None: ...
    def is_offline(self, shard: int) -> bool: ...
    def writable(self, shard: int) -> LeaderReplica: ...
    def is_there(self, shard: Shard) -> bool: ...
    def deliver(self, answers: list[tuple[int, Any]]) -> None:
        """Let answers of the machine go."""

    def refuse(self, tickets: list[int], code: int) -> None: ...

    def rebuild(self, shard: Shard, error_code: int) -> None:
        """An append failed, so nothing of its decision holds."""

    def unload(self, number: int, error: Exception) -> None: ...

    @property
    def shard_count(self) -> int: ...
    def replay_control(self, shard: int, producer_id: int, producer_epoch: int, records: Sequence[Record]) -> None: ...
    def refuse_shard(self, shard: int, code: int) -> None:
        """Refuse the requests that wait for a shard. Raises `ServiceFailed`."""


@mutable
class _Commit:
    """Receives the outcome of the append of a decision's records."""

    _shard: Shard
    _machine: ServiceMachine
    _decision: Decision
    delivered: bool = False

    def appended(self, base_offset: int) -> None:
        shard, records, producer = self._shard, self._decision.records, self._decision.producer
        for offset, record in enumerate(records, base_offset):
            record.offset = offset
        try:
            shard.replay(records, producer)
            if producer is None:
                for other in shard.sharing:
                    other.replay(records, None)
                    other.knows_until(base_offset + len(records))
        except ServiceFailed as error:  # what lies in the log is kept, and read by a new machine
            shard.host.unload(shard.number, error)
        shard.deciding = False

    def late(self) -> None:
        """In a cluster: followers are slow, so refuse the waiting requests. The records may still be committed, and the
        machine knows them."""
        if not self.delivered:
            self._shard.host.refuse([ticket for ticket, _ in self._decision.answers], RequestTimedOut.code)

    def deliver(self, outcome: Outcome) -> None:
        self.delivered = True
        if outcome.error_code:
            self._shard.failed(self._decision, outcome)
        elif self._machine is self._shard.machine:  # else whoever waited was refused when it was replaced
            self._shard.wait_over(self._decision)


class _Tail:
    """Waits until the log that a machine was built from is committed to its end."""

    __slots__ = ("_end", "_machine", "_replica", "_shard")

    def __init__(self, shard: Shard, replica: LeaderReplica, end: int) -> None:
        self._shard, self._machine = shard, shard.machine
        self._replica = replica
        self._end = end

    def on_news(self) -> None:
        if self._machine is not self._shard.machine or not self._replica.in_service:
            return
        if self._replica.leader.high_watermark < self._end:
            self._replica.news.subscribe(self)
        else:
            self._shard.wait_over(Decision())


class Shard:
    """One partition of a service: its machine, its timer."""

    def __init__(self, host: ShardHost, number: int, sharing: Sequence[Shard]) -> None:
        self.host = host
        self.number = number
        self.sharing = sharing
        """Those of other services that keep their state in the same log: they fold what is appended as well."""
        self._timer: Timer | None = None
        self.machine: ServiceMachine
        self._bulk: BulkMachine | None
        self._columnar: ColumnarMachine | None
        self._begun = 0
        self._done = 0
        """Appends of this machine that were begun, and those of them that are committed; in the log's order. The first
        of them is what was not committed of the log that it was built from, if there was such."""
        self.deciding = False
        """From an event to the replay of what it decided: no other event may come in between."""
        self._due: int | None = None
        """The machine's next deadline, as it was last told."""
        self._failures = 0
        """How often the timer failed in a row."""
        self._not_before_ms = 0
        """The end of its back-off (monotonic)."""
        self._foreign_end = 0
        """The end of what others appended to the log and this machine folded; 0 once that is known to be committed, or
        waited for."""
        self._held: deque[tuple[int, Decision]] = deque()
        """Decisions without records, each with the number of appends whose commit it waits for."""
        self.renew()

    def renew(self) -> None:
        """Begin with a fresh machine, which `load` then brings up to the log's end. Raises `ServiceFailed`."""
        make = self.host.service.machine
        self.machine = machine = self.host.guard.call("its shard is not loaded", make, self.number, self.host.new_id)
        self._bulk = machine if isinstance(machine, BulkMachine) else None
        self._columnar = machine if isinstance(machine, ColumnarMachine) else None
        self._begun = self._done = self._foreign_end = 0
        self._held.clear()

    def replay_batch(self, facts: BatchFacts, records: Sequence[Record]) -> None:
        """Fold a batch as the log has it."""
        if facts.is_control:
            self.replay_control(facts.producer_id, facts.producer_epoch, records)
        else:
            self.replay(records, (facts.producer_id, facts.producer_epoch) if facts.is_transactional else None)

    def replay(self, records: Sequence[Record], producer: tuple[int, int] | None) -> None:
        """Fold records that lie in the log, all of one producer's transaction or of none. Raises `ServiceFailed`."""
        guard = self.host.guard
        outer = guard.running.begin(guard.named, self._replay)
        try:
            self._replay(records, producer)
        except Exception as error:
            raise guard.failed(NO_RECORDS, self._replay, error) from error
        finally:
            guard.running.end(outer)

    def _replay(self, records: Sequence[Record], producer: tuple[int, int] | None) -> None:
        machine = self.machine
        if producer is None:
            if self._bulk is not None:
                self._bulk.replay_many(records)
            else:
                for record in records:
                    machine.replay(record)
        elif isinstance(machine, TransactionalMachine):
            for record in records:
                machine.replay_pending(record, *producer)

    @property
    def reads_columns(self) -> bool:
        return self._columnar is not None

    def replay_columns(self, columns: Columns) -> bool:
        """Fold a batch of no transaction; False where its records must come as such."""
        columnar = self._columnar
        return columnar is not None and self.host.guard.call(NO_RECORDS, columnar.replay_columns, columns)

    def replay_control(self, producer_id: int, producer_epoch: int, records: Sequence[Record]) -> None:
        """Fold a control batch: how a transaction that wrote here ended. Raises `ServiceFailed`."""
        machine = self.machine
        if not isinstance(machine, TransactionalMachine):
            return
        for record in records:
            marker = parse_marker(record)
            if marker is not None:
                self.host.guard.call(NO_RECORDS, machine.replay_marker, producer_id, producer_epoch, marker.committed)

    def rests_on(self, replica: LeaderReplica, end: int) -> None:
        """The machine has replayed the log up to `end`. Hold its answers until all of that is committed."""
        if replica.leader.high_watermark < end:
            self._begun += 1
            replica.news.subscribe(_Tail(self, replica, end))

    def knows_until(self, end: int) -> None:
        """Another machine's records, or a marker, were folded at their local append; they end at `end`. What this
        machine decides next may rest on them."""
        self._foreign_end = end

    def tell(self, event: Callable[..., Decision], *facts: Any) -> None:
        """Hand an event to the machine, e.g. `machine.on_request` with its request, and carry out what it decides.

        Append and replay before anything is answered: an answer may bring the next request at once. What is decided
        without a record may rest on records that are not committed yet, so it waits for them. An event in the midst of
        another (the topic of the log itself was created) comes at the end of the turn.

        Raises `ServiceFailed` where the machine fails.
        """
        if self.deciding:
            self.host.turn.call_soon(partial(self.inform, event, *facts))
            return
        host = self.host
        clock = host.runtime.clock
        wall_ms, mono_ms = clock.wall_ms(), clock.mono_ms()
        self.deciding, guard = True, host.guard
        told_ms = guard.faults.told_ms
        outer = guard.running.begin(guard.named, event)
        try:
            try:
                decision = event(*facts, wall_ms, mono_ms)
            except Exception as error:
                raise guard.failed("it does not hear of it", event, error) from error
            finally:
                guard.running.end(outer)
            elapsed_ms = clock.mono_ms() - mono_ms
            if elapsed_ms > SLOW_MS:
                guard.took(event, elapsed_ms, told_ms)
            if decision.records:
                self._begun += 1
                self._append(decision, wall_ms, mono_ms)
        finally:
            self.deciding = False
        if self._foreign_end:
            end, self._foreign_end = self._foreign_end, 0
            replica = host.replica(self.number)
            if replica is not None:
                self.rests_on(replica, end)
        if decision.records:
            pass  # answered when they are committed
        elif self._done < self._begun:
            self._held.append((self._begun, decision))
        else:
            self.committed(decision)
        if decision.replies:
            host.deliver(decision.replies)
        self._arm()

    def inform(self, event: Callable[..., Decision], *facts: Any) -> None:
        """Like `tell`, within another machine's event: a failure here does not affect that one."""
        with contextlib.suppress(ServiceFailed):
            self.tell(event, *facts)

    def wait_over(self, decision: Decision) -> None:
        self._done += 1
        self.committed(decision)
        while self._held and self._held[0][0] <= self._done:
            self.committed(self._held.popleft()[1])

    def committed(self, decision: Decision) -> None:
        """The decision's records hold: let out what waited for them."""
        if decision.answers:
            self.host.deliver(decision.answers)
        for token, request in decision.sends:
            self._send(token, request)

    def _send(self, token: Any, request: Any) -> None:
        """Put a request to the broker; its answer is an event of this machine, if it is still the one that asked."""
        machine, turn = self.machine, self.host.turn
        if isinstance(machine, TransactionalMachine):
            self._make_log()

        def heard(response: Any) -> None:
            if self.machine is not machine:
                return
            try:
                self.inform(machine.on_response, token, response)
            except Exception:  # it must not end the event of somebody else, in whose course it came
                log.exception("service failed: service=%s answer=%s", self.host.declared.name, type(response).__name__)

        context = RequestContext(client_id=f"service-{self.host.declared.name}", internal=True)
        submit = self.host.submit
        turn.call_soon(lambda: submit(request, context, lambda response: turn.call_soon(lambda: heard(response))))

    def _make_log(self) -> None:
        """A coordinator may be asked for this very log, which must be there then, though nothing was written yet."""
        try:
            self.host.writable(self.number)
        except (KafkaError, OSError) as error:
            log.error("topic not created: service=%s error=%s", self.host.declared.name, error)

    def _append(self, decision: Decision, wall_ms: int, mono_ms: int) -> None:
        for record in decision.records:
            if record.timestamp_ms < 0:
                record.timestamp_ms = wall_ms
        commit = _Commit(self, self.machine, decision)
        replica = self.host.replica(self.number)
        if replica is None:
            try:
                replica = self.host.writable(self.number)
            except KafkaError as error:
                commit.deliver(Outcome(error.code, error_message=str(error)))
                return
        guard = None
        if decision.producer is None:
            checked = own_batch(decision.records)
        else:
            checked = own_batch(decision.records, *decision.producer, transactional=True)
            guard = replica.leader.on_verification(  # its coordinator was asked by the machine itself
                *decision.producer, -1, False, wall_ms
            )
        is_led, timeout_ms = self.host.is_led, self.host.commit_timeout_ms
        deadline_ms = NEVER_MS if is_led else mono_ms + timeout_ms
        append = PendingAppend(checked.data, -1, commit, wall_ms, deadline_ms, on_append=commit.appended)
        replica.store(checked.batches, append, guard)
        if is_led and not commit.delivered:
            self.host.runtime.after(timeout_ms, commit.late)

    def failed(self, decision: Decision, outcome: Outcome) -> None:
        """The append failed: send `replies`, then rebuild the machine from the log."""
        log.error(
            "service append failed: service=%s shard=%d error_code=%d",
            self.host.declared.name,
            self.number,
            outcome.error_code,
        )
        if self.is_there:
            self.host.deliver(decision.replies)
            self.deciding = False
            self.host.rebuild(self, outcome.error_code)

    @property
    def is_there(self) -> bool:
        """False once its log could not be read: its state must not be used for answers."""
        return self.host.is_there(self)

    def retire(self) -> None:
        """Close the shard: results of work in progress are dropped."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        with contextlib.suppress(ServiceFailed):
            self.renew()

    def _arm(self) -> None:
        """Set the timer for the machine's next deadline, or for the end of its back-off. One that is set for earlier
        stays: deadlines move on with every heartbeat."""
        try:
            due = self._due = self.machine.next_deadline()
        except Exception as error:
            self.host.guard.failed("its timer is set later", self.machine.next_deadline, error)
            self._due = None
            due = self._back_off()
        if due is not None and due < self._not_before_ms:
            due = self._not_before_ms
        timer = self._timer
        if timer is not None and (due is None or timer.action is None or due < timer.when_ms):
            timer.cancel()
            self._timer = timer = None
        if due is not None and timer is None:
            self._timer = self.host.runtime.timers.at(due, self._on_timer)

    def _on_timer(self) -> None:
        """A timer that fails, or leaves its deadline where it was, is retried later, with increasing pauses."""
        self._timer = None
        if not self.is_there:
            return
        machine, before, failures = self.machine, self._due, self._failures
        self._not_before_ms = 0
        try:
            self.tell(machine.on_timer)
        except ServiceFailed:
            self._back_off()
        else:
            if self._failures > failures:
                return  # in `_arm`, which has set the timer
            was_due = before is not None and before <= self.host.runtime.clock.mono_ms()
            if not was_due or self.machine is not machine or self._due != before:
                self._failures = 0
                return
            self._back_off()
            self.host.guard.misbehaved(
                machine.next_deadline, f"gives {before} before and after on_timer", "its timer is run more seldom"
            )
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._arm()

    def _back_off(self) -> int:
        """The timer failed: monotonic ms before which it is not to run again."""
        wait_ms = min(BACKOFF_MS << min(self._failures, 16), LONGEST_BACKOFF_MS)
        self._failures += 1
        self._not_before_ms = self.host.runtime.clock.mono_ms() + wait_ms
        return self._not_before_ms
