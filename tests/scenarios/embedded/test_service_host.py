"""The shell's side of services: deleted topics, failed appends."""

import pytest

import logkernel
from logkernel.broker.runtime import flush_here
from logkernel.contracts import Decision, RequestContext
from logkernel.errors import CoordinatorNotAvailable, KafkaStorageError, NotCoordinator
from logkernel.partition.effects import Outcome
from logkernel.requests.groups import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from logkernel.requests.transactions import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest


def commit(log, offset):
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
    topic = OffsetCommitRequestTopic(name="t", partitions=[partition])
    request = OffsetCommitRequest(group_id="g", generation_id_or_member_epoch=-1, topics=[topic])
    return log.request(request).topics[0].partitions[0].error_code


def committed(log):
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    response = log.request(OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)]))
    return response.groups[0].topics[0].partitions[0].committed_offset


def test_committed_offsets_survive_a_restart(tmp_path):
    with logkernel.open(tmp_path) as log:
        log.create_topic("t")
        assert commit(log, 7) == 0
    with logkernel.open(tmp_path) as log:
        assert committed(log) == 7


def test_a_topic_made_anew_inherits_no_offsets():
    with logkernel.open() as log:
        log.create_topic("t")
        assert commit(log, 7) == 0
        log.delete_topic("t")
        log.create_topic("t")
        assert committed(log) == -1


def test_a_failed_append_is_answered_and_forgotten(monkeypatch):
    with logkernel.open() as log:
        log.create_topic("t")
        assert commit(log, 7) == 0
        for (topic, _), replica in log.broker.replicas.led.items():
            if topic == "__consumer_offsets":
                monkeypatch.setattr(
                    type(replica),
                    "store",
                    lambda self, batches, write, *_: write.receiver.deliver(Outcome(KafkaStorageError.code)),
                )
        assert commit(log, 9) in (KafkaStorageError.code, CoordinatorNotAvailable.code, 16)
        monkeypatch.undo()
        assert committed(log) == 7


def test_the_answer_of_a_whole_request_is_taken_as_it_is(monkeypatch):
    with logkernel.open() as log:
        log.create_topic("t")
        service = log.broker.services.answering("OffsetCommitRequest").service
        monkeypatch.setattr(type(service), "join", lambda *_: pytest.fail("there is nothing to be joined"))
        assert commit(log, 7) == 0


def test_who_shares_a_log_folds_what_another_appends(monkeypatch):
    with logkernel.open() as log:
        log.create_topic("t")
        broker, folded = log.broker, []
        assert commit(log, 7) == 0
        host = broker.services.answering("OffsetCommitRequest")
        other = next(one for one in host.shards.hosts if one is not host)
        (shard,) = other.loaded.values()
        monkeypatch.setattr(shard, "replay", lambda records, producer: folded.append((len(records), producer)))
        assert commit(log, 8) == 0
        assert folded == [(1, None)]


def test_no_shard_is_there_whose_log_another_could_not_fold(monkeypatch):
    with logkernel.open() as log:
        log.create_topic("t")
        broker = log.broker
        host = broker.services.answering("OffsetCommitRequest")
        other = next(one for one in host.shards.hosts if one is not host)

        def broken(*_):
            raise ValueError("cannot be made")

        monkeypatch.setattr(type(other.service), "machine", broken)
        assert commit(log, 7) == NotCoordinator.code
        assert not host.loaded
        monkeypatch.undo()
        assert commit(log, 8) == 0
        assert committed(log) == 8


def submit_both(broker, answers):
    """A commit of offset 8, and a fetch behind it."""
    row = OffsetCommitRequestPartition(partition_index=0, committed_offset=8)
    request = OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t", partitions=[row])])
    broker.submit(request, RequestContext(), answers.append)
    asked = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=asked)])
    broker.submit(fetch, RequestContext(), answers.append)


