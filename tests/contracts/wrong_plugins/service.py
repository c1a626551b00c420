"""Services that break a promise. Each adds numbers to named sums."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from logkernel.contracts import Decision, ServiceDeclaration, ServiceTopic
from logkernel.hookspecs import hookimpl
from logkernel.vocabulary import Record
from wrong_plugins import Wrong


@dataclass
class AddRequest:
    name: str
    number: int


@dataclass
class AddResponse:
    total: int
    error_code: int = 0


class Sums:
    """A right machine: name → sum."""

    def __init__(self) -> None:
        self.sums: dict[str, int] = {}

    def on_request(self, request: AddRequest, context: Any, ticket: int, wall_ms: int, mono_ms: int) -> Decision:
        total = self.sums.get(request.name, 0) + request.number
        return self.decide(request, total, ticket)

    def decide(self, request: AddRequest, total: int, ticket: int) -> Decision:
        records = [Record(request.name.encode(), b"%d" % total)]
        return Decision(records=records, answers=[(ticket, AddResponse(total))])

    def replay(self, record: Record) -> None:
        assert record.key is not None
        self.sums[record.key.decode()] = int(record.value or 0)

    def next_deadline(self) -> int | None:
        return None

    def on_loaded(self, wall_ms: int, mono_ms: int) -> Decision:
        return Decision()

    on_timer = on_loaded


class Twice(Sums):
    def decide(self, request: AddRequest, total: int, ticket: int) -> Decision:
        decision = super().decide(request, total, ticket)
        decision.replies = decision.answers[:]
        return decision


class Ringing(Sums):
    def next_deadline(self) -> int | None:
        return 0


class Dice(Sums):
    def decide(self, request: AddRequest, total: int, ticket: int) -> Decision:
        return super().decide(request, total + random.randrange(1000), ticket)


class Hasty(Sums):
    """It changes its state before the record is appended."""

    def decide(self, request: AddRequest, total: int, ticket: int) -> Decision:
        self.sums[request.name] = total
        return super().decide(request, total, ticket)


class Volatile(Sums):
    """It appends nothing."""

    def decide(self, request: AddRequest, total: int, ticket: int) -> Decision:
        self.sums[request.name] = total
        return Decision(answers=[(ticket, AddResponse(total))])


class Deltas(Sums):
    """Its records say what was added."""

    def decide(self, request: AddRequest, total: int, ticket: int) -> Decision:
        records = [Record(request.name.encode(), b"%d" % request.number)]
        return Decision(records=records, answers=[(ticket, AddResponse(total))])

    def replay(self, record: Record) -> None:
        assert record.key is not None
        name = record.key.decode()
        self.sums[name] = self.sums.get(name, 0) + int(record.value or 0)


class Service:
    kind: type[Sums] = Sums

    def machine(self, shard: int, ids: Any) -> Any:
        return self.kind()

    def split(self, request: AddRequest, shards: int) -> Any:
        return [(len(request.name) % shards, request)]

    def join(self, request: Any, responses: Any, context: Any) -> Any:
        return responses[0]

    def refusal(self, request: Any, code: int) -> Any:
        return AddResponse(0, code)


class Lost(Service):
    def split(self, request: AddRequest, shards: int) -> Any:
        return [(len(request.name), request)]


class NoRefusal(Service):
    def refusal(self, request: Any, code: int) -> Any:
        """It never refuses."""


def requests(suite: Any) -> st.SearchStrategy[Any]:
    return st.builds(AddRequest, st.sampled_from(["a", "bb", "ccc"]), st.integers(1, 9))


def of(service: type[Service]) -> dict[str, Any]:
    return {"make": lambda suite: service(), "requests": requests}


def machines(kind: type[Sums]) -> dict[str, Any]:
    return of(type("Of", (Service,), {"kind": kind}))


class Plugin:
    """A service whose setting nobody owns."""

    declarations: tuple[ServiceDeclaration, ...] = ()

    @hookimpl
    def logkernel_service(self, name: str) -> Any:
        return Service() if name == "sums" else None

    @hookimpl
    def logkernel_services(self) -> Any:
        return self.declarations

    @hookimpl
    def logkernel_names(self) -> Any:
        return [("service", "sums")]


class Unowned(Plugin):
    declarations = (ServiceDeclaration("sums", ("AddRequest",), ServiceTopic("__sums", "sums.partitions", {})),)


WRONG = [
    Wrong("test_it_is_declared", "declares no service 'sums'", {"name": "sums", "plugins": [Plugin()]}),
    Wrong("test_it_is_declared", "'sums.partitions', which nobody owns", {"name": "sums", "plugins": [Unowned()]}),
    Wrong("test_parts_of_a_request_go_to_shards_that_exist", r"return \(shard, part\) pairs", of(Lost)),
    Wrong("test_any_request_can_be_refused", "return the response with the error code", of(NoRefusal)),
    Wrong(
        "test_no_request_is_answered_twice_whatever_happens",
        "ask AddRequest.*: no request waits under ticket",
        machines(Twice),
    ),
    Wrong("test_no_request_is_answered_twice_whatever_happens", "on_timer leaves a deadline", machines(Ringing)),
    Wrong("test_equal_requests_give_equal_answers_and_logs", "depend on the requests, times and ids", machines(Dice)),
    Wrong("test_deciding_changes_no_durable_state", r"change state in replay\(\) alone", machines(Hasty)),
    Wrong("test_a_restart_loses_nothing", "after a restart it answers", machines(Volatile)),
    Wrong("test_compaction_loses_nothing", "let the newest record of a key say all of it", machines(Deltas)),
]
