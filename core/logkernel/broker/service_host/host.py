"""Hosts services: lends each shard a partition of the service's topic, and runs its decisions.

A shard's machine is loaded by replaying its partition, at the first request that concerns it or soon
after start. A decision's records are appended as one batch, replayed at the local append, and its
answers leave at commit; where the append fails, the machine is rebuilt from the log. Where the log cannot be read
no shard is there: whoever asks is refused with NOT_COORDINATOR, and the next request tries again.
"""

from __future__ import annotations

import contextlib
import logging
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING, Any

from logkernel.attrs_lite import mutable
from logkernel.broker.service_host.replay import load
from logkernel.contracts import (
    Answer,
    BulkMachine,
    ColumnarMachine,
    ConnectionMachine,
    Decision,
    Extension,
    RequestContext,
    Service,
    ServiceDeclaration,
    ServiceMachine,
    TransactionalMachine,
)
from logkernel.errors import KafkaError, NotCoordinator, UnknownServerError
from logkernel.partition.effects import Outcome
from logkernel.record.control import parse_marker
from logkernel.record.loops import Columns
from logkernel.record.validate import own_batch
from logkernel.vocabulary import BatchFacts, Record, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.broker.replicas.replica import Replica
    from logkernel.broker.timers import Timer

log = logging.getLogger("logkernel.services")

LOAD_ALL_AFTER_MS = 5_000
"""Shards that no request has touched are loaded this long after start, for their timers' sake."""
LOAD_TURN_MS = 10
"""After so long, requests come before the next such shard."""
READ_AGAIN_MS = 60_000
"""A log that could not be read is tried again after so long, if no request does it before."""


def member_suffix() -> str:
    return str(uuid.uuid4())


@mutable
class _Commit:
    """The ticket of a decision's records."""

    _shard: Shard
    _machine: ServiceMachine
    _decision: Decision

    def appended(self, base_offset: int) -> None:
        shard, records, producer = self._shard, self._decision.records, self._decision.producer
        for offset, record in enumerate(records, base_offset):
            record.offset = offset
        shard.replay(records, producer)
        if producer is None:
            for other in shard.sharing:
                other.replay(records, None)

    def deliver(self, outcome: Outcome) -> None:
        if outcome.error_code:
            self._shard.failed(self._decision, outcome)
        elif self._machine is self._shard.machine:  # else whoever waited was refused when it was replaced
            self._shard.settled(self._decision)


