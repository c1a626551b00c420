"""`fetch.filters`: a topic's plugins decide which records a consumer gets; offsets stay true."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest

import logkernel
from logkernel.broker.build import build
from logkernel.cli import consume, main
from logkernel.contracts import FetchFilter, ReadFacts, RequestContext
from logkernel.embed import EmbeddedLog
from logkernel.errors import InvalidConfig, UnknownServerError
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.record.batch import batches
from logkernel.record.decode import decode_all
from logkernel.requests.data import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from logkernel.vocabulary import READ_COMMITTED, FileSlice, Record

Decide = Callable[[Record, ReadFacts], Any]
TOPIC = "t"
NO_LIMIT = 1 << 30


class Scripted:
    """A filter `a` that calls the function that the test gives it."""

    def __init__(self) -> None:
        self.decide: Decide = lambda record, read: True
        self.made = 0
        self.seen: list[tuple[Record, ReadFacts]] = []

    @hookimpl
    def logkernel_fetch_filter(self, name: str, settings: Mapping[str, Any]) -> FetchFilter | None:
        if name != "a":
            return None
        self.made += 1
        return self

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("fetch filter", "a")]

    def passes(self, record: Record, read: ReadFacts) -> Any:
        self.seen.append((record, read))
        return self.decide(record, read)


def even(record: Record, read: ReadFacts) -> bool:
    return record.offset % 2 == 0


def nothing(record: Record, read: ReadFacts) -> bool:
    return False


@pytest.fixture
def script() -> Scripted:
    return Scripted()


@pytest.fixture
def log(script: Scripted) -> Iterator[EmbeddedLog]:
    with EmbeddedLog(
        build(None, ["group.initial.rebalance.delay.ms=0"], in_memory=True, kernel=Kernel(plugins=[script]))
    ) as found:
        found.create_topic(TOPIC, config={"fetch.filters": "a"})
        found.create_topic("plain")
        yield found


def fetch(log: EmbeddedLog, offset: int = 0, topic: str = TOPIC, **request: Any) -> PartitionData:
    """What a client is answered of the topic's first partition."""
    answers: list[FetchResponse] = []
    asked = FetchTopic(topic, [FetchPartition(0, offset, request.pop("most", NO_LIMIT))])
    context = RequestContext(client_id="reader", client_host="10.0.0.7", capabilities=frozenset({"zstd"}))
    log.broker.submit(FetchRequest(topics=[asked], rack_id="r1", **request), context, answers.append)
    log.broker.step()
    return answers[0].responses[0].partitions[0]


def records(log: EmbeddedLog, data: PartitionData) -> list[Record]:
    raw = data.records.read() if isinstance(data.records, FileSlice) else data.records
    return decode_all(raw or b"", log.broker.runtime.kernel.codec_for, skip_control=True)


def append(log: EmbeddedLog, *sizes: int, topic: str = TOPIC) -> None:
    """Batches of so many records."""
    for size in sizes:
        log.append_many(topic, [Record(b"k", b"v", (), 5) for _ in range(size)], partition=0)


def test_it_sees_records_and_reader(log: EmbeddedLog, script: Scripted) -> None:
    log.append(TOPIC, b"v", key=b"k", headers=[("h", b"1")])
    assert fetch(log).error_code == 0
    ((record, read),) = script.seen
    assert (record.key, record.value, record.headers, record.offset) == (b"k", b"v", (("h", b"1"),), 0)
    assert (read.topic, read.partition, read.rack_id) == (TOPIC, 0, "r1")
    assert (read.client.client_id, read.client.client_host) == ("reader", "10.0.0.7")


def test_a_topic_that_names_none_is_sent_from_its_file(log: EmbeddedLog, script: Scripted) -> None:
    append(log, 1, topic="plain")
    assert isinstance(fetch(log, topic="plain").records, FileSlice)
    assert script.seen == []
    assert log.broker.replicas.led["plain", 0].fetch_plugins is None


