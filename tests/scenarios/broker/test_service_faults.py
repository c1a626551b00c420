"""A service of a plugin that fails: it is named, `status` tells of it, and everybody else is served as before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

from logkernel.broker.build import build
from logkernel.broker.commands import status
from logkernel.broker.timers import Clock
from logkernel.contracts import Decision, ServiceDeclaration, ServiceTopic
from logkernel.embed import EmbeddedLog
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.requests.producers import InitProducerIdRequest, InitProducerIdResponse
from logkernel.vocabulary import Record


class Machine:
    """Answers each request by one record; `faults` says which of its methods raise."""

    def __init__(self, faults: set[str]) -> None:
        self.faults = faults
        self.folded: list[bytes | None] = []
        self.timers = 0
        self.deadline: int | None = None
        self.heard: list[str] = []

    def _fail(self, method: str) -> None:
        if method in self.faults:
            raise ZeroDivisionError(f"in {method}")

    def on_request(self, request: Any, context: Any, ticket: int, wall_ms: int, mono_ms: int) -> Decision:
        self._fail("on_request")
        self.heard.append("request")
        return Decision([Record(b"k", b"%d" % ticket)], answers=[(ticket, InitProducerIdResponse(0, 0, 7, 0))])

    def replay(self, record: Record) -> None:
        self._fail("replay")
        self.heard.append("replay")
        self.folded.append(record.value)

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        self._fail("on_loaded")
        return Decision()

    def on_timer(self, wall_ms: int, mono_ms: int) -> Decision:
        self.timers += 1
        self._fail("on_timer")
        return Decision()

    def on_response(self, token: Any, response: Any, wall_ms: int, mono_ms: int) -> Decision:
        return Decision()

    def on_topics_changed(self, topics: Any, wall_ms: int, mono_ms: int) -> Decision:
        self._fail("on_topics_changed")
        self.heard.append("topics changed")
        return Decision()

    def on_topics_deleted(self, topics: Any, wall_ms: int, mono_ms: int) -> Decision:
        self._fail("on_topics_deleted")
        return Decision()

    def next_deadline(self) -> int | None:
        self._fail("next_deadline")
        return self.deadline


class Ids:
    """A stranger's service, whose plugin is this object."""

    def __init__(self, *faults: str) -> None:
        self.faults = set(faults)
        self.machines: list[Machine] = []

    @hookimpl
    def logkernel_services(self) -> Iterable[ServiceDeclaration]:
        topic = ServiceTopic("__ids", "num.partitions", {"cleanup.policy": "compact"})
        return [ServiceDeclaration("ids", ("InitProducerIdRequest",), topic)]

    @hookimpl
    def logkernel_service(self, name: str, settings: Any, cluster: Any) -> Any:
        if name == "ids" and "service" in self.faults:
            raise ZeroDivisionError("in service")
        return self if name == "ids" else None

    def machine(self, shard: int, ids: Callable[[], str]) -> Machine:
        self.machines.append(Machine(self.faults))
        return self.machines[-1]

    def split(self, request: Any, shards: int) -> Any:
        return [(0, InitProducerIdRequest())]

    def join(self, request: Any, responses: Any, context: Any) -> Any:
        if "join" in self.faults:
            raise ZeroDivisionError("in join")
        return responses[0]

    def refusal(self, request: Any, code: int) -> Any:
        return InitProducerIdResponse(0, code, -1, -1)


class ManualClock(Clock):
    now_ms = 1_000_000

    def wall_ms(self) -> int:
        return self.now_ms

    def mono_ms(self) -> int:
        return self.now_ms


def embedded(service: Ids, clock: Clock | None = None) -> EmbeddedLog:
    kernel = Kernel(plugins=[service], block=["service-transactions"])
    settings = ["num.partitions=1"]
    return EmbeddedLog(build(None, settings, in_memory=True, kernel=kernel, clock=clock))


def asked(log: EmbeddedLog) -> int:
    return log.request(InitProducerIdRequest()).error_code


def told(log: EmbeddedLog) -> list[tuple[str, int]]:
    """(place, times) of each fault in `logkernel status`."""
    found: list[dict[str, Any]] = []
    status(log.broker, {}, found.append)
    return [(row["in"], row["times"]) for row in found[0]["plugins"]]


NOT_COORDINATOR, UNKNOWN_SERVER_ERROR = 16, -1


