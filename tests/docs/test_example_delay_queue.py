"""The example service: found by its entry point, and records come when they are due, also after a crash."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hand_clock import HandClock
from outside_distribution import lay_out

import logkernel
from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.broker.service_host import registry
from logkernel.broker.service_host.registry import LOAD_ALL_AFTER_MS
from logkernel.contracts import RequestContext
from logkernel.record.decode import decode_all
from logkernel.record.encode import encode_batch
from logkernel.requests.data import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from logkernel.vocabulary import Record

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "acme-delay-queue"


@pytest.fixture
def on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The distribution as pip would lay it out."""
    lay_out(EXAMPLE, tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


class Queue:
    """A broker with the example, and a clock that is moved by hand."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lives = 0
        self.clock = HandClock()
        self.broker = self._open()
        self.broker.create_topic("delayed", 2, {"compression.type": "uncompressed"})
        self.broker.create_topic("mails", 1, {})

    def _open(self) -> Broker:
        broker = build(None, [f"log.dirs={self._folder / str(self._lives)}"], clock=self.clock)
        broker.start()
        return broker

    def wait(self, ms: int) -> None:
        end = self.clock.now_ms + ms
        while (due := self.broker.runtime.timers.next_deadline()) is not None and due <= end:
            self.clock.now_ms = max(self.clock.now_ms, due)
            self.broker.step()
        self.clock.now_ms = end
        self.broker.step()

    def crash(self) -> None:
        old = self._folder / str(self._lives)
        self._lives += 1
        shutil.copytree(old, self._folder / str(self._lives), ignore=shutil.ignore_patterns(".lock"))
        self.broker.close()
        self.broker = self._open()

    def ask(self, request: Any) -> Any:
        answers: list[Any] = []
        self.broker.submit(request, RequestContext(), answers.append)
        self.broker.step()
        return answers[0]

    def put(self, value: bytes, *, partition: int = 0, **headers: str) -> None:
        pairs = tuple((name.replace("_", "-"), text.encode()) for name, text in headers.items())
        data = bytearray(encode_batch([Record(b"k", value, pairs, self.clock.wall_ms())]))
        topic = TopicProduceData("delayed", [PartitionProduceData(partition, data)])
        response = self.ask(ProduceRequest(acks=-1, timeout_ms=1000, topic_data=[topic]))
        assert response.responses[0].partition_responses[0].error_code == 0

    def mails(self, offset: int = 0) -> list[Record]:
        topics = [FetchTopic("mails", [FetchPartition(0, offset, 1 << 20)])]
        row = self.ask(FetchRequest(max_bytes=1 << 20, topics=topics)).responses[0].partitions[0]
        data = row.records.read() if row.records is not None else b""
        return list(decode_all(data, self.broker.runtime.kernel.codec_for))


@pytest.fixture
def queue(on_path: None, tmp_path: Path) -> Iterator[Queue]:
    made = Queue(tmp_path)
    made.wait(LOAD_ALL_AFTER_MS)
    yield made
    made.broker.close()


def values(records: list[Record]) -> list[bytes | None]:
    return [record.value for record in records]


def test_records_come_when_they_are_due(queue: Queue) -> None:
    queue.put(b"late", deliver_to="mails", delay_ms="2000")
    queue.put(b"soon", partition=1, deliver_to="mails", delay_ms="500", tag="x")
    queue.put(b"then", deliver_to="mails", deliver_at_ms=str(queue.clock.wall_ms() + 1000))
    queue.put(b"never", delay_ms="1")
    queue.wait(499)
    assert queue.mails() == []
    queue.wait(1)
    (soon,) = queue.mails()
    assert (soon.key, soon.value, soon.headers) == (b"k", b"soon", (("tag", b"x"),))
    queue.wait(1500)
    assert values(queue.mails()) == [b"soon", b"then", b"late"]


def test_what_waits_survives_a_crash_and_comes_once(queue: Queue) -> None:
    queue.put(b"one", deliver_to="mails", delay_ms="1000")
    queue.put(b"two", deliver_to="mails", delay_ms="20000")
    queue.wait(2000)
    queue.crash()
    queue.put(b"three", deliver_to="mails", delay_ms="10")
    queue.wait(LOAD_ALL_AFTER_MS)
    assert values(queue.mails()) == [b"one", b"three"]
    queue.wait(20_000)
    assert values(queue.mails()) == [b"one", b"three", b"two"]


def test_a_topic_that_is_not_there_yet_is_tried_again(queue: Queue, caplog: pytest.LogCaptureFixture) -> None:
    queue.put(b"x", deliver_to="later", delay_ms="10")
    queue.wait(100)
    assert "not delivered" in caplog.text
    queue.broker.create_topic("later", 1, {})
    queue.wait(5_000)
    offsets: Callable[[str, int], Any] = queue.broker.cluster.offsets
    assert offsets("later", 0)[2] == 1


def test_in_a_cluster_it_is_loaded_where_its_topic_is_led(on_path: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A deleted topic is told to shards that were not loaded yet; each broker once waited for those of the others."""
    monkeypatch.setattr(registry, "LOAD_ALL_AFTER_MS", 1_000)
    with logkernel.open_cluster(brokers=3) as cluster:
        cluster.create_topic("early", assignment={0: [1, 2, 3]})
        cluster.delete_topic("early")  # before the service's own topic is there
        with cluster.admin() as admin:
            while "__acme_delay_queue" not in admin.list_topics(internal=True):
                time.sleep(0.02)
        leader = cluster.wait_for_leader("__acme_delay_queue", 0)
        cluster.create_topic("delayed", assignment={0: [leader]}, config={"compression.type": "uncompressed"})
        cluster.create_topic("mails", assignment={0: [leader]})
        cluster.create_topic("gone", assignment={0: [1, 2, 3]})
        cluster.delete_topic("gone")
        with cluster.producer(acks="all", compression_type="none") as producer:
            headers = [("deliver-to", b"mails"), ("delay-ms", b"1")]
            producer.send("delayed", b"late", headers=headers).result(120)
        with cluster.consumer("mails", auto_offset_reset="earliest") as consumer:
            assert [record.value for record in consumer.poll(30)] == [b"late"]