class UnderWay:
    """A commit of offset 8 behind one of 7, and a fetch: both wait for a flush that is held."""

    def __init__(self, log):
        self.broker = log.broker
        self.answers = []
        self._flushes = []
        self.broker.runtime.run_flush = lambda work, done: self._flushes.append((work, done))
        submit_both(self.broker, self.answers)

    @property
    def codes(self):
        return [self.answers[0].topics[0].partitions[0].error_code, self.answers[1].groups[0].error_code]

    def shard(self):
        (shard,) = [one for one in self.broker.services.answering("OffsetFetchRequest").loaded.values() if one._held]
        return shard

    def flush(self):
        self.broker.runtime.run_flush = flush_here
        for work, done in self._flushes:
            work()
            done(None)


@pytest.fixture
def log():
    with logkernel.open(log_flush_interval_messages=1) as log:
        log.create_topic("t")
        assert commit(log, 7) == 0
        yield log


def test_what_rests_on_records_under_way_is_answered_after_them(log):
    waiting = UnderWay(log)
    assert waiting.answers == [], "8 is appended and replayed, but it may still be lost"
    waiting.flush()
    committed_response, fetched = waiting.answers
    assert committed_response.topics[0].partitions[0].error_code == 0
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == 8


def test_what_rests_on_records_that_fail_is_refused_with_them(log):
    waiting = UnderWay(log)
    waiting.shard().failed(Decision(), Outcome(KafkaStorageError.code))
    assert waiting.codes == [NotCoordinator.code] * 2
    waiting.flush()
    assert len(waiting.answers) == 2, "the old machine's commits are nobody's"


def test_what_is_under_way_in_a_shard_that_is_there_no_more_comes_back_to_nobody(log):
    waiting = UnderWay(log)
    broker, shard = waiting.broker, waiting.shard()
    machine = shard.machine
    shard._timer = broker.runtime.timers.at(0, lambda: pytest.fail("its timer goes on"))
    host = broker.services.answering("OffsetFetchRequest")
    host.unload(shard.number, OSError("told to"))
    assert waiting.codes == [NotCoordinator.code] * 2
    assert shard.machine is not machine, "what it asked of others is answered to it no more"
    broker.step()
    assert not any(one.loaded for one in host.shards.hosts)
    submit_both(broker, later := [])
    shard.failed(Decision(), Outcome(KafkaStorageError.code))
    assert later == [], "who waits on the new shard waits on"
    waiting.flush()
    assert (len(waiting.answers), len(later)) == (2, 2)
    assert committed(log) == 8
    assert commit(log, 9) == 0
    assert committed(log) == 9


def test_what_rests_on_a_marker_that_is_not_committed_waits_for_it(log):
    """A group's offsets of a transaction were told as soon as its marker lay in the local log, and could be lost."""
    held, answers = [], []
    log.broker.runtime.run_flush = lambda work, done: held.append((work, done))
    host = log.broker.services.answering("OffsetFetchRequest")
    (number,) = [one for one, shard in host.loaded.items() if host.replica(one).log.end_offset]
    marker = WritableTxnMarker(9, 0, True, [WritableTxnMarkerTopic("__consumer_offsets", [number])], 0)
    log.broker.submit(WriteTxnMarkersRequest([marker]), RequestContext(internal=True), answers.append)
    asked = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    fetch = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=asked)])
    log.broker.submit(fetch, RequestContext(), answers.append)
    assert answers == []
    log.broker.runtime.run_flush = flush_here
    for work, done in held:
        work()
        done(None)
    written, fetched = answers
    assert written.markers[0].topics[0].partitions[0].error_code == 0
    assert fetched.groups[0].topics[0].partitions[0].committed_offset == 7


def test_what_rests_on_another_services_record_that_is_not_committed_waits_for_it(log, monkeypatch):
    host = log.broker.services.answering("OffsetFetchRequest")
    other = next(one for one in host.shards.hosts if one is not host)
    told = []
    monkeypatch.setattr(other, "deliver", told.append)
    waiting = UnderWay(log)
    shard = other.loaded[waiting.shard().number]
    shard.tell(lambda wall_ms, mono_ms: Decision(answers=[(1, "by what it read")]))
    assert told == []
    waiting.flush()
    assert told == [[(1, "by what it read")]]
    shard.tell(lambda wall_ms, mono_ms: Decision(answers=[(2, "at once")]))
    assert told[1:] == [[(2, "at once")]]
