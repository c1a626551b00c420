"""One service with all its shards on this broker.

A shard's machine is loaded by replaying its partition, at the first request that concerns it or soon after start; in a
cluster by the broker that leads its partition, in turns (`loading`). Where the log cannot be read, or the machine fails
at what it reads, there is no shard: requests are refused with NOT_COORDINATOR, and the next one tries again. What a
service's own code may cost is tabulated in `guard.py`.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from itertools import count
from typing import TYPE_CHECKING, Any

from logkernel.broker.pending_response import PendingResponse
from logkernel.broker.service_host.guard import ServiceFailed, ServiceGuard
from logkernel.broker.service_host.lent import Lent
from logkernel.broker.service_host.shard_set import ShardSet
from logkernel.contracts import Answer, ConnectionMachine, RequestContext, Service, ServiceDeclaration
from logkernel.errors import (
    CoordinatorLoadInProgress,
    CoordinatorNotAvailable,
    KafkaError,
    NotCoordinator,
    UnknownServerError,
)
from logkernel.vocabulary import Record, TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.replicas.leader_replica import LeaderReplica
    from logkernel.broker.service_host.shard import Shard

log = logging.getLogger("logkernel.services")

COMMIT_TIMEOUT_MS = 5_000
"""Of services that name no setting for it."""
ASK_AGAIN_MS = 100
"""In a cluster: a service that asks another one, whose shard is on its way, asks again after so long."""


class ServiceHost:
    """Lends each shard a partition of the service's topic, and puts requests and their answers together."""

    def __init__(self, lent: Lent, declared: ServiceDeclaration, shards: ShardSet) -> None:
        """`shards` are those of all services that keep their state in the same topic."""
        self.runtime = lent.runtime
        self.turn = lent.turn
        self.submit = lent.submit
        self.declared = declared
        self.guard = ServiceGuard(lent.runtime, declared.name)
        self._lent = lent
        self.shards = shards
        self.is_led = lent.governance.is_shared and declared.topic is not None
        """Whether a shard is here only while its partition is led here."""
        setting = "" if declared.topic is None else declared.topic.commit_timeout_setting
        self.commit_timeout_ms = int(lent.runtime.config.get(setting)) if setting else COMMIT_TIMEOUT_MS
        self._shards = shards.add(self)
        """Those of this service that are loaded; `shards` alone changes it."""
        self._tickets: dict[int, tuple[Any, Callable[[Any], None], int]] = {}
        """Ticket → part of a request, where its response goes, shard."""
        self._next = count(1)

    @cached_property
    def service(self) -> Service:
        """Made at the first request or when shards are loaded, not at start: services are large. Raises
        `ServiceFailed`."""
        make = self.runtime.kernel.service
        service = self.guard.call(
            "its requests are refused", make, self.declared.name, self.runtime.config, self._lent.cluster
        )
        self.guard.made(service)
        return service

    def new_id(self) -> str:
        """A unique string, for members of groups and the like."""
        return str(self.runtime.random.uuid())

    @property
    def shard_count(self) -> int:
        topic = self.declared.topic
        if topic is None:
            return 1
        known = self._lent.cluster.partition_count(topic.name)
        return known if known else int(self.runtime.config.get(topic.partitions_setting))

    @property
    def loaded(self) -> Mapping[int, Shard]:
        """The shards that are loaded; read-only."""
        return self._shards

    def replica(self, shard: int) -> LeaderReplica | None:
        """Return the shard's partition if it exists."""
        topic = self.declared.topic
        return None if topic is None else self._lent.replicas.led.get((topic.name, shard))

    def is_offline(self, shard: int) -> bool:
        """The shard's partition is there, but what it holds cannot be known."""
        topic = self.declared.topic
        return topic is not None and self._lent.replicas.is_offline(topic.name, shard)

    def writable(self, shard: int) -> LeaderReplica:
        """The shard's partition; the topic is created when it is first written."""
        topic = self.declared.topic
        assert topic is not None, f"service {self.declared.name} keeps records but has no topic"
        replica = self.replica(shard)
        if replica is None:
            self._lent.governance.create_internal(topic.name)
            replica = self._lent.replicas.get(TopicPartition(topic.name, shard))
        return replica

    def shard(self, number: int) -> Shard:
        """The shard, loaded. Raises as `ShardSet.get`."""
        return self._shards.get(number) or self.shards.get(self, number)

    def rebuild(self, shard: Shard, error_code: int) -> None:
        self.shards.rebuild(self, shard, error_code)

    def unload(self, number: int, error: Exception) -> None:
        self.shards.unload(self, number, error)

    def is_there(self, shard: Shard) -> bool:
        return self._shards.get(shard.number) is shard

    def handle(self, request: Any, context: RequestContext, answer: Answer) -> None:
        service = self.service
        parts = self.guard.call("its request is refused", service.split, request, self.shard_count)
        if self.is_led and type(request).__name__ in self.declared.asks_all:
            parts = [part for part in parts if self.replica(part[0]) is not None]
        if not parts:
            answer(self.joined(request, (), context))
            return
        if len(parts) == 1:
            number, part = parts[0]
            take = answer if part is request else partial(self._joined, request, context, answer)
            self._ask(number, part, context, take)
            return
        pending = PendingResponse(lambda found: answer(self.joined(request, found, context)), [None] * len(parts))
        for index, (number, part) in enumerate(parts):
            self._ask(number, part, context, _slot(pending, index))
        pending.part_done()

    def _joined(self, request: Any, context: RequestContext, answer: Answer, response: Any) -> None:
        answer(self.joined(request, (response,), context))

    def joined(self, request: Any, responses: Sequence[Any], context: RequestContext) -> Any:
        """The whole answer of a request's parts. Where the service fails at it, its refusal of the request."""
        service = self.service
        try:
            return self.guard.call("its request is refused", service.join, request, responses, context)
        except ServiceFailed:
            return self.refusal(request, UnknownServerError.code)

    def refusal(self, request: Any, code: int) -> Any:
        """The service's refusal of a request. Raises `ServiceFailed`."""
        return self.guard.call("its client hears nothing", self.service.refusal, request, code)

    def _ask(
        self, number: int, part: Any, context: RequestContext, take: Callable[[Any], None], since_ms: int | None = None
    ) -> None:
        """`since_ms`: when a part that is asked for again was asked for first (monotonic)."""
        if context.internal and not context.commands and self.is_led and self._forwarded(number, part, take):
            return
        ticket = next(self._next)
        self._tickets[ticket] = (part, take, number)
        try:
            shard = self._shards.get(number) or self.shard(number)
            shard.tell(shard.machine.on_request, part, context, ticket)
        except (NotCoordinator, CoordinatorLoadInProgress, CoordinatorNotAvailable) as error:
            if not (self._may_wait(context, error) and self._ask_later(ticket, context, since_ms)):
                self.refuse([ticket], error.code)
        except ServiceFailed:
            self.refuse([ticket], UnknownServerError.code)
        except Exception:
            log.exception("service failed: service=%s request=%s", self.declared.name, type(part).__name__)
            self.refuse([ticket], UnknownServerError.code)

    def _may_wait(self, context: RequestContext, error: KafkaError) -> bool:
        """Clients look for a coordinator again by themselves, services do not: the topic is created, its leader elected
        or the shard loaded meanwhile. A broker that asks a shard which is not here has to ask elsewhere."""
        elsewhere = context.commands and isinstance(error, NotCoordinator)
        return self.is_led and context.internal and not elsewhere

    def _ask_later(self, ticket: int, context: RequestContext, since_ms: int | None) -> bool:
        """Return False once the request has waited too long."""
        now = self.runtime.clock.mono_ms()
        since = now if since_ms is None else since_ms
        if now - since >= self.commit_timeout_ms:
            return False
        part, take, number = self._tickets.pop(ticket)
        self.runtime.after(ASK_AGAIN_MS, lambda: self._ask(number, part, context, take, since))
        return True

    def _forwarded(self, number: int, part: Any, take: Callable[[Any], None]) -> bool:
        """Whether another broker leads the shard, and was asked."""
        topic, forward = self.declared.topic, self._lent.governance.forward
        assert topic is not None, f"service {self.declared.name} has no topic"
        leader = self._lent.cluster.leader(topic.name, number)
        if forward is None or leader is None or leader == self.runtime.node_id:
            return False

        def done(response: Any) -> None:
            if response is None:
                with contextlib.suppress(ServiceFailed):
                    response = self.refusal(part, NotCoordinator.code)
            take(response)

        forward(leader, part, done)
        return True

    def deliver(self, answers: list[tuple[int, Any]]) -> None:
        for ticket, response in answers:
            entry = self._tickets.pop(ticket, None)
            if entry is not None:
                entry[1](response)

    def disconnected(self, listener: str, connection_id: int) -> None:
        for shard in list(self._shards.values()):
            machine = shard.machine
            if not isinstance(machine, ConnectionMachine):
                return  # nor are the service's others
            shard.inform(machine.on_disconnected, listener, connection_id)

    def replay_control(self, shard: int, producer_id: int, producer_epoch: int, records: Sequence[Record]) -> None:
        """A marker was appended to a shard's log, not by its machine. A shard that is not loaded will read it."""
        if shard in self._shards:
            try:
                self._shards[shard].replay_control(producer_id, producer_epoch, records)
                self._shards[shard].knows_until(records[-1].offset + 1)
            except ServiceFailed as error:
                self.unload(shard, error)

    def refuse_shard(self, shard: int, code: int) -> None:
        self.refuse([ticket for ticket, entry in self._tickets.items() if entry[2] == shard], code)

    def refuse(self, tickets: list[int], code: int) -> None:
        for ticket in tickets:
            entry = self._tickets.pop(ticket, None)
            if entry is not None:
                entry[1](self.refusal(entry[0], code))


def _slot(pending: PendingResponse[list[Any]], index: int) -> Callable[[Any], None]:
    """Where the response to a part of a request goes."""

    def take(response: Any) -> None:
        pending.response[index] = response
        pending.part_done()

    pending.open_parts += 1
    return take
