"""A pure host for the groups machine: an in-memory log, a clock that is moved by hand, answers by ticket.

It does what the broker's shell does: append, replay, answer; where the append fails, refuse, and rebuild the
machine from the log. After every event it checks that what is durable in the machine is what its log folds to.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from group_checks import check_groups
from group_topics import Topics
from machine_host import MachineHost

from logkernel.contracts import Decision, RequestContext
from logkernel.plugins.services.groups import logkernel_service
from logkernel.requests.transactions import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopicResult,
)
from logkernel.vocabulary import Record

NEWEST = frozenset(
    {"member_id_required", "static_members", "skip_assignment", "group_not_found", "client_member_id", "member_epochs"}
)
OLD = frozenset({"static_members"})
"""Capabilities of a client that does not know MEMBER_ID_REQUIRED."""


class GroupHost(MachineHost):
    """One shard of the service in a host."""

    def __init__(self, settings: dict[str, Any] | None = None, group: str = "g") -> None:
        self.group_id = group
        self.settings = settings or {}
        self.topics = Topics({"orders": 4, "other": 2}, {"orders": UUID(int=77), "other": UUID(int=78)})
        self.log: list[Record] = []
        self.pending: dict[int, tuple[int, int]] = {}
        """Place in the log → (producer id, epoch) of the transaction that it belongs to."""
        self.markers: dict[int, tuple[int, int, bool]] = {}
        """Place in the log → (producer id, epoch, committed)."""
        self.sent: list[tuple[Any, Any]] = []
        """(token, request) that the machine asks others."""
        self.check_every = 1
        """Only every so many events what is durable is compared with what the log folds to."""
        self._events = 0
        self._topics_made = 0
        self.fail_next = 0
        """Error code with which the next append fails."""
        self.answers: dict[int, Any] = {}
        self.parked: dict[int, Any] = {}
        self._tickets = 0
        self._ids = 0
        self.load()

    def _next_id(self) -> str:
        self._ids += 1
        return f"id{self._ids}"

    def load(self) -> None:
        """Build the machine from the log alone."""
        self.service = logkernel_service(name="groups", settings=self.settings, cluster=self.topics)
        self.machine = self.service.machine(0, self._next_id)
        self.sent.clear()
        plain: list[Record] = []
        for place, record in enumerate(self.log):
            if place in self.markers or place in self.pending:
                self.machine.replay_many(plain)
                plain.clear()
                self.feed(self.machine, place)
            else:
                plain.append(record)
        self.machine.replay_many(plain)
        self.run(self.machine.on_loaded(self.wall_ms, self.mono_ms))

    def crash(self) -> None:
        """The broker is gone and comes back: connections, and so what was parked, are lost."""
        self.parked.clear()
        self.load()

    def run(self, decision: Decision) -> None:
        if decision.records and self.fail_next:
            self._fail(decision)
            return
        for record in decision.records:
            if decision.producer is not None:
                self.pending[len(self.log)] = decision.producer
            record.offset = len(self.log)
            self.log.append(record)
            self.feed(self.machine, record.offset)
        self.sent += decision.sends
        for ticket, response in [*decision.replies, *decision.answers]:
            self._deliver(ticket, response)
        self.check()

    def feed(self, machine: Any, place: int) -> None:
        """Replay what lies there."""
        if place in self.markers:
            machine.replay_marker(*self.markers[place])
        elif place in self.pending:
            machine.replay_pending(self.log[place], *self.pending[place])
        else:
            machine.replay(self.log[place])

    def end(self, producer_id: int, *, committed: bool, epoch: int = 0) -> None:
        """The marker that ends a producer's transaction is appended."""
        self.markers[len(self.log)] = (producer_id, epoch, committed)
        self.log.append(Record(offset=len(self.log)))
        self.feed(self.machine, len(self.log) - 1)
        self.check()

    def coordinator(self, code: int = 0) -> Any:
        """The transaction's coordinator answers what was asked first; gives what that was."""
        token, request = self.sent.pop(0)
        (asked,) = request.transactions
        rows = [AddPartitionsToTxnPartitionResult(index, code) for index in asked.topics[0].partitions]
        result = AddPartitionsToTxnResult("tx", [AddPartitionsToTxnTopicResult(asked.topics[0].name, rows)])
        response = AddPartitionsToTxnResponse(results_by_transaction=[result])
        self.run(self.machine.on_response(token, response, self.wall_ms, self.mono_ms))
        return asked

    def _fail(self, decision: Decision) -> None:
        code, self.fail_next = self.fail_next, 0
        for ticket, response in decision.replies:
            self._deliver(ticket, response)
        for ticket in list(self.parked):
            self._deliver(ticket, self.service.refusal(self.parked[ticket], code))
        self.load()

    def _deliver(self, ticket: int, response: Any) -> None:
        assert ticket in self.parked, f"ticket {ticket} is answered twice"
        del self.parked[ticket]
        self.answers[ticket] = response

    def send(self, request: Any, capabilities: frozenset[str] = NEWEST, client_id: str = "c") -> int:
        self._tickets += 1
        ticket = self._tickets
        self.parked[ticket] = request
        context = RequestContext(client_id, "10.0.0.1", capabilities=capabilities)
        self.run(self.machine.on_request(request, context, ticket, self.wall_ms, self.mono_ms))
        return ticket

    def ask(self, request: Any, capabilities: frozenset[str] = NEWEST) -> Any:
        """The answer, which must come at once."""
        return self.answers.pop(self.send(request, capabilities))

    def add_topic(self, name: str, partitions: int) -> None:
        """A topic that comes, or grows."""
        self.topics.partitions[name] = partitions
        self.topics.ids.setdefault(name, UUID(int=self._next_topic()))
        self.run(self.machine.on_topics_changed([name], self.wall_ms, self.mono_ms))

    def _next_topic(self) -> int:
        self._topics_made += 1
        return 1_000 + self._topics_made

    def drop_topic(self, name: str) -> None:
        del self.topics.partitions[name]
        del self.topics.ids[name]
        self.run(self.machine.on_topics_deleted([name], self.wall_ms, self.mono_ms))

    def check(self) -> None:
        self._events += 1
        if self._events % self.check_every:
            return
        fresh = self.service.machine(0, self._next_id)
        for place in range(len(self.log)):
            self.feed(fresh, place)
        check_groups(self.machine, fresh, self.parked)
