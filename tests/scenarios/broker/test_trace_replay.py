"""A trace of the serving broker's partition machines replays through fresh ones to the same effects.

What a client did to a partition must be explained by the machine's events alone: nothing writes its state
or its log behind its back.
"""

from copy import deepcopy

import pytest

import logkernel
from logkernel.partition.leader import Leader
from logkernel.partition.producers import ProducerStates

EVENTS = ("on_produce", "on_appended", "on_flushed", "on_append_failed", "on_expired", "on_log_start")


def told(effects):
    """Effects without the identity of tickets."""
    if effects is None:
        return None
    appended = None if effects.append is None else deepcopy(effects.append)
    return (effects.truncate, appended, effects.persist, [outcome for _, outcome in effects.answer], effects.wake)


def state(leader):
    return (
        leader.log_start, leader.log_end, leader.high_watermark, leader.unflushed, leader.next_deadline(),
        sorted((e.producer_id, e.producer_epoch, tuple(e.batches)) for e in leader.producers.entries()),
    )  # fmt: skip


class Recorder:
    """Stands in for a leader: every event goes to it and is written down; everything else is its own."""

    def __init__(self, leader):
        object.__setattr__(self, "leader", leader)
        object.__setattr__(self, "trace", [])
        object.__setattr__(self, "start", (leader.log_start, leader.log_end, leader.leader_epoch, leader.isr))

    def __getattr__(self, name):
        found = getattr(self.leader, name)
        if name not in EVENTS:
            return found

        def record(*args):
            kept = deepcopy([arg if isinstance(arg, (int, list)) else "ticket" for arg in args])
            effects = found(*args)
            self.trace.append((name, kept, told(effects), self.flush_messages))
            return effects

        return record

    def __setattr__(self, name, value):
        assert name in ("min_isr", "flush_messages", "log_append_time"), f"the shell set {name} itself"
        setattr(self.leader, name, value)


@pytest.mark.parametrize("settings", [{}, {"flush_messages": 3}], ids=["default", "flush"])
def test_a_trace_replays_to_the_same_effects(tmp_path, settings, eventually):
    confluent = pytest.importorskip("confluent_kafka")
    with logkernel.open(tmp_path) as log:
        log.create_topic("t", partitions=2, **settings)
        recorders = {}
        for name, replica in log._broker.replicas.items():
            recorders[name] = replica.leader = Recorder(replica.leader)
        address = log.listen()
        for acks in ("all", "1", "0"):
            idempotent = {"enable.idempotence": True} if acks == "all" else {}
            producer = confluent.Producer({"bootstrap.servers": address, "acks": acks, **idempotent})
            for number in range(200):
                producer.produce("t", b"%d" % number, partition=number % 2)
                if number % 20 == 0:
                    producer.flush(20)
            assert producer.flush(20) == 0
        eventually(lambda: sum(log.end_offset("t", partition) for partition in (0, 1)) == 600, what="acks=0 arrives")
        for (_, partition), recorder in recorders.items():
            log_start, log_end, epoch, isr = recorder.start
            fresh = Leader(
                node_id=1, leader_epoch=epoch, isr=isr, log_start=log_start, log_end=log_end,
                high_watermark=log_end, producers=ProducerStates(),
            )  # fmt: skip
            assert len(recorder.trace) > 20
            for event, args, effects, flush_messages in recorder.trace:
                fresh.flush_messages = flush_messages
                assert told(getattr(fresh, event)(*args)) == effects, event
            assert state(fresh) == state(recorder.leader)
            appended = [facts for _, _, effects, _ in recorder.trace if effects and effects[1] for facts in effects[1]]
            assert [(facts.base_offset, facts.last_offset) for facts in appended] == stored(log, partition)


def stored(log, partition):
    """(base, last) offset of every batch on disk."""
    from logkernel.record.batch import batches

    found = log._broker.replicas["t", partition].log.read(0, 1 << 30)
    return [(facts.base_offset, facts.last_offset) for facts in batches(found.read())]
