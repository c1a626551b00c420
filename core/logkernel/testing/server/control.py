"""The control port: what a `Kafka` or a `KafkaCluster` can do, over HTTP. docs/testing-other-languages.md has the table
of calls.

Bodies and answers are JSON; `answers` says what a failed call is answered with.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final

from werkzeug.exceptions import HTTPException, NotFound
from werkzeug.routing import Map, Rule
from werkzeug.wrappers import Request, Response

from logkernel.errors import ConfigError, GroupIdNotFound, UnknownTopicOrPartition
from logkernel.testing.kafka.apis import check_api
from logkernel.testing.kafka.faults import Fault, Faults
from logkernel.testing.kafka.matching import ANYTHING
from logkernel.testing.kafka.security import SPELLINGS
from logkernel.testing.server.answers import answer, failed, refused, told
from logkernel.testing.server.body import Fields, Query, parse
from logkernel.testing.server.rows import (
    expected,
    fault_row,
    plain,
    record_row,
    request_row,
    written,
)

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIEnvironment

    from logkernel.testing.kafka.cluster import KafkaCluster
    from logkernel.testing.kafka.kafka import Kafka

MOST_WITHIN_S: Final = 600.0
MOST_RECORDS: Final = 10_000
MOST_REQUESTS: Final = 1_000
MOST_BYTES: Final = 4 << 20
"""About so much of records is in one answer."""
MOST_SNAPSHOTS: Final = 100
MOST_PARTITION: Final = 2**31 - 1
MOST_OFFSET: Final = 2**63 - 1
MOST_FITTED: Final = 1_000_000
MOST_DAYS: Final = 36_500.0
ISOLATIONS: Final = ("read_committed", "read_uncommitted")
UNITS: Final = {"days": 1.0, "hours": 24.0, "minutes": 1_440.0, "seconds": 86_400.0, "ms": 86_400_000.0}
"""How many of each are in a day."""


class Control(ABC):
    """The WSGI application, without what is said of brokers. Requests may come on many threads."""

    routes: ClassVar[Map]
    """Path and method → the name of a method here."""
    stopped: ClassVar[str]
    """What is said where no broker runs."""
    elsewhere: ClassVar[tuple[tuple[str, ...], str]]
    """Beginnings of paths that the other kind of server has, and what is said of them."""

    def __init__(self, kafka: Kafka | KafkaCluster) -> None:
        """`kafka` is in this process."""
        assert isinstance(kafka.faults, Faults)
        self._kafka = kafka
        self._asked = kafka.faults
        self._life = threading.RLock()
        """Held while the broker is stopped or started."""
        self._faults: dict[int, Fault] = {}
        self._next_fault = 1
        self._snapshots: dict[str, Any] = {}
        for fault in self._asked.made:
            self._number(fault)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return self._answer(Request(environ))(environ, start_response)

    def _answer(self, request: Request) -> Response:
        try:
            if request.headers.get("Origin") is not None:
                return failed(403, "Forbidden", "a web page sent this; call the control port from a test")
            name, values = self.routes.bind_to_environ(request.environ).match()
            call: Callable[..., Any] = getattr(self, name)
            return answer(200, call(_given(request), **values))
        except HTTPException as error:
            paths, hint = self.elsewhere
            return refused(error, request, hint if request.path.startswith(paths) else "")
        except Exception as error:
            return told(error, "" if self.running else self.stopped)

    @property
    @abstractmethod
    def running(self) -> bool:
        """Whether a broker runs."""

    # ------------------------------------------------------------ snapshots

    def snapshots(self, given: Any) -> Any:
        Fields(given).end()
        return sorted(self._snapshots)

    def save(self, given: Any, name: str) -> Any:
        Fields(given).end()
        with self._life:
            if name not in self._snapshots and len(self._snapshots) >= MOST_SNAPSHOTS:
                raise ConfigError(f"there are {MOST_SNAPSHOTS} snapshots; DELETE one of them first")
            self._snapshots[name] = self._kafka.save()
        return {"saved": name}

    def restore(self, given: Any, name: str) -> Any:
        Fields(given).end()
        with self._life:
            self._kafka.restore(self._snapshot(name))
        return {"restored": name}

    def forget(self, given: Any, name: str) -> Any:
        Fields(given).end()
        self._snapshot(name)
        del self._snapshots[name]
        return {"deleted": name}

    def _snapshot(self, name: str) -> Any:
        if name not in self._snapshots:
            there = ", ".join(sorted(self._snapshots)) or "none"
            raise NotFound(f"there is no snapshot {name!r} (there are: {there}); save it first")
        return self._snapshots[name]

    # ------------------------------------------------------------ topics and records

    def topics(self, given: Any) -> Any:
        Fields(given).end()
        return self._kafka.topics

    def create_topics(self, given: Any) -> Any:
        """The body: names, name → partitions, or name → settings with partitions among them."""
        self._kafka.create_topics(given)
        return self._kafka.topics

    def delete_topic(self, given: Any, topic: str) -> Any:
        Fields(given).end()
        self._kafka.delete_topic(topic)
        return {"deleted": topic}

    def produce(self, given: Any, topic: str) -> Any:
        """The body: a record, or a list of them."""
        rows = [self._checked(row) for row in (given if isinstance(given, list) else [given])]
        found = [plain(self._kafka.produce(topic, **row)) for row in rows]
        return found if isinstance(given, list) else found[0]

    def _checked(self, row: Any) -> dict[str, Any]:
        fields = Fields(row)
        headers = fields.any("headers", None)
        if not (headers is None or isinstance(headers, dict)):
            raise ConfigError(f"headers are {headers!r}; write an object of names and texts")
        found = {
            "value": written(fields.any("value", None)),
            "key": written(fields.any("key", None)),
            "headers": {name: _header(name, value) for name, value in (headers or {}).items()},
            "partition": fields.number("partition", 0, MOST_PARTITION, None),
            "timestamp_ms": fields.number("timestamp_ms", -1, MOST_OFFSET, -1),
        }
        fields.end()
        return found

    def records(self, given: Any, topic: str) -> Any:
        fields = Fields(given)
        partition = fields.number("partition", 0, MOST_PARTITION, None)
        offset = fields.number("offset", 0, MOST_OFFSET, None)
        limit = fields.number("limit", 1, MOST_RECORDS, MOST_RECORDS)
        isolation = fields.choice("isolation", ISOLATIONS, ISOLATIONS[0])
        fields.end()
        if offset is not None and partition is None:
            raise ConfigError("offset belongs to a partition; say which one by partition=")
        rows: list[dict[str, Any]] = []
        size = 0
        for record in self._kafka.iterate(topic, partition, offset, isolation=isolation):
            size += len(record.key or b"") + len(record.value or b"")
            if len(rows) == limit or (rows and size > MOST_BYTES):
                return {"records": rows, "more": True}
            rows.append(record_row(record))
        return {"records": rows, "more": False}

    def offsets(self, given: Any, topic: str) -> Any:
        Fields(given).end()
        if topic not in self._kafka.topics:
            raise UnknownTopicOrPartition(f"there is no topic {topic!r}; create it first")
        return {
            number: {"start": self._kafka.start_offset(topic, number), "end": self._kafka.end_offset(topic, number)}
            for number in range(self._kafka.topics[topic])
        }

    def partition_offsets(self, given: Any, topic: str, partition: int) -> Any:
        Fields(given).end()
        return {
            "start": self._kafka.start_offset(topic, partition),
            "end": self._kafka.end_offset(topic, partition),
        }

    def groups(self, given: Any) -> Any:
        fields = Fields(given)
        group = fields.text("group")
        fields.end()
        found = self._kafka.log.describe_group(group)
        if found is None:
            raise GroupIdNotFound(f"there is no group {group!r}; POST /wait/group waits for one")
        return plain(found)

    def committed(self, given: Any) -> Any:
        fields = Fields(given)
        group, topic = fields.text("group"), fields.text("topic")
        partition = fields.number("partition", 0, MOST_PARTITION, 0)
        fields.end()
        return {"offset": self._kafka.log.committed(group, topic, partition)}

    def compact(self, given: Any) -> Any:
        return self._clean(given, self._kafka.compact)

    def retention(self, given: Any) -> Any:
        return self._clean(given, self._kafka.apply_retention)

    def _clean(self, given: Any, work: Callable[[str | None], None]) -> Any:
        fields = Fields(given)
        topic = fields.text("topic", None)
        fields.end()
        work(topic)
        return {}

    # ------------------------------------------------------------ who logs in

    def client(self, given: Any) -> Any:
        fields = Fields(given)
        user, mechanism = fields.text("user", None), fields.text("mechanism", None)
        password = fields.text("password", None)
        spelling = fields.choice("spelling", SPELLINGS, SPELLINGS[0])
        fields.end()
        return self._kafka.client_settings(user, mechanism=mechanism, password=password, spelling=spelling)

    # ------------------------------------------------------------ what is waited for

    def assert_produced(self, given: Any) -> Any:
        fields = Fields(given)
        topic = fields.text("topic")
        headers = fields.any("headers", None)
        if not (headers is None or isinstance(headers, dict)):
            raise ConfigError(f"headers are {headers!r}; write an object of names and what is expected")
        headers = {name: expected(each) for name, each in (headers or {}).items()}
        wanted: dict[str, Any] = {name: expected(fields.any(name, ANYTHING)) for name in ("key", "value")}
        partition = fields.number("partition", 0, MOST_PARTITION, None)
        isolation = fields.choice("isolation", ISOLATIONS, ISOLATIONS[0])
        within = fields.amount("within_s", MOST_WITHIN_S, 0)
        fields.end()
        found = self._kafka.assert_produced(
            topic, **wanted, headers=headers, partition=partition, within=within, isolation=isolation
        )
        return record_row(found)

    def wait_offset(self, given: Any) -> Any:
        fields = Fields(given)
        topic, partition = fields.text("topic"), fields.number("partition", 0, MOST_PARTITION, 0)
        offset, within = fields.number("offset", 0, MOST_OFFSET), fields.amount("within_s", MOST_WITHIN_S, WITHIN_S)
        fields.end()
        self._kafka.wait_for_offset(topic, partition, offset=offset, within=within)
        return {}

    def wait_group(self, given: Any) -> Any:
        fields = Fields(given)
        group, members = fields.text("group"), fields.number("members", 0, MOST_PARTITION, None)
        state, within = fields.text("state", None), fields.amount("within_s", MOST_WITHIN_S, WITHIN_S)
        fields.end()
        return plain(self._kafka.wait_for_group(group, members=members, state=state, within=within))

    def wait_commit(self, given: Any) -> Any:
        fields = Fields(given)
        group, topic = fields.text("group"), fields.text("topic")
        partition, offset = fields.number("partition", 0, MOST_PARTITION, 0), fields.number("offset", 0, MOST_OFFSET)
        within = fields.amount("within_s", MOST_WITHIN_S, WITHIN_S)
        fields.end()
        self._kafka.wait_for_commit(group, topic, partition, offset=offset, within=within)
        return {}

    # ------------------------------------------------------------ what clients asked

    def requests(self, given: Any) -> Any:
        fields = Fields(given)
        api, client_id = fields.text("api", None), fields.text("client_id", None)
        after = fields.number("after", 0, MOST_OFFSET, 0)
        limit = fields.number("limit", 1, MOST_REQUESTS, MOST_REQUESTS)
        broker = fields.number("broker", 0, MOST_PARTITION, None)
        fields.end()
        if api is not None:
            check_api(api)
        found, end = self._kafka.requests_since(after, limit, MOST_BYTES)
        following = found[-1][0] + 1 if found else end
        rows = [
            request_row(number, request)
            for number, request in found
            if api in (None, request.api)
            and client_id in (None, request.client_id)
            and broker in (None, request.broker)
        ]
        return {"requests": rows, "next": following, "more": following < end}

    def clear_requests(self, given: Any) -> Any:
        Fields(given).end()
        self._kafka.requests.clear()
        return {}

    # ------------------------------------------------------------ time and faults

    def clock(self, given: Any) -> Any:
        Fields(given).end()
        return {"wall_ms": self._kafka.clock.wall_ms(), "ahead_ms": self._kafka.clock.ahead_ms}

    def advance(self, given: Any) -> Any:
        fields = Fields(given)
        jump = {unit: fields.amount(unit, MOST_DAYS * in_a_day, None) for unit, in_a_day in UNITS.items()}
        fields.end()
        if not given:
            raise ConfigError('the jump has no length; write e.g. {"seconds": 5}, or days, hours, minutes, ms')
        self._kafka.clock.advance(**jump)
        return self.clock({})

    def faults(self, given: Any) -> Any:
        Fields(given).end()
        return self._fault_rows(self._faults)

    def _fault_rows(self, numbers: Iterable[int]) -> list[Any]:
        active = self._asked.active
        made = [(number, self._faults[number]) for number in numbers]
        return [fault_row(number, fault, active=any(fault is each for each in active)) for number, fault in made]

    def add_faults(self, given: Any) -> Any:
        """The body: a fault in the words of the YAML file, or a list of them."""
        rows = [dict(row) for row in (given if isinstance(given, list) else [given]) if isinstance(row, Mapping)]
        if not rows or (isinstance(given, list) and len(rows) < len(given)):
            raise ConfigError('a fault is an object; write e.g. {"error": "NOT_LEADER_OR_FOLLOWER", "api": "Produce"}')
        met = []
        for row in rows:
            counts = Fields({name: row.pop(name) for name in ("fitted", "struck") if name in row})
            met.append([counts.number(name, 0, MOST_FITTED, 0) for name in ("fitted", "struck")])
            if isinstance(row.get("client_id"), dict):
                row["client_id"] = expected(row["client_id"])
        with self._life:
            numbers = []
            for fault, (fitted, struck) in zip(self._asked.load(rows), met, strict=True):
                fault.go_on(fitted, struck)
                numbers.append(self._number(fault))
        found = self._fault_rows(numbers)
        return found if isinstance(given, list) else found[0]

    def _number(self, fault: Fault) -> int:
        """The number by which it is removed."""
        number = self._next_fault
        self._faults[number] = fault
        self._next_fault += 1
        return number

    def remove_fault(self, given: Any, number: int) -> Any:
        Fields(given).end()
        if number not in self._faults:
            raise NotFound(f"there is no fault {number}; GET /faults lists them")
        self._faults[number].remove()
        return self._fault_rows([number])[0]

    def clear_faults(self, given: Any) -> Any:
        Fields(given).end()
        with self._life:
            self._asked.clear()
            self._faults.clear()
        return {}


WITHIN_S: Final = 10.0
ROUTES: Final = (
    ("GET", "/health", "health"),
    ("GET", "/client", "client"),
    ("GET", "/snapshots", "snapshots"),
    ("PUT", "/snapshots/<name>", "save"),
    ("POST", "/snapshots/<name>/restore", "restore"),
    ("DELETE", "/snapshots/<name>", "forget"),
    ("GET", "/topics", "topics"),
    ("POST", "/topics", "create_topics"),
    ("DELETE", "/topics/<topic>", "delete_topic"),
    ("GET", "/topics/<topic>/records", "records"),
    ("POST", "/topics/<topic>/records", "produce"),
    ("GET", "/topics/<topic>/offsets", "offsets"),
    ("GET", "/topics/<topic>/offsets/<int:partition>", "partition_offsets"),
    ("GET", "/groups", "groups"),
    ("GET", "/committed", "committed"),
    ("POST", "/compact", "compact"),
    ("POST", "/retention", "retention"),
    ("POST", "/assert-produced", "assert_produced"),
    ("POST", "/wait/offset", "wait_offset"),
    ("POST", "/wait/group", "wait_group"),
    ("POST", "/wait/commit", "wait_commit"),
    ("GET", "/requests", "requests"),
    ("DELETE", "/requests", "clear_requests"),
    ("GET", "/clock", "clock"),
    ("POST", "/clock/advance", "advance"),
    ("GET", "/faults", "faults"),
    ("POST", "/faults", "add_faults"),
    ("DELETE", "/faults", "clear_faults"),
    ("DELETE", "/faults/<int:number>", "remove_fault"),
)
"""(method, path, method of `Control`), of each kind of server."""


def routes(*own: tuple[str, str, str]) -> Map:
    """A map of these and `ROUTES`. It takes 20 ms to make."""
    return Map([Rule(path, methods=[method], endpoint=name) for method, path, name in (*ROUTES, *own)])


def _given(request: Request) -> Any:
    """What a call says. Raises `ConfigError` for a query that nobody would read."""
    if request.method == "GET":
        return Query(request.args.to_dict())
    if request.args:
        raise ConfigError(f"a {request.method} has no query (?{request.query_string.decode()}); send JSON in the body")
    return parse(request.get_data())


def _header(name: str, given: Any) -> Any:
    value = written(given)
    if not (value is None or isinstance(value, (str, bytes))):
        raise ConfigError(f"header {name} is {given!r}; write a text or null")
    return value