class Shard:
    """One partition of a service: its machine, its timer."""

    def __init__(self, host: ServiceHost, number: int) -> None:
        self.host = host
        self.number = number
        self.sharing: Sequence[Shard] = ()
        """Those of other services that keep their state in the same log: they fold what is appended as well."""
        self._timer: Timer | None = None
        self.machine: ServiceMachine
        self._bulk: BulkMachine | None
        self._columnar: ColumnarMachine | None
        self._begun = 0
        self._done = 0
        """Appends of this machine that were begun, and those of them that are committed; in the log's order."""
        self._held: deque[tuple[int, Decision]] = deque()
        """Decisions without records, each with the number of appends whose commit it waits for."""
        self.renew()

    def renew(self) -> None:
        """Begin with a fresh machine, which `load` then brings up to the log's end."""
        self.machine = machine = self.host.service.machine(self.number, member_suffix)
        self._bulk = machine if isinstance(machine, BulkMachine) else None
        self._columnar = machine if isinstance(machine, ColumnarMachine) else None
        self._begun = self._done = 0
        self._held.clear()

    def replay_batch(self, facts: BatchFacts, records: Sequence[Record]) -> None:
        """Fold a batch as the log has it."""
        if facts.is_control:
            self.replay_control(facts.producer_id, facts.producer_epoch, records)
        else:
            self.replay(records, (facts.producer_id, facts.producer_epoch) if facts.is_transactional else None)

    def replay(self, records: Sequence[Record], producer: tuple[int, int] | None) -> None:
        """Fold records that lie in the log, all of one producer's transaction or of none."""
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
        return self._columnar is not None and self._columnar.replay_columns(columns)

    def replay_control(self, producer_id: int, producer_epoch: int, records: Sequence[Record]) -> None:
        """Fold a control batch: how a transaction that wrote here ended."""
        if not isinstance(self.machine, TransactionalMachine):
            return
        for record in records:
            marker = parse_marker(record)
            if marker is not None:
                self.machine.replay_marker(producer_id, producer_epoch, marker.committed)

    def tell(self, event: Callable[..., Decision], *facts: Any) -> None:
        """Hand an event to the machine, e.g. `machine.on_request` with its request, and carry out what it decides.

        Append and replay before anything is answered: an answer may bring the next request at once. What is decided
        without a record may rest on records that are not committed yet, so it waits for them.
        """
        clock = self.host.broker.clock
        wall_ms, mono_ms = clock.wall_ms(), clock.mono_ms()
        decision = event(*facts, wall_ms, mono_ms)
        if decision.records:
            self._begun += 1
            self._append(decision, wall_ms, mono_ms)
        elif self._done < self._begun:
            self._held.append((self._begun, decision))
        else:
            self.committed(decision)
        if decision.replies:
            self.host.deliver(decision.replies)
        self._arm()

    def settled(self, decision: Decision) -> None:
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
        machine, broker = self.machine, self.host.broker
        if isinstance(machine, TransactionalMachine):
            self._make_log()

        def heard(response: Any) -> None:
            if self.machine is not machine:
                return
            try:
                self.tell(machine.on_response, token, response)
            except Exception:  # it must not end the event of somebody else, in whose course it came
                log.exception("service failed: service=%s answer=%s", self.host.declared.name, type(response).__name__)

        context = RequestContext(client_id=f"service-{self.host.declared.name}", internal=True)
        broker.soon(lambda: broker.submit(request, context, lambda response: broker.soon(lambda: heard(response))))

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
        replica.store(checked, -1, commit, wall_ms, mono_ms + self.host.commit_timeout_ms, guard)

    def failed(self, decision: Decision, outcome: Outcome) -> None:
        """Nothing of the decision holds: start again from the log, and refuse all who waited on this machine."""
        log.error(
            "service append failed: service=%s shard=%d error_code=%d",
            self.host.declared.name,
            self.number,
            outcome.error_code,
        )
        if not self.is_there:
            return
        self.renew()
        try:
            load([self])
        except Exception as error:
            self.host.unload(self.number, error)
        self.host.refuse_shard(self.number, outcome.error_code)

    @property
    def is_there(self) -> bool:
        """False once its log could not be read: nobody may be answered from what it knows."""
        return self.host.is_there(self)

    def retire(self) -> None:
        """It is not there any more: what is under way comes back to nobody."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.renew()

    def _arm(self) -> None:
        due = self.machine.next_deadline()
        timer = self._timer
        if timer is not None and (due is None or timer.action is None or due < timer.when_ms):
            timer.cancel()
            self._timer = timer = None
        if due is not None and timer is None:
            self._timer = self.host.broker.timers.at(due, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        if self.is_there:
            self.tell(self.machine.on_timer)


class ServiceHost:
    """One service with all its shards on this broker."""

    def __init__(self, broker: Broker, declared: ServiceDeclaration) -> None:
        self.broker = broker
        self.declared = declared
        self.commit_timeout_ms = 5_000
        self._shards: dict[int, Shard] = {}
        self._unread: dict[int, Timer] = {}
        """Shards whose log could not be read, and when each is tried again."""
        self._tickets: dict[int, tuple[Any, Callable[[Any], None], int]] = {}
        """Ticket → part of a request, where its response goes, shard."""
        self._next = count(1)

    @cached_property
    def service(self) -> Service:
        """Made at the first request or when shards are loaded, not at start: services are large."""
        return self.broker.kernel.service(self.declared.name, self.broker.config, self.broker.cluster)

    @property
    def shard_count(self) -> int:
        topic = self.declared.topic
        if topic is None:
            return 1
        known = self.broker.cluster.partition_count(topic.name)
        return known if known else int(self.broker.config.get(topic.partitions_setting))

    def replica(self, shard: int) -> Replica | None:
        """The shard's partition where it exists."""
        topic = self.declared.topic
        return None if topic is None else self.broker.replicas.get((topic.name, shard))

    def is_offline(self, shard: int) -> bool:
        """The shard's partition is there, but what it holds cannot be known."""
        topic = self.declared.topic
        return topic is not None and self.broker.logs.is_offline(topic.name, shard)

    def writable(self, shard: int) -> Replica:
        """The shard's partition; the topic is created when it is first written."""
        topic = self.declared.topic
        assert topic is not None, f"service {self.declared.name} keeps records but has no topic"
        replica = self.replica(shard)
        if replica is None:
            self.broker.metadata.create_internal(topic.name)
            replica = self.broker.replica(TopicPartition(topic.name, shard))
        return replica

    def shard(self, number: int) -> Shard:
        """The shard, loaded; with those of other services that keep their state in the same log, to read it once.

        Raises `NotCoordinator` where the log cannot be read.
        """
        shard = self._shards.get(number)
        if shard is None:
            found = [Shard(host, number) for host in self.broker.sharing(self)]
            for one in found:
                one.sharing = [other for other in found if other is not one]
                one.host._shards[number] = one
            shard = found[0]
            try:
                load(found)
            except Exception as error:
                self.unload(number, error)
            if not self.is_there(shard):
                raise NotCoordinator(f"service {self.declared.name}: the log of shard {number} cannot be read")
        return shard

    def unload(self, number: int, error: Exception) -> None:
        """A shard's log cannot be read: neither it nor those that share the log are there, and who waits is refused."""
        log.log(
            logging.DEBUG if number in self._unread else logging.ERROR,  # whoever asks meanwhile tries it anew
            "shard not loaded, its log cannot be read: service=%s shard=%d error=%s",
            self.declared.name, number, error, exc_info=not isinstance(error, (KafkaError, OSError)),
        )  # fmt: skip
        sharing = self.broker.sharing(self)
        for shard in [host._shards.pop(number) for host in sharing if number in host._shards]:
            shard.retire()
        for host in sharing:
            host.refuse_shard(number, NotCoordinator.code)
        if number not in self._unread:
            again_ms = self.broker.clock.mono_ms() + READ_AGAIN_MS
            self._unread[number] = self.broker.timers.at(again_ms, partial(self._read_again, number))

    def _read_again(self, number: int) -> None:
        del self._unread[number]
        self.load_next()

    def is_there(self, shard: Shard) -> bool:
        return self._shards.get(shard.number) is shard

    def load_next(self) -> bool:
        """Load a shard that has a log and that nobody asked for so far; False where there is none.

        A service that answers no requests begins with an empty log. A log that could not be read is left for later.
        """
        for number in range(self.shard_count):
            new = number not in self._shards and number not in self._unread
            if new and (self.replica(number) is not None or not self.declared.requests):
                with contextlib.suppress(NotCoordinator):
                    self.shard(number)
                return True
        return False

    def load_all(self) -> None:
        """As far as their logs can be read."""
        for timer in self._unread.values():
            timer.cancel()
        self._unread.clear()
        while self.load_next():
            pass

    def handle(self, request: Any, context: RequestContext, answer: Answer) -> None:
        parts = self.service.split(request, self.shard_count)
        if not parts:
            answer(self.service.join(request, (), context))
            return
        if len(parts) == 1:
            number, part = parts[0]
            take = answer if part is request else partial(self._joined, request, context, answer)
            self._ask(number, part, context, take)
            return
        gather = _Gather(self, request, context, answer, len(parts))
        for index, (number, part) in enumerate(parts):
            self._ask(number, part, context, gather.slot(index))

    def _joined(self, request: Any, context: RequestContext, answer: Answer, response: Any) -> None:
        answer(self.service.join(request, (response,), context))

    def _ask(self, number: int, part: Any, context: RequestContext, take: Callable[[Any], None]) -> None:
        ticket = next(self._next)
        self._tickets[ticket] = (part, take, number)
        try:
            shard = self._shards.get(number) or self.shard(number)
            shard.tell(shard.machine.on_request, part, context, ticket)
        except NotCoordinator as error:
            self.refuse([ticket], error.code)
        except Exception:
            log.exception("service failed: service=%s request=%s", self.declared.name, type(part).__name__)
            self.refuse([ticket], UnknownServerError.code)

    def deliver(self, answers: list[tuple[int, Any]]) -> None:
        for ticket, response in answers:
            entry = self._tickets.pop(ticket, None)
            if entry is not None:
                entry[1](response)

    def topics_deleted(self, topics: list[str]) -> None:
        """Every shard hears of it, those that no request has touched too: a topic made anew starts afresh."""
        self.load_all()
        for shard in list(self._shards.values()):
            shard.tell(shard.machine.on_topics_deleted, topics)

    def foreign(self, topics: Iterable[str]) -> list[str]:
        """Those of `topics` that are not the service's own."""
        own = self.declared.topic.name if self.declared.topic else None
        return [topic for topic in topics if topic != own]

    def topics_changed(self, topics: list[str]) -> None:
        """Only shards that are loaded hear of it: the others will see the cluster as it is then."""
        for shard in list(self._shards.values()):
            shard.tell(shard.machine.on_topics_changed, topics)

    def disconnected(self, listener: str, connection_id: int) -> None:
        for shard in list(self._shards.values()):
            machine = shard.machine
            if not isinstance(machine, ConnectionMachine):
                return  # nor are the service's others
            shard.tell(machine.on_disconnected, listener, connection_id)

    def replay_control(self, shard: int, producer_id: int, producer_epoch: int, records: Sequence[Record]) -> None:
        """A marker was appended to a shard's log, not by its machine. A shard that is not loaded will read it."""
        if shard in self._shards:
            self._shards[shard].replay_control(producer_id, producer_epoch, records)

    def refuse_shard(self, shard: int, code: int) -> None:
        self.refuse([ticket for ticket, entry in self._tickets.items() if entry[2] == shard], code)

    def refuse(self, tickets: list[int], code: int) -> None:
        for ticket in tickets:
            entry = self._tickets.pop(ticket, None)
            if entry is not None:
                entry[1](self.service.refusal(entry[0], code))


class _Gather:
    """Collects the responses of a request's parts."""

    __slots__ = ("_answer", "_context", "_host", "_missing", "_request", "_responses")

    def __init__(self, host: ServiceHost, request: Any, context: RequestContext, answer: Answer, parts: int) -> None:
        self._host = host
        self._request = request
        self._context = context
        self._answer = answer
        self._responses: list[Any] = [None] * parts
        self._missing = parts

    def slot(self, index: int) -> Callable[[Any], None]:
        def take(response: Any) -> None:
            self._responses[index] = response
            self._missing -= 1
            if not self._missing:
                self._answer(self._host.service.join(self._request, self._responses, self._context))

        return take


def extended(
    owner: ServiceHost, extensions: Sequence[ServiceHost], request: Any, context: RequestContext, answer: Answer
) -> None:
    """Ask the owner, then each extension in turn; the last response is the answer."""
    if not extensions:
        owner.handle(request, context, answer)
        return
    *others, last = extensions

    def owned(response: Any) -> None:
        service = last.service
        assert isinstance(service, Extension), f"service {last.declared.name} declares `extends` but has no `extend`"
        last.handle(request, context, lambda own: answer(service.extend(request, response, own, context)))

    extended(owner, others, request, context, owned)
