"""What every service promises: one answer for a request, state that comes from its log alone, and timers that end."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any, TypeVar

import pytest
from hypothesis import strategies as st

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import RequestContext, Service
from logkernel.errors import NotCoordinator, UnknownServerError
from logkernel.kernel import Kernel
from logkernel.testing.cluster_stub import ClusterStub
from logkernel.testing.contracts.kit import Kit, for_all, shown
from logkernel.testing.service_harness import START_MS, Reply, ServiceHarness
from logkernel.vocabulary import Record

Step = tuple[str, Any]
"""("ask", request), ("advance", ms), or ("restart" | "compact" | "fail" | "hold" | "commit", None)."""
T = TypeVar("T")
MOST_STEPS = 12


class ServiceContract(Kit[Service]):
    """`logkernel.contracts.Service`, run by `ServiceHarness`. `settings` are the broker's.

    Override `requests`, and where needed `cluster` and `respond`."""

    kind = "service"
    methods = ("machine", "split", "join", "refusal")
    shards: int = 2
    soft_state: bool = False
    """Whether answers depend on more than the log, such as sessions or waiting requests: then they may differ after a
    restart."""

    def provide(self, kernel: Kernel, name: str) -> Service:
        config = BrokerConfig.load(None, dict(self.settings), kernel.declarations())
        return kernel.service(name, config, self.cluster())

    def requests(self) -> st.SearchStrategy[Any]:
        """Return a strategy for the requests that the service answers."""
        pytest.skip("override `requests` to test how the service answers")

    def cluster(self) -> ClusterStub:
        """Return the cluster that the service sees."""
        return ClusterStub()

    def respond(self, request: Any) -> Any:
        """Return the broker's response to a request of `Decision.sends`, or None to leave it open."""
        return None

    # ------------------------------------------------------------ the service

    def test_it_is_declared(self) -> None:
        """A broker learns of a service by `logkernel_services`, before it makes it."""
        self.only_by_name()
        found = [one for one in self.kernel.services() if one.name == self.name]
        if not found:
            self.broken(f"logkernel_services declares no service {self.name!r}; return its ServiceDeclaration there")
        topic = found[0].topic
        if topic is not None and topic.partitions_setting not in self.config.definitions.broker:
            self.broken(
                f"its topic has as many partitions as the setting {topic.partitions_setting!r}, which nobody owns;"
                f" declare it in logkernel_settings"
            )

    @for_all(40, data=st.data(), shards=st.integers(1, 5))
    def test_parts_of_a_request_go_to_shards_that_exist(self, data: st.DataObject, shards: int) -> None:
        request = data.draw(self.requests())
        with self.calling("split()"):
            parts = list(self.make().split(request, shards))
        wrong = [row for row in parts if len(row) != 2 or type(row[0]) is not int or not 0 <= row[0] < shards]
        if wrong:
            self.broken(f"split() returned {shown(wrong[0])} for {shards} shards; return (shard, part) pairs")

    @for_all(30, data=st.data(), code=st.sampled_from([UnknownServerError.code, NotCoordinator.code, 3]))
    def test_any_request_can_be_refused(self, data: st.DataObject, code: int) -> None:
        """The broker refuses a request while its shard is loading, or led elsewhere."""
        request = data.draw(self.requests())
        with self.calling("refusal()"):
            found = self.make().refusal(request, code)
        if found is None:
            self.broken(f"refusal() returned None for {shown(request)}; return the response with the error code {code}")

    # ------------------------------------------------------------ its machines

    @for_all(50, data=st.data())
    def test_no_request_is_answered_twice_whatever_happens(self, data: st.DataObject) -> None:
        """Restarts, failed and late commits, compaction and time, in any order. The harness judges each decision."""
        faults = st.sampled_from(["restart", "compact", "fail", "hold", "commit"])
        steps = data.draw(self._steps(faults))
        self._play(self._harness(), [*steps, ("commit", None), ("advance", 1000)])

    @for_all(30, data=st.data())
    def test_equal_requests_give_equal_answers_and_logs(self, data: st.DataObject) -> None:
        """A machine has no clock, chance or state but its own."""
        steps = data.draw(self._steps())
        one, two = self._harness(), self._harness()
        told, again = self._play(one, steps), self._play(two, steps)
        if told != again or self._logs(one) != self._logs(two):
            self.broken(
                f"the same requests at the same times were answered with {shown(told)}, then {shown(again)}; depend on"
                f" the requests, times and ids that the machine gets"
            )

    @for_all(30, data=st.data())
    def test_deciding_changes_no_durable_state(self, data: st.DataObject) -> None:
        """Its records may never be appended. Only `replay` changes what later answers depend on."""
        self._skip_soft()
        harness = self._harness()
        self._play(harness, data.draw(self._steps()))
        request = data.draw(self.requests())
        rows = self._logs(harness)
        before = self._decided(rows, request, asked=1)
        after = self._decided(rows, request, asked=2)
        if before != after:
            self.broken(
                f"on_request() decides {shown(after)} for the second {shown(request)}, though nothing of the first"
                f" decision was replayed: {shown(before)}; change state in replay() alone"
            )

    @for_all(30, data=st.data())
    def test_a_restart_loses_nothing(self, data: st.DataObject) -> None:
        self._twins(data, ["restart"], "a restart", "keep durable state in the log")

    @for_all(30, data=st.data())
    def test_compaction_loses_nothing(self, data: st.DataObject) -> None:
        """Only the newest record of each key is left, and no tombstone."""
        self._twins(
            data, ["compact", "restart"], "compaction and a restart", "let the newest record of a key say all of it"
        )

    # ------------------------------------------------------------ steps

    def _skip_soft(self) -> None:
        if self.soft_state:
            pytest.skip("soft_state: answers depend on more than the log")

    def _steps(self, others: st.SearchStrategy[str] | None = None) -> st.SearchStrategy[list[Step]]:
        asks = st.tuples(st.just("ask"), self.requests())
        step = asks | asks | st.tuples(st.just("advance"), st.sampled_from([0, 1, 500, 5_000, 10**6]))
        return st.lists(step if others is None else step | st.tuples(others, st.none()), max_size=MOST_STEPS)

    def _harness(self) -> ServiceHarness:
        with self.calling("the machine's start"):
            return ServiceHarness(self.make(), self.cluster(), shards=self.shards, broker=self.respond)

    def _play(self, harness: ServiceHarness, steps: Sequence[Step]) -> list[Any]:
        """The answers, None where there is none yet."""
        replies: list[Reply] = []
        for step, value in steps:
            told = f"{step} {shown(value)}" if value is not None else step
            with self.calling(told, AssertionError):
                try:
                    self._step(harness, step, value, replies)
                except AssertionError as error:
                    self.broken(f"{told}: {error}")
        return [deepcopy(reply.response) if reply.done else None for reply in replies]

    def _step(self, harness: ServiceHarness, step: str, value: Any, replies: list[Reply]) -> None:
        if step == "ask":
            replies.append(harness.submit(deepcopy(value)))
        elif step == "advance":
            harness.advance(value)
        elif step == "hold":
            harness.hold_commits()
        elif step == "fail":
            harness.fail_append()
        else:
            getattr(harness, step)()

    def _logs(self, harness: ServiceHarness) -> list[list[Record]]:
        return [harness.log(shard) for shard in range(self.shards)]

    def _decided(self, logs: Sequence[Sequence[Record]], request: Any, *, asked: int) -> list[Any]:
        """The records that a machine with that log decides on for the last of so many equal requests."""
        service = self.make()
        ids = iter(range(1000))
        found = []
        for shard, part in service.split(deepcopy(request), self.shards):
            machine = service.machine(shard, lambda: f"id-{next(ids)}")
            for record in logs[shard]:
                machine.replay(record)
            machine.on_loaded(START_MS, 0)
            with self.calling("on_request()"):
                for ticket in range(asked):
                    decision = machine.on_request(deepcopy(part), RequestContext(), ticket, START_MS, 0)
            found.append([(record.key, record.value) for record in decision.records])
        return found

    def _twins(self, data: st.DataObject, faults: Sequence[str], what: str, remedy: str) -> None:
        """One goes on where the other meets faults; both have to answer alike afterwards."""
        self._skip_soft()
        first, later = data.draw(self._steps()), data.draw(self._steps())
        calm, struck = self._harness(), self._harness()
        self._play(calm, first)
        self._play(struck, [*first, *((fault, None) for fault in faults)])
        expected, found = self._play(calm, later), self._play(struck, later)
        if expected != found:
            self.broken(f"after {what} it answers {shown(found)} instead of {shown(expected)}; {remedy}")
