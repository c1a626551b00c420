"""Runs the machines of a service without a broker, as the broker's service host would.

    request ──▶ split ──▶ on_request ──▶ Decision
                                          │ records   appended to the shard's log, then replayed
                                          │ answers   leave when the records are committed ──▶ join ──▶ Reply
                                          │ replies   leave at once
                                          ▼ sends     leave with the answers; the test answers them ──▶ on_response

Records are committed at once, unless `hold_commits` was called. `fail_append` makes the next append fail. Time stands
still until `advance`. Nothing is random: ids are `id-1`, `id-2`, …
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any, Final

from logkernel.attrs_lite import evolve, mutable
from logkernel.contracts import (
    BulkMachine,
    ConnectionMachine,
    Decision,
    RequestContext,
    Service,
    ServiceMachine,
    TransactionalMachine,
)
from logkernel.errors import UnknownServerError
from logkernel.testing.cluster_stub import ClusterStub
from logkernel.vocabulary import Record

START_MS: Final = 1_700_000_000_000
"""Wall time at the start; monotonic time starts at 0."""
TURNS: Final = 1_000
"""Calls of a timer at one moment, after which it counts as endless."""


class Reply:
    """The reply to a request, now or later."""

    def __init__(self) -> None:
        self.done = False
        self._response: Any = None

    @property
    def response(self) -> Any:
        """The response. Raises `AssertionError` if the service has not answered yet."""
        if not self.done:
            raise AssertionError("the service has not answered yet; advance the time, or commit what is held")
        return self._response

    def _take(self, response: Any) -> None:
        if self.done:
            raise AssertionError(f"the service answered twice: {self._response!r}, then {response!r}")
        self.done, self._response = True, response


@mutable
class SentRequest:
    """A request that a machine sent to the broker (`Decision.sends`). Answer it with `ServiceHarness.respond`."""

    shard: int
    token: Any
    request: Any
    machine: ServiceMachine
    answered: bool = False


@mutable
class _Stored:
    """A record in a shard's log, or the marker that ends a producer's transaction."""

    record: Record | None
    producer: tuple[int, int] | None = None
    committed: bool = False
    """Of a marker: how the transaction ended."""


@mutable
class _Pending:
    """A part of a request without an answer yet."""

    shard: int
    part: Any
    take: Callable[[Any], None]


class _Shard:
    """One partition of the service's topic with its machine."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.machine: ServiceMachine
        self.stored: list[_Stored] = []
        self.next_offset = 0
        self.held: deque[tuple[ServiceMachine, Decision]] = deque()
        self.has_uncommitted = False


