"""Each refusal is a line in the log, of which a client can neither make two nor another one."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from logkernel.broker.authorization.audit import MAX_LINES, WINDOW_MS, Audit, shown
from logkernel.contracts import RequestContext
from logkernel.requests import cluster, data, groups, offsets
from logkernel.vocabulary import AclOperation, Principal, ResourceType


@pytest.fixture
def lines(caplog: pytest.LogCaptureFixture) -> Any:
    caplog.set_level(logging.INFO, "logkernel.authorizer")
    return lambda: [one.getMessage() for one in caplog.records if one.name == "logkernel.authorizer"]


def list_offsets(*names: str) -> offsets.ListOffsetsRequest:
    return offsets.ListOffsetsRequest(
        topics=[offsets.ListOffsetsTopic(name, [offsets.ListOffsetsPartition(0, -1)]) for name in names]
    )


def test_a_refusal_says_who_what_and_where_from(world: Any, lines: Any) -> None:
    world.allow("ann", AclOperation.DESCRIBE, ResourceType.TOPIC, "b")
    world.ask("ann", list_offsets("a", "b"))
    assert lines() == [
        "refused: principal=User:ann operation=DESCRIBE resource=TOPIC:a host=10.0.0.7 request=ListOffsets"
        " client_id=test"
    ]


def test_a_refused_produce_is_one_line(world: Any, lines: Any) -> None:
    """Producers ask by a way of their own."""
    asked = data.ProduceRequest(None, 1, 0, [data.TopicProduceData("a", [data.PartitionProduceData(0, b"")])])
    assert world.ask("ann", asked, capabilities=frozenset()).responses[0].partition_responses[0].error_code == 29
    (line,) = lines()
    assert "operation=WRITE resource=TOPIC:a" in line


def test_what_a_client_did_not_ask_for_is_no_refusal(world: Any, lines: Any) -> None:
    world.topic("a")
    world.ask("ann", cluster.MetadataRequest(None))
    world.ask("ann", groups.ListGroupsRequest())
    assert lines() == []


@pytest.mark.parametrize("name", [
    "a\nrefused: principal=User:bob", "a\r\n", "a\x1b[2J", "a\u2028b", "a resource=TOPIC:b", "a\\n", "\u202e",
    "x" * 9_999, "\ud800", "'", "ä",
])  # fmt: skip
def test_a_name_stays_one_word_on_its_line(world: Any, lines: Any, name: str) -> None:
    world.ask(name, list_offsets(name), client_id=name, client_host=name)
    (line,) = lines()
    assert line.isascii()
    assert line.isprintable()
    assert len(line) < 8_000
    outside = [field.partition("=")[0] for field in _fields(line)]
    assert outside == ["principal", "operation", "resource", "host", "request", "client_id"]


def _fields(line: str) -> list[str]:
    """The fields of a line, as a reader takes it apart who knows quotes."""
    import shlex

    return [word for word in shlex.split(line.replace("\\'", "")) if word != "refused:"]


def test_a_client_that_asks_on_and_on_fills_no_disk(lines: Any) -> None:
    audit, context = Audit(), RequestContext(principal=Principal("User", "ann"))
    for number in range(MAX_LINES + 500):
        audit.refused(context, "FetchRequest", AclOperation.READ, ResourceType.TOPIC, f"t{number}", 10)
    assert len(lines()) == MAX_LINES
    audit.refused(context, "FetchRequest", AclOperation.READ, ResourceType.TOPIC, "later", 10 + WINDOW_MS)
    assert lines()[MAX_LINES] == "refused: 500 more in the last minute were not written"
    assert "resource=TOPIC:later" in lines()[-1]


def test_a_plain_name_is_written_as_it_is() -> None:
    assert shown("orders.eu-1") == "orders.eu-1"