def test_batches_keep_their_offsets_and_those_without_records_go(log: EmbeddedLog, script: Scripted) -> None:
    script.decide = lambda record, read: record.offset in (1, 2, 3, 12)
    append(log, 1, 3, 4, 5, 2)  # 0 | 1-3 | 4-7 | 8-12 | 13-14
    raw = fetch(log).records
    assert isinstance(raw, bytes)
    found = [(facts.base_offset, facts.last_offset, facts.count) for facts in batches(raw)]
    assert found == [(1, 3, 3), (8, 12, 1), (13, 14, 0)], "the last one says where to go on"
    assert [record.offset for record in records(log, fetch(log))] == [1, 2, 3, 12]


@pytest.mark.parametrize("codec", ["none", "gzip", "lz4", "snappy", "zstd"])
def test_codecs_are_kept(log: EmbeddedLog, script: Scripted, codec: str) -> None:
    script.decide = even
    with log.producer(compression_type=codec, linger_ms=50) as producer:
        for number in range(100):
            producer.send(TOPIC, b"%d" % number, partition=0)
    data = fetch(log)
    assert isinstance(data.records, bytes)
    assert {facts.codec_id for facts in batches(data.records)} == {
        ("none", "gzip", "snappy", "lz4", "zstd").index(codec)
    }
    assert [record.value for record in records(log, data)] == [b"%d" % number for number in range(0, 100, 2)]


def test_our_consumer_reads_on_behind_what_does_not_pass(log: EmbeddedLog, script: Scripted) -> None:
    append(log, 3, 3)
    script.decide = nothing
    with log.consumer(auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, 0)])
        while consumer.position((TOPIC, 0)) < 6:
            assert consumer.poll(1) == []
        script.decide = lambda record, read: record.offset == 7
        append(log, 3)
        assert [record.offset for record in consumer.poll(30)] == [7]
        assert consumer.position((TOPIC, 0)) in (8, 9)