@pytest.mark.parametrize(
    ("fault", "place", "code"),
    [
        ("on_request", "service ids, on_request", UNKNOWN_SERVER_ERROR),
        ("join", "service ids, join", UNKNOWN_SERVER_ERROR),
        ("on_loaded", "service ids, on_loaded", NOT_COORDINATOR),
        ("replay", "service ids, _replay", NOT_COORDINATOR),
    ],
)
def test_a_request_that_fails_is_refused_and_the_plugin_named(
    fault: str, place: str, code: int, caplog: pytest.LogCaptureFixture
) -> None:
    service = Ids(fault)
    with embedded(service) as log:
        assert asked(log) == code
        assert (place, 1) in told(log)
        assert "plugin=Ids" in caplog.text
        assert "cannot be read" not in caplog.text
        log.create_topic("t")
        assert log.append("t", b"others are served").offset == 0
        service.faults.clear()
        assert asked(log) == 0


def test_what_was_appended_before_a_replay_failed_is_read_by_the_next_machine() -> None:
    service = Ids("replay")
    with embedded(service) as log:
        assert asked(log) == NOT_COORDINATOR
        service.faults.clear()
        assert asked(log) == 0
        assert len(service.machines[-1].folded) == 2


def test_a_timer_that_fails_runs_again_ever_more_seldom() -> None:
    clock, service = ManualClock(), Ids("on_timer")
    with embedded(service, clock) as log:
        asked(log)
        machine = service.machines[-1]
        machine.deadline = clock.now_ms
        asked(log)
        for _ in range(1000):
            clock.now_ms += 10
            log.step()
        assert 4 <= machine.timers <= 9
        assert ("service ids, on_timer", machine.timers) in told(log)
        service.faults.clear()
        assert asked(log) == 0


def test_a_deadline_that_is_always_due_does_not_stop_the_broker() -> None:
    clock, service = ManualClock(), Ids()
    with embedded(service, clock) as log:
        asked(log)
        machine = service.machines[-1]
        machine.deadline = 0
        assert asked(log) == 0
        for _ in range(1000):
            clock.now_ms += 10
            log.step()
        assert 4 <= machine.timers <= 9
        assert told(log) == [("service ids, next_deadline", machine.timers)]


def test_a_deadline_that_moved_on_is_no_fault() -> None:
    """The timer was set for the earlier one, and finds nothing to do."""
    clock, service = ManualClock(), Ids()
    with embedded(service, clock) as log:
        asked(log)
        machine = service.machines[-1]
        machine.deadline = clock.now_ms + 10
        asked(log)
        machine.deadline = clock.now_ms + 500
        asked(log)
        for _ in range(49):
            clock.now_ms += 10
            log.step()
        assert told(log) == []
        timers = machine.timers
        machine.deadline = None
        clock.now_ms += 10
        log.step()
        assert machine.timers <= timers + 1


def test_a_deadline_that_cannot_be_told_is_asked_for_again_ever_more_seldom() -> None:
    clock, service = ManualClock(), Ids("next_deadline")
    with embedded(service, clock) as log:
        assert asked(log) == 0
        for _ in range(1000):
            clock.now_ms += 10
            log.step()
        ((place, times),) = told(log)
        assert place == "service ids, next_deadline"
        assert 4 <= times <= 10
        service.faults.clear()
        clock.now_ms += 60_000
        log.step()
        machine = service.machines[-1]
        machine.deadline = clock.now_ms + 10
        asked(log)
        clock.now_ms += 10
        timers = machine.timers
        log.step()
        assert machine.timers == timers + 1


def test_requests_do_not_cut_the_back_off_of_a_timer_short() -> None:
    clock, service = ManualClock(), Ids("on_timer")
    with embedded(service, clock) as log:
        asked(log)
        machine = service.machines[-1]
        machine.deadline = clock.now_ms
        for _ in range(100):
            assert asked(log) == 0
            log.step()
        assert machine.timers == 1


def test_news_of_topics_that_a_service_fails_at_reach_the_others(caplog: pytest.LogCaptureFixture) -> None:
    service = Ids("on_topics_changed", "on_topics_deleted")
    with embedded(service) as log:
        asked(log)
        log.create_topic("t")
        log.delete_topic("t")
        assert {place for place, _ in told(log)} == {
            "service ids, on_topics_changed", "service ids, on_topics_deleted",
        }  # fmt: skip


def test_no_event_comes_between_a_decision_and_the_replay_of_its_records() -> None:
    service = Ids()
    with embedded(service) as log:
        asked(log)
        machine = service.machines[-1]
        log.create_topic("t")
        assert machine.heard[:2] == ["request", "replay"]
        assert "topics changed" in machine.heard


def test_a_service_that_cannot_be_made_is_named_and_its_requests_are_refused() -> None:
    with embedded(Ids("service")) as log:
        assert told(log) == []
        assert asked(log) == UNKNOWN_SERVER_ERROR
        assert [place for place, _ in told(log)] == ["logkernel_service"]
        log.create_topic("t")
        assert log.append("t", b"others are served").offset == 0