class ServiceHarness:
    """One service with all its shards.

    `broker` answers what the machines send: it gets each request and returns the response, or None to leave the request
    open. Open requests are in `sent`, for `respond`; without `broker`, all requests are.

    Methods raise `AssertionError` if a machine breaks its contract: an answer to a ticket that is not open, two answers
    to one ticket, no answer where one is asked for, a timer that does not move its deadline (a broker would run it less
    often) or that is always due.
    """

    def __init__(
        self,
        service: Service,
        cluster: ClusterStub | None = None,
        *,
        shards: int = 1,
        broker: Callable[[Any], Any] | None = None,
    ) -> None:
        self.service = service
        self.cluster = cluster if cluster is not None else ClusterStub()
        self.broker = broker
        self.sent: list[SentRequest] = []
        """Requests to the broker that nobody answered yet, in the order in which they were sent."""
        self.mono_ms = 0
        self._tickets = count(1)
        self._ids = count(1)
        self._pending: dict[int, _Pending] = {}
        self._holding = False
        self._failing: int | None = None
        self._shards = [_Shard(number) for number in range(shards)]
        self._work: deque[Callable[[], None]] = deque()
        self._running = False
        for shard in self._shards:
            self._load(shard)
        self._run()

    @property
    def wall_ms(self) -> int:
        return START_MS + self.mono_ms

    # ------------------------------------------------------------ requests

    def ask(self, request: Any, context: RequestContext | None = None) -> Any:
        """Return the response to a request. Raises `AssertionError` if the service does not answer at once."""
        return self.submit(request, context).response

    def submit(self, request: Any, context: RequestContext | None = None) -> Reply:
        """Submit a request; its reply may be answered later."""
        reply = Reply()
        context = context or RequestContext(client_id="harness", connection_id=1)
        parts = self.service.split(request, len(self._shards))
        if not parts:
            reply._take(self.service.join(request, (), context))
        elif len(parts) == 1 and parts[0][1] is request:
            self._ask(*parts[0], context, reply._take)
        else:
            responses: list[Any] = [None] * len(parts)
            left = [len(parts)]

            def gather(index: int, response: Any) -> None:
                responses[index] = response
                left[0] -= 1
                if not left[0]:
                    reply._take(self.service.join(request, responses, context))

            for index, (number, part) in enumerate(parts):
                self._ask(number, part, context, partial(gather, index))
        self._run()
        return reply

    def respond(self, sent: SentRequest, response: Any) -> None:
        """Answer a request of `sent`. A machine that was replaced since does not get the response."""
        if sent.answered:
            raise AssertionError(f"answered already: {sent}")
        sent.answered = True
        self.sent.remove(sent)
        self._hear(sent, response)
        self._run()

    # ------------------------------------------------------------ time

    def advance(self, ms: int) -> None:
        """Let time pass; call each machine's `on_timer` when its `next_deadline` is reached."""
        end = self.mono_ms + ms
        turns, at = 0, -1
        while (due := self.next_deadline()) is not None and due <= end:
            self.mono_ms = max(self.mono_ms, due)
            turns = turns + 1 if self.mono_ms == at else 1
            at = self.mono_ms
            if turns > TURNS:
                raise AssertionError(f"on_timer sets deadlines that are due, again and again: {due} ms")
            for shard in self._shards:
                machine = shard.machine
                deadline = machine.next_deadline()
                if deadline is not None and deadline <= self.mono_ms:
                    self._tell(shard, machine.on_timer)
                    if shard.machine is machine and machine.next_deadline() == deadline:
                        raise AssertionError(
                            f"on_timer leaves a deadline that is due: {deadline} ms at {self.mono_ms} ms"
                        )
            self._run()
        self.mono_ms = end

    def next_deadline(self) -> int | None:
        """Return the earliest deadline of all machines, in monotonic ms, or None."""
        found = [shard.machine.next_deadline() for shard in self._shards]
        return min((due for due in found if due is not None), default=None)

    # ------------------------------------------------------------ the cluster

    def create_topics(self, **topics: int) -> None:
        """Create topics, or add partitions to them, and tell every machine."""
        self.cluster.topics.update(topics)
        self._tell_all(lambda machine: machine.on_topics_changed, list(topics))

    def delete_topics(self, *topics: str) -> None:
        """Delete topics, and tell every machine."""
        for topic in topics:
            self.cluster.delete(topic)
        self._tell_all(lambda machine: machine.on_topics_deleted, list(topics))

    def disconnect(self, connection_id: int = 1, listener: str = "") -> None:
        """Tell the machines with `on_disconnected` that a connection was closed."""
        for shard in self._shards:
            if isinstance(shard.machine, ConnectionMachine):
                self._tell(shard, shard.machine.on_disconnected, listener, connection_id)
        self._run()

    # ------------------------------------------------------------ the log

    def log(self, shard: int = 0) -> list[Record]:
        """Return the records of a shard's log, in order."""
        return [stored.record for stored in self._shards[shard].stored if stored.record is not None]

    def hold_commits(self) -> None:
        """Append and replay records from now on without committing: answers and sends wait for `commit`."""
        self._holding = True

    def commit(self) -> None:
        """Commit held records, and later ones at once."""
        self._holding = False
        for shard in self._shards:
            shard.has_uncommitted = False
            while shard.held:
                machine, decision = shard.held.popleft()
                if machine is shard.machine:
                    self._committed(shard, decision)
        self._run()

    def fail_append(self, code: int = UnknownServerError.code) -> None:
        """Make the next append fail with a protocol error: the machine is rebuilt from its log, and pending requests
        are answered with `Service.refusal`."""
        self._failing = code

    def end_transaction(self, producer_id: int, producer_epoch: int, *, committed: bool, shard: int = 0) -> None:
        """Write the marker that ends a producer's transaction (`Decision.producer`) to a shard's log."""
        stored = _Stored(None, (producer_id, producer_epoch), committed)
        self._shards[shard].stored.append(stored)
        self._shards[shard].has_uncommitted = self._holding
        self._shards[shard].next_offset += 1
        _fold(self._shards[shard].machine, [stored])
        if self._holding:
            self._shards[shard].held.append((self._shards[shard].machine, Decision()))  # what follows rests on it

    def restart(self) -> None:
        """Crash, and restart from the logs. Waiting requests are never answered, and sends never responded to."""
        self._pending.clear()
        self.sent.clear()
        for shard in self._shards:
            shard.has_uncommitted = False
            self._load(shard)
        self._run()

    def compact(self) -> None:
        """Compact each shard's log: keep the newest record of each key, and no tombstones.

        Records of transactions are kept.
        """
        for shard in self._shards:
            newest = {s.record.key: s.record.offset for s in shard.stored if s.record is not None}
            shard.stored = [
                s
                for s in shard.stored
                if s.record is None
                or s.producer is not None
                or (s.record.value is not None and newest[s.record.key] == s.record.offset)
            ]

    # ------------------------------------------------------------ inside

    def _ask(self, number: int, part: Any, context: RequestContext, take: Callable[[Any], None]) -> None:
        ticket = next(self._tickets)
        self._pending[ticket] = _Pending(number, part, take)
        shard = self._shards[number]
        self._work.append(lambda: self._tell(shard, shard.machine.on_request, part, context, ticket))

    def _load(self, shard: _Shard) -> None:
        """Return a new machine that has read its log."""
        shard.held.clear()
        shard.machine = self.service.machine(shard.number, lambda: f"id-{next(self._ids)}")
        _fold(shard.machine, shard.stored)
        if shard.has_uncommitted:
            shard.held.append((shard.machine, Decision()))  # what follows rests on it
        self._tell(shard, shard.machine.on_loaded)

    def _tell_all(self, event: Callable[[ServiceMachine], Callable[..., Decision]], *facts: Any) -> None:
        for shard in self._shards:
            self._tell(shard, event(shard.machine), *facts)
        self._run()

    def _run(self) -> None:
        """Run events that came up within others, one after the other."""
        if self._running:
            return
        self._running = True
        try:
            while self._work:
                self._work.popleft()()
        finally:
            self._running = False

    def _tell(self, shard: _Shard, event: Callable[..., Decision], *facts: Any) -> None:
        decision = event(*facts, self.wall_ms, self.mono_ms)
        if decision.records and not self._append(shard, decision):
            return
        if shard.held or (self._holding and decision.records):  # what rests on held records waits for them
            shard.held.append((shard.machine, decision))
        else:
            self._committed(shard, decision)
        self._deliver(decision.replies)

    def _append(self, shard: _Shard, decision: Decision) -> bool:
        if self._failing is not None:
            code, self._failing = self._failing, None
            self._deliver(decision.replies)
            self._load(shard)
            for ticket, pending in [row for row in self._pending.items() if row[1].shard == shard.number]:
                self._deliver([(ticket, self.service.refusal(pending.part, code))])
            return False
        stored = []
        for record in decision.records:
            timestamp_ms = self.wall_ms if record.timestamp_ms < 0 else record.timestamp_ms
            kept = evolve(record, offset=shard.next_offset, timestamp_ms=timestamp_ms)
            stored.append(_Stored(kept, decision.producer))
            shard.next_offset += 1
        shard.stored += stored
        shard.has_uncommitted = self._holding
        _fold(shard.machine, stored)
        return True

    def _committed(self, shard: _Shard, decision: Decision) -> None:
        self._deliver(decision.answers)
        for token, request in decision.sends:
            sent = SentRequest(shard.number, token, request, shard.machine)
            self.sent.append(sent)
            if self.broker is not None:
                self._work.append(partial(self._put, sent))

    def _put(self, sent: SentRequest) -> None:
        assert self.broker is not None
        response = self.broker(sent.request)
        if response is not None and not sent.answered:
            sent.answered = True
            self.sent.remove(sent)
            self._hear(sent, response)

    def _hear(self, sent: SentRequest, response: Any) -> None:
        shard = self._shards[sent.shard]
        if sent.machine is shard.machine:
            self._tell(shard, shard.machine.on_response, sent.token, response)

    def _deliver(self, rows: Sequence[tuple[int, Any]]) -> None:
        for ticket, response in rows:
            pending = self._pending.pop(ticket, None)
            if pending is None:
                raise AssertionError(f"no request waits under ticket {ticket}: {response!r}")
            pending.take(response)


def _fold(machine: ServiceMachine, stored: Sequence[_Stored]) -> None:
    """Replay records of the log."""
    plain: list[Record] = []

    def flush() -> None:
        if isinstance(machine, BulkMachine):
            if plain:
                machine.replay_many(list(plain))
        else:
            for record in plain:
                machine.replay(record)
        plain.clear()

    for one in stored:
        if one.producer is None:
            assert one.record is not None
            plain.append(one.record)
            continue
        flush()
        if not isinstance(machine, TransactionalMachine):
            continue
        if one.record is None:
            machine.replay_marker(*one.producer, one.committed)
        else:
            machine.replay_pending(one.record, *one.producer)
    flush()
