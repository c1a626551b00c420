"""The embedded log as a program uses it: on disk, in memory, with asyncio, and listening."""

import asyncio
import subprocess
import sys

import pytest

import logkernel
from logkernel import aio
from logkernel.errors import (
    ConfigError,
    DataDirectoryLocked,
    InvalidConfig,
    LogkernelError,
    OffsetOutOfRange,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from logkernel.requests.cluster import MetadataRequest
from logkernel.requests.configs import DescribeConfigsRequest, DescribeConfigsResource
from logkernel.requests.producers import InitProducerIdRequest


@pytest.fixture(params=["disk", "memory"])
def folder(request, tmp_path):
    return str(tmp_path / "data") if request.param == "disk" else None


def values(log, topic, partition=0, offset=None):
    return [record.value for record in log.read(topic, partition, offset)]


def test_append_and_read(folder):
    with logkernel.open(folder) as log:
        log.create_topic("orders", partitions=3, partitioner="keyed")
        places = {log.append("orders", b"v%d" % n, key=b"k", headers={"h": b"1"}).partition for n in range(4)}
        assert len(places) == 1, "one key, one partition"
        record = next(log.read("orders", places.pop(), 2))
        assert (record.offset, record.key, record.value, record.headers) == (2, b"k", b"v2", (("h", b"1"),))
        assert log.topics() == {"orders": 3}


def test_null_key_and_value_and_timestamp_come_back(folder):
    with logkernel.open(folder) as log:
        log.create_topic("t")
        assert log.append("t", None, timestamp_ms=1_700_000_000_000).timestamp_ms == 1_700_000_000_000
        (record,) = log.read("t")
        assert (record.key, record.value, record.timestamp_ms) == (None, None, 1_700_000_000_000)


def test_errors_are_kafkas(folder):
    with logkernel.open(folder) as log:
        log.create_topic("t")
        with pytest.raises(TopicAlreadyExists):
            log.create_topic("t")
        with pytest.raises(UnknownTopicOrPartition):
            log.append("absent", b"")
        with pytest.raises(InvalidConfig, match="retention"):
            log.create_topic("u", retention_ms="soon")
        with pytest.raises(OffsetOutOfRange):
            list(log.read("t", 0, 7))
    with pytest.raises(LogkernelError, match="closed"):
        log.append("t", b"")


def test_many_batches_are_read_in_order(folder):
    with logkernel.open(folder) as log:
        log.create_topic("t", segment_bytes=1 << 20)  # two segments
        sent = [b"%d" % n * 3000 for n in range(200)]
        for value in sent:
            log.append("t", value)
        assert values(log, "t") == sent
        assert values(log, "t", offset=150) == sent[150:]
        assert (log.start_offset("t"), log.end_offset("t")) == (0, 200)


def test_data_topics_and_settings_survive(tmp_path):
    with logkernel.open(tmp_path) as log:
        log.create_topic("t", retention_ms=-1)
        log.append("t", b"1")
        log.create_topic("gone")
        log.delete_topic("gone")
    with logkernel.open(tmp_path) as log:
        described = log.request(DescribeConfigsRequest([DescribeConfigsResource(2, "t", ["retention.ms"])]))
        assert described.results[0].configs[0].value == "-1"
        assert log.topics() == {"t": 1}
        assert values(log, "t") == [b"1"]
        assert log.append("t", b"2").offset == 1


def test_one_owner_at_a_time(tmp_path):
    with logkernel.open(tmp_path), pytest.raises(DataDirectoryLocked, match=str(tmp_path)):
        logkernel.open(tmp_path)
    logkernel.open(tmp_path).close()


def test_a_killed_process_loses_nothing_it_appended(tmp_path):
    program = (
        "import logkernel, os, sys\n"
        "log = logkernel.open(sys.argv[1]); log.create_topic('t')\n"
        "[log.append('t', b'%d' % n) for n in range(50)]\n"
        "os._exit(9)\n"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False).returncode == 9
    with logkernel.open(tmp_path) as log:
        assert values(log, "t") == [b"%d" % n for n in range(50)]


def test_requests_are_answered_in_process(folder):
    with logkernel.open(folder) as log:
        log.create_topic("t")
        response = log.request(MetadataRequest(topics=None))
        assert [topic.name for topic in response.topics] == ["t"]


def test_producer_ids_never_repeat_over_restarts(tmp_path):
    seen = []
    for _ in range(3):
        with logkernel.open(tmp_path) as log:
            seen += [log.request(InitProducerIdRequest()).producer_id for _ in range(3)]
    assert len(set(seen)) == 9


@pytest.mark.parametrize("address", ["localhost", "127.0.0.1:x", "127.0.0.1:99999", ""])
def test_a_bad_address_to_listen_on_is_refused_by_name(address: str) -> None:
    with logkernel.open() as log, pytest.raises(ConfigError, match="is not of the form HOST:PORT; pass") as caught:
        log.listen(address)
    assert str(caught.value).startswith(repr(address))


def test_listening_and_calling_at_once(tmp_path):
    confluent = pytest.importorskip("confluent_kafka")
    with logkernel.open(tmp_path) as log:
        log.create_topic("t")
        address = log.listen()
        producer = confluent.Producer({"bootstrap.servers": address})
        producer.produce("t", b"from outside")
        assert producer.flush(20) == 0
        log.append("t", b"from inside")
        assert values(log, "t") == [b"from outside", b"from inside"]
        with pytest.raises(LogkernelError, match="already listening"):
            log.listen()
    with logkernel.open(tmp_path) as log:
        assert len(values(log, "t")) == 2


def test_asyncio_twin(tmp_path):
    async def main():
        async with await aio.open(tmp_path) as log:
            await log.create_topic("t", partitions=1)
            await log.append("t", b"1")
            await log.append_many("t", [logkernel.Record(value=b"2")], partition=0)
            assert await log.end_offset("t") == 2
            return [record.value async for record in log.read("t")]

    assert asyncio.run(main()) == [b"1", b"2"]


def test_import_is_light():
    heavy = ("asyncio", "attrs", "kio", "pluggy", "yaml")
    program = f"import sys, logkernel; print([m for m in {heavy} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