def test_a_reader_of_committed_records_finds_the_transactions(log: EmbeddedLog, script: Scripted) -> None:
    script.decide = lambda record, read: record.value != b"no"
    with log.producer(transactional_id="tx") as producer:
        producer.init_transactions()
        for commit in (True, False, True):
            producer.begin_transaction()
            for value in (b"no", b"yes %d" % commit, b"no"):
                producer.send(TOPIC, value).result(60)
            producer.commit_transaction() if commit else producer.abort_transaction()
    data = fetch(log, isolation_level=READ_COMMITTED)
    assert len(data.aborted_transactions or ()) == 1
    with log.consumer(isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        consumer.assign([(TOPIC, 0)])
        found: list[Any] = []
        while consumer.position((TOPIC, 0)) < log.end_offset(TOPIC, 0):
            found += [record.value for record in consumer.poll(1)]
    assert found == [b"yes 1", b"yes 1"]


@pytest.mark.parametrize(
    ("decide", "said"),
    [
        (lambda record, read: 1 // 0, "ZeroDivisionError"),
        (lambda record, read: None, "answered None for offset 0"),
        (lambda record, read: 1, "answered 1 for offset 0; return True or False"),
    ],
)
def test_a_plugin_that_fails_fails_its_partition_alone(
    log: EmbeddedLog, script: Scripted, decide: Decide, said: str
) -> None:
    script.decide = decide
    append(log, 1)
    append(log, 1, topic="plain")
    answers: list[FetchResponse] = []
    topics = [FetchTopic(name, [FetchPartition(0, 0, NO_LIMIT)]) for name in (TOPIC, "plain")]
    log.broker.submit(FetchRequest(topics=topics), RequestContext(), answers.append)
    (failed,), (well,) = (topic.partitions for topic in answers[0].responses)
    assert (failed.error_code, failed.records) == (UnknownServerError.code, None)
    assert len(records(log, well)) == 1
    (fault,) = log.broker.runtime.kernel.faults
    assert (fault.origin.plugin, fault.place) == ("Scripted", "fetch filter a")
    assert said in fault.error
    script.decide = even
    assert len(records(log, fetch(log))) == 1, "it may recover"


def refuses(record: Record, read: ReadFacts) -> bool:
    raise ValueError("no table of tenants")


@pytest.mark.parametrize("over", ["tcp", "kernel"])
def test_a_consumer_says_which_partition_it_cannot_read_and_goes_on_when_it_can(
    log: EmbeddedLog,
    script: Scripted,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[..., None],
    over: str,
) -> None:
    """It tried again without a word."""
    script.decide = refuses
    append(log, 1)
    opened = log if over == "kernel" else logkernel.connect(log.listen())
    with opened.consumer(TOPIC, auto_offset_reset="earliest") as consumer:
        eventually(lambda: consumer.poll(0.05) == [] and bool(consumer.failing))
        assert {name: type(error) for name, error in consumer.failing.items()} == {(TOPIC, 0): UnknownServerError}
        (told,) = [row for row in caplog.records if row.name == "logkernel.client" and row.levelname == "WARNING"]
        assert "t-0 cannot be read at offset 0, and is tried again: UnknownServerError (code -1)" in told.getMessage()
        script.decide = even
        assert [record.offset for record in consumer.poll(30)] == [0]
        assert consumer.failing == {}
    if over == "tcp":
        opened.close()


@pytest.mark.parametrize("group", [(), ("-g", "g")])
def test_the_command_line_ends_at_its_timeout_and_names_the_error(
    log: EmbeddedLog,
    script: Scripted,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    group: tuple[str, ...],
) -> None:
    """`logkernel consume` waited for ever, with `--timeout` or without."""
    clock = count(0, 10)
    monkeypatch.setattr(consume, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    script.decide = refuses
    append(log, 1)
    assert main(["consume", TOPIC, "-b", log.listen(), *group]) == 1
    out, error = capsys.readouterr()
    assert out == ""
    assert error.splitlines()[-1] == (
        "logkernel: UnknownServerError: t-0 could not be read for 30 s (--timeout): the broker failed in a way the"
        " protocol has no code for; look into the broker's log"
    )


def test_nobody_gets_records_while_the_plugin_is_missing(tmp_path: Any, script: Scripted, caplog: Any) -> None:
    def opened(*plugins: object) -> EmbeddedLog:
        return EmbeddedLog(build(None, [f"log.dirs={tmp_path}"], kernel=Kernel(plugins=plugins)))

    with opened(script) as log:
        log.create_topic(TOPIC, config={"fetch.filters": "a"})
        append(log, 1)
    with opened() as log:
        assert "no plugin provides the fetch filter 'a', which is set for topics t" in caplog.text
        append(log, 1)
        assert fetch(log).error_code == UnknownServerError.code
    with opened(script) as log:
        assert len(records(log, fetch(log))) == 2


def test_one_fetch_filters_a_bounded_part_and_the_reader_still_gets_all(log: EmbeddedLog, script: Scripted) -> None:
    """All clients of the broker wait while a filter looks."""
    log.append_many(TOPIC, [Record(None, bytes(300_000), (), 5) for _ in range(3)], partition=0)
    for _ in range(8):
        log.append(TOPIC, bytes(300_000), partition=0)
    assert [record.offset for record in records(log, fetch(log))] == [0, 1, 2]
    script.seen.clear()
    offset, found = 0, []
    while offset < 11:
        found += records(log, fetch(log, offset, most=NO_LIMIT))
        offset = found[-1].offset + 1
    assert [record.offset for record in found] == list(range(11))


def test_a_reader_in_the_middle_of_a_batch_gets_what_the_batch_has(log: EmbeddedLog, script: Scripted) -> None:
    script.decide = even
    append(log, 6)
    assert [record.offset for record in records(log, fetch(log, 3))] == [0, 2, 4], "as unfiltered: clients skip"


def test_rotten_bytes_are_not_sent_with_a_new_checksum(log: EmbeddedLog, script: Scripted, tmp_path: Any) -> None:
    script.decide = even
    config = {"fetch.filters": "a"}
    with EmbeddedLog(build(None, [f"log.dirs={tmp_path}"], kernel=Kernel(plugins=[script]))) as stored:
        stored.create_topic("rotten", config=config)
        append(stored, 4, topic="rotten")
        (file,) = (tmp_path / "rotten-0").glob("*.log")
        data = bytearray(file.read_bytes())
        data[-2] ^= 1
        file.write_bytes(data)
        assert fetch(stored, topic="rotten").error_code == 2, "CORRUPT_MESSAGE"


def test_settings_change_it_while_the_broker_runs(log: EmbeddedLog, script: Scripted) -> None:
    append(log, 2)
    script.decide = even
    with log.admin() as admin:
        assert len(records(log, fetch(log))) == 1
        admin.alter_configs({("topic", TOPIC): {"fetch.filters": "a,match", "fetch.match.rules": "reader: none"}})
        assert records(log, fetch(log)) == []
        admin.alter_configs({("topic", TOPIC): {"fetch.filters": ""}})
        assert isinstance(fetch(log).records, FileSlice)
        for rules in ("reader", "reader:", ": all", "r: header=7", "r: size=7", "r: key"):
            with pytest.raises(InvalidConfig, match=r"is no (rule|condition)"):
                admin.alter_configs({("topic", TOPIC): {"fetch.match.rules": rules}})


def offsets_of(log: EmbeddedLog, client_id: str, topic: str) -> Sequence[int]:
    answers: list[FetchResponse] = []
    asked = FetchRequest(topics=[FetchTopic(topic, [FetchPartition(0, 0, NO_LIMIT)])])
    log.broker.submit(asked, RequestContext(client_id=client_id), answers.append)
    return [record.offset for record in records(log, answers[0].responses[0].partitions[0])]


def test_the_built_in_filter_goes_by_client_id(log: EmbeddedLog) -> None:
    rules = "*: none, billing-*: header:region=eu|us & value:a.b=7, keys: key!=k, audit: all"
    log.create_topic("m", config={"fetch.filters": "match", "fetch.match.rules": rules})
    rows = [
        Record(b"k", b'{"a": {"b": 7}}', (("region", b"ap"), ("region", b"eu")), 5),
        Record(b"k", b'{"a": {"b": 7}}', (("region", b"us"),), 5),
        Record(b"k", b'{"a": {"b": "8"}}', (("region", b"eu"),), 5),
        Record(b"k", b"{", (("region", b"eu"),), 5),
        Record(None, b'{"a": {"b": 7}}', (), 5),
    ]
    log.append_many("m", rows, partition=0)
    assert offsets_of(log, "billing-3", "m") == [0, 1]
    assert offsets_of(log, "keys", "m") == [4]
    assert offsets_of(log, "audit", "m") == [0, 1, 2, 3, 4]
    assert offsets_of(log, "who", "m") == []


def test_followers_copy_what_no_consumer_gets() -> None:
    with logkernel.open_cluster(brokers=2) as cluster:
        settings = {"min.insync.replicas": "2", "fetch.filters": "match", "fetch.match.rules": "nobody: none"}
        cluster.create_topic(TOPIC, assignment={0: [1, 2]}, config=settings)
        with cluster.admin() as admin:
            admin.alter_configs({("topic", TOPIC): {"fetch.match.rules": "*: none"}})
        with cluster.producer(acks="all") as producer:
            assert producer.send(TOPIC, b"v", partition=0).result(60).offset == 0, "both replicas hold it"
        with cluster.consumer(auto_offset_reset="earliest") as consumer:
            consumer.assign([(TOPIC, 0)])
            while consumer.position((TOPIC, 0)) < 1:
                assert consumer.poll(1) == []
