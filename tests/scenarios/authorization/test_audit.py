"""Each refusal is a line in the log: a client can make neither two of it nor another one. Those like it are counted."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from logkernel.broker.authorization.audit import MAX_ALL, MAX_EACH, Audit, shown
from logkernel.contracts import RequestContext
from logkernel.requests import cluster, data, groups, offsets
from logkernel.security.repeats import MAX_COUNTED, WINDOW_MS
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


class Written:
    """What an audit writes, in windows that the test ends."""

    def __init__(self, lines: Callable[[], list[str]]) -> None:
        self._lines = lines
        self._seen = 0
        self._timers: list[Callable[[], None]] = []
        self.audit = Audit(self._after)

    def _after(self, wait_ms: int, action: Callable[[], None]) -> None:
        assert wait_ms == WINDOW_MS
        self._timers.append(action)

    def refuse(self, user: str, topic: str, times: int = 1, operation: AclOperation = AclOperation.READ) -> None:
        context = RequestContext(principal=Principal("User", user))
        for _ in range(times):
            self.audit.refused(context, "FetchRequest", operation, ResourceType.TOPIC, topic)

    def lines(self) -> list[str]:
        """Those since the last call."""
        found = self._lines()[self._seen :]
        self._seen += len(found)
        return found

    def end_window(self) -> list[str]:
        (timer,) = self._timers
        self._timers.clear()
        timer()
        return self.lines()

    @property
    def rests(self) -> bool:
        return not self._timers


@pytest.fixture
def written(lines: Any) -> Written:
    return Written(lines)


def test_what_is_refused_again_and_again_is_written_once_and_counted(written: Written) -> None:
    """A broker of a cluster without CLUSTER_ACTION asked ten times a second, for ever, and each was a line."""
    written.refuse("ann", "a", 413)
    written.refuse("ann", "b", 2)
    written.refuse("ann", "a", operation=AclOperation.WRITE)
    assert [line.partition(" host=")[0] for line in written.lines()] == [
        "refused: principal=User:ann operation=READ resource=TOPIC:a",
        "refused: principal=User:ann operation=READ resource=TOPIC:b",
        "refused: principal=User:ann operation=WRITE resource=TOPIC:a",
    ]
    assert written.end_window() == [
        "refused: principal=User:ann operation=READ resource=TOPIC:a (this came 412 times more in 60 s)",
        "refused: principal=User:ann operation=READ resource=TOPIC:b (this came 1 time more in 60 s)",
    ]
    written.refuse("ann", "a", 600)
    assert written.end_window() == [
        "refused: principal=User:ann operation=READ resource=TOPIC:a (this came 600 times more in 60 s)"
    ]
    assert written.end_window() == []
    assert written.rests
    written.refuse("ann", "a")
    (line,) = written.lines()
    assert "resource=TOPIC:a host=" in line, "after a minute without one, it is written anew"


def test_what_was_counted_is_written_before_the_broker_stops(written: Written) -> None:
    written.refuse("ann", "a", 3)
    written.lines()
    written.audit.close()
    assert written.lines() == [
        "refused: principal=User:ann operation=READ resource=TOPIC:a (this came 2 times more before the broker stopped)"
    ]


def test_a_client_that_asks_on_and_on_fills_no_disk_and_hides_nobody(written: Written) -> None:
    for number in range(MAX_EACH + 500):
        written.refuse("eve", f"t{number}")
    written.refuse("ann", "a")
    assert len(written.lines()) == MAX_EACH + 1
    assert written.end_window() == ["refused: principal=User:eve: 500 more in 60 s are not written"]
    assert written.rests, "nothing is kept of what did not come again"


def test_many_names_of_users_fill_no_memory(written: Written) -> None:
    for number in range(MAX_ALL + 2 * MAX_COUNTED):
        written.refuse(f"user{number}", "t")
    assert len(written.lines()) == MAX_ALL
    told = written.end_window()
    assert len(told) == MAX_COUNTED + 1
    assert told[-1] == f"refused: principal=(others): {MAX_COUNTED} more in 60 s are not written"
    written.refuse("ann", "a")
    assert len(written.lines()) == 1


def test_a_broker_counts_refusals(world: Any, lines: Any) -> None:
    for _ in range(3):
        world.ask("ann", list_offsets("a"))
    assert len(lines()) == 1
    world.broker.close()
    assert lines()[1:] == [
        "refused: principal=User:ann operation=DESCRIBE resource=TOPIC:a"
        " (this came 2 times more before the broker stopped)"
    ]


def test_a_plain_name_is_written_as_it_is() -> None:
    assert shown("orders.eu-1") == "orders.eu-1"
