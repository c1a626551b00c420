"""A partition that cannot be read is told of: at once or after a while, and not once a fetch."""

from __future__ import annotations

import logging

import pytest

from logkernel.client.consumer.failing import AGAIN_MS, PATIENCE_MS, errors_of, failed, passed
from logkernel.client.consumer.positions import Part
from logkernel.errors import KafkaError, NotLeaderOrFollower, UnknownServerError, error_for
from logkernel.vocabulary import TopicPartition

NAME = TopicPartition("t", 0)


def error(kind: type[KafkaError]) -> KafkaError:
    return error_for(kind.code, about=NAME)


@pytest.fixture
def part() -> Part:
    found = Part(NAME)
    found.place(7)
    return found


def fail(part: Part, kind: type[KafkaError], until_ms: int, first_ms: int = 1000) -> None:
    """As a fetch every 100 ms does."""
    for now_ms in range(first_ms, until_ms, 100):
        failed(part, error(kind), now_ms)


def test_an_unknown_server_error_is_told_at_once_with_partition_error_and_what_follows(
    part: Part, caplog: pytest.LogCaptureFixture
) -> None:
    failed(part, error(UnknownServerError), 1000)
    (told,) = caplog.records
    assert (told.name, told.levelname) == ("logkernel.client", "WARNING")
    assert told.getMessage() == (
        "t-0 cannot be read at offset 7, and is tried again: UnknownServerError (code -1): the broker failed in a way"
        " the protocol has no code for; look into the broker's log"
    )


def test_it_is_told_again_after_a_while_and_not_once_a_fetch(part: Part, caplog: pytest.LogCaptureFixture) -> None:
    fail(part, UnknownServerError, 1000 + 2 * AGAIN_MS + 1)
    assert [row.getMessage().partition(", and")[0] for row in caplog.records] == [
        "t-0 cannot be read at offset 7",
        "t-0 cannot be read at offset 7 for 30 s now",
        "t-0 cannot be read at offset 7 for 60 s now",
    ]


def test_a_leader_that_moves_is_told_of_if_it_takes_long(part: Part, caplog: pytest.LogCaptureFixture) -> None:
    fail(part, NotLeaderOrFollower, 1000 + PATIENCE_MS)
    assert not caplog.records
    assert list(errors_of([part])) == [NAME], "whoever asks is told before"
    failed(part, error(NotLeaderOrFollower), 1000 + PATIENCE_MS)
    (told,) = caplog.records
    assert "for 10 s now, and is tried again: NotLeaderOrFollower (code 6): the broker is not" in told.getMessage()


def test_a_pause_between_two_failures_begins_anew(part: Part, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    fail(part, NotLeaderOrFollower, 1000 + PATIENCE_MS)
    passed(part, 1000 + PATIENCE_MS)
    fail(part, NotLeaderOrFollower, 1000 + 2 * PATIENCE_MS, 1000 + PATIENCE_MS)
    assert not caplog.records, "what was not told of need not be taken back"
    passed(part, 1000 + 2 * PATIENCE_MS)
    failed(part, error(UnknownServerError), 50_000)
    passed(part, 55_000)
    assert [row.getMessage() for row in caplog.records][1:] == ["t-0 is read again, after 5 s"]
    assert errors_of([part]) == {}


def test_a_partition_that_is_paused_is_not_missed(part: Part) -> None:
    failed(part, error(UnknownServerError), 1000)
    assert errors_of([part])[NAME] is part.failing.error  # type: ignore[union-attr]
    part.paused = True
    assert errors_of([part]) == {}
