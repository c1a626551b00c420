"""What brokers tell of the settings of groups, and how they take changes of them: the same requests to Apache Kafka
(`record.py`) and to ours (`test_group_settings.py`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from logkernel.errors import error_for
from logkernel.requests import configs

BROKER: Final = 4
GROUP: Final = 32
SET, DELETE, APPEND, SUBTRACT = range(4)
NODE: Final = "1"
PREFIX: Final = "group."
TYPES: Final = ("?", "BOOLEAN", "STRING", "INT", "SHORT", "LONG", "DOUBLE", "LIST", "CLASS", "PASSWORD")
SOURCES: Final = ("?", "topic", "broker", "brokers", "static", "default", "logger", "client metrics", "group")
OPERATIONS: Final = ("set", "delete", "append", "subtract")
NUMBERS: Final = (
    *("-1", "0", "1", "2", "3", "4", "5", "6", "10", "11", "99", "100", "999", "1000", "2000", "2001", "4000", "4001"),
    *("4999", "5000", "10000", "14999", "15000", "15001", "44999", "45000", "60000", "60001", "2147483647"),
)
OTHERS: Final = ("", "x", "1.5", " 5000 ", "2147483648", "true", "False", "latest", "EARLIEST", "by_duration:PT1S",
                 "by_duration:-PT1S", "read_committed", "READ_COMMITTED")  # fmt: skip
VALUES: Final = (*NUMBERS, *OTHERS)
FEW: Final = ("-1", "5000", "15001", "x")
"""For what a running broker does not take."""
UNKNOWN: Final = (
    "group.consumer.session.timeout.ms", "session.timeout.ms", "retention.ms", "consumer.max.size", "",
    "consumer.assignor.offload.enable", "share.assignor.offload.enable", "streams.assignor.offload.enable",
    "streams.num.warmup.replicas", "streams.task.offset.interval.ms", "share.max.size",
)  # fmt: skip
"""Names that a group has not: of a broker, of other kinds, of proposals that this version has not."""
TOGETHER: Final[tuple[tuple[tuple[str, str], ...], ...]] = tuple(
    ((f"{kind}.session.timeout.ms", session), (f"{kind}.heartbeat.interval.ms", beat))
    for kind in ("consumer", "share", "streams")
    for session, beat in (("45000", "15000"), ("60000", "5000"), ("5000", "5000"), ("45000", "45000"))
)
"""What one request sets."""

Ask = Callable[[Any], Any]
Retried = Callable[[Callable[[], bool]], None]
"""Takes a step until it is true."""


def described(ask: Ask, kind: int, name: str) -> Iterator[str]:
    """A row for each setting."""
    request = configs.DescribeConfigsRequest([configs.DescribeConfigsResource(kind, name, None)], include_synonyms=True)
    (result,) = ask(request).results
    assert result.error_code == 0, result.error_message
    for row in sorted(result.configs, key=lambda row: row.name):
        if kind == GROUP or row.name.startswith(PREFIX):
            synonyms = " ".join(f"{one.name}={one.value}({SOURCES[one.source]})" for one in row.synonyms)
            flags = " read-only" * row.read_only + " secret" * row.is_sensitive
            yield f"{row.name} = {row.value} {TYPES[row.config_type]} {SOURCES[row.config_source]}{flags}: {synonyms}"


def alter(ask: Ask, kind: int, name: str, *changes: tuple[str, int, str | None], dry: bool = True) -> str:
    rows = [configs.IncrementalAlterConfigsAlterableConfig(*change) for change in changes]
    resource = configs.IncrementalAlterConfigsAlterConfigsResource(kind, name, rows)
    (answer,) = ask(configs.IncrementalAlterConfigsRequest([resource], validate_only=dry)).responses
    return type(error_for(answer.error_code)).__name__ if answer.error_code else "ok"


def table(ask: Ask, retried: Retried, known: Mapping[str, Sequence[str]] | None = None) -> Iterator[str]:
    """Lines: a case, and indented what was answered. `known` is what Kafka described, whose settings are asked for."""
    rows = {"group": list(described(ask, GROUP, "g")), "broker": list(described(ask, BROKER, NODE))}
    for name, told in rows.items():
        yield name
        yield from (f" {row}" for row in told)
    known = known or rows
    for row in known["group"]:
        yield from _taken(ask, GROUP, "g", row.split()[0])
    for name in UNKNOWN:
        yield f"group unknown {name or '-'}"
        yield f" {alter(ask, GROUP, 'g', (name, SET, '5000'))}"
    for changes in TOGETHER:
        yield "group together " + " ".join(f"{name}={value}" for name, value in changes)
        yield f" {alter(ask, GROUP, 'g', *((name, SET, value) for name, value in changes))}"
    yield "group without a name"
    yield f" {alter(ask, GROUP, '', ('consumer.session.timeout.ms', SET, '50000'))}"
    for row in known["broker"]:
        for node in (NODE, ""):
            yield from _taken(ask, BROKER, node, row.split()[0], FEW if " read-only:" in row else VALUES)
    yield from kept(ask, retried)


def _taken(ask: Ask, kind: int, resource: str, name: str, values: Sequence[str] = VALUES) -> Iterator[str]:
    """The answers to each value, those with one answer in a line."""
    who = "group" if kind == GROUP else f"broker {resource or 'all'}"
    yield f"{who} takes {name}"
    found: dict[str, list[str]] = {}
    for value in values:
        found.setdefault(alter(ask, kind, resource, (name, SET, value)), []).append(repr(value))
    for operation in (DELETE, APPEND, SUBTRACT):
        value = None if operation == DELETE else "5000"
        found.setdefault(alter(ask, kind, resource, (name, operation, value)), []).append(OPERATIONS[operation])
    found.setdefault(alter(ask, kind, resource, (name, SET, None)), []).append("null")
    for answer, told in found.items():
        yield f" {answer}: {' '.join(told)}"


def kept(ask: Ask, retried: Retried) -> Iterator[str]:
    """What a group's own value, and a broker's, come to in what is described."""
    steps: tuple[tuple[str, int, str, str, int, str | None], ...] = tuple(
        step
        for kind in ("consumer", "share", "streams")
        for step in (
            ("a broker's own", BROKER, NODE, f"group.{kind}.assignment.interval.ms", SET, "3000"),
            ("a group's own", GROUP, "g", f"{kind}.assignment.interval.ms", SET, "2000"),
            ("all brokers'", BROKER, "", f"group.{kind}.assignment.interval.ms", SET, "4000"),
            ("not the broker's", BROKER, NODE, f"group.{kind}.assignment.interval.ms", DELETE, None),
            ("not the group's", GROUP, "g", f"{kind}.assignment.interval.ms", DELETE, None),
            ("not all brokers'", BROKER, "", f"group.{kind}.assignment.interval.ms", DELETE, None),
        )
    )
    for what, kind, resource, name, operation, value in steps:
        of_group = name.removeprefix(PREFIX)
        before = _of_interest(ask, of_group)
        assert alter(ask, kind, resource, (name, operation, value), dry=False) == "ok"
        retried(lambda of_group=of_group, before=before: _of_interest(ask, of_group) != before)  # type: ignore[misc]
        yield f"{what} {name}"
        yield from (f" {row}" for row in _of_interest(ask, of_group))


def _of_interest(ask: Ask, name: str) -> list[str]:
    rows = (*described(ask, GROUP, "g"), *described(ask, BROKER, NODE))
    return [row for row in rows if row.startswith((f"{name} ", f"{PREFIX}{name} "))]
