"""What a scan of a cluster asks for: no more than lies before its end, and nothing is left waiting at a broker."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("pyarrow")
import logkernel
from logkernel.client.cluster.bootstrap_client import BootstrapClient
from logkernel.errors import NetworkException
from logkernel.table import open_source
from logkernel.table.remote import LEAST_BYTES
from logkernel.vocabulary import TopicPartition

P = TopicPartition("t", 0)
COUNT, SIZE = 2000, 1000


@pytest.fixture
def source() -> Iterator[Any]:
    with logkernel.open(None) as log:
        log.create_topic("t")
        with log.producer(batch_size=10_000) as producer:
            for number in range(COUNT):
                producer.send("t", b"%04d" % number * (SIZE // 4))
        found = open_source(bootstrap=log.listen())
        yield found
        found.close()


def fetcher(source: Any) -> Any:
    (driver,) = source._idle["read_uncommitted"]
    return driver.machine.fetcher


def values(source: Any, start: int, end: int) -> list[bytes]:
    rows = source.scan(P, start, end, columns=("value",))
    return [value for batch in rows for value in batch.column(0).to_pylist()]


def test_a_few_records_are_a_small_fetch(source: Any) -> None:
    assert [value[:4] for value in values(source, 100, 110)] == [b"%04d" % number for number in range(100, 110)]
    assert fetcher(source).bytes_total < 2 * LEAST_BYTES < COUNT * SIZE


def test_a_topic_shows_how_long_its_records_are(source: Any) -> None:
    values(source, 0, 10)
    before = fetcher(source).bytes_total
    assert len(values(source, 0, 1000)) == 1000
    assert 1000 * SIZE <= fetcher(source).bytes_total - before < 1.2 * 1000 * SIZE + LEAST_BYTES


def test_a_cluster_that_was_there_is_waited_for(source: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stream outlives a broker's restart; who names a wrong one is told at once, unless with patience."""
    lost: list[Exception] = []

    def request(self: Any, asked: Any, answer: Any = BootstrapClient.request) -> Any:
        if lost:
            raise lost.pop()
        return answer(self, asked)

    def away() -> None:
        lost[:] = [NetworkException("it restarts"), NetworkException("it restarts")]

    monkeypatch.setattr(BootstrapClient, "request", request)
    away()
    with pytest.raises(NetworkException):
        source.topics()
    assert len(lost) == 1
    lost.clear()
    source.topics()
    away()
    assert source.topics() == {"t": 1}
    away()
    other = open_source(bootstrap=source.arguments["bootstrap"], patient=True)
    assert other.topics() == {"t": 1}
    other.close()


@pytest.mark.parametrize(("start", "end"), [(0, 10), (COUNT - 5, COUNT), (0, COUNT)])
def test_nothing_is_left_waiting_at_the_broker(source: Any, start: int, end: int) -> None:
    assert len(values(source, start, end)) == end - start
    assert not any(session.under_way for session in fetcher(source).sessions.values())
