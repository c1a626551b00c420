"""A trace of the serving broker's partition machines replays through fresh ones to the same effects.

What a client did to a partition must be explained by the machine's events alone: nothing writes its state
or its log behind its back.
"""

from copy import deepcopy

import pytest

import logkernel
from logkernel.partition.effects import Effects
from logkernel.partition.leader import Leader
from logkernel.partition.producers import ProducerStates
from logkernel.record.control import EndTxnMarker
from logkernel.vocabulary import BatchFacts

EVENTS = (
    "on_verification", "on_produce", "on_marker", "on_appended", "on_flushed", "on_append_failed", "on_expired",
    "on_log_start",
)  # fmt: skip
PLAIN = (int, list, type(None), BatchFacts, EndTxnMarker)


def told(effects):
    """Effects without the identity of receivers."""
    if not isinstance(effects, Effects):
        return effects
    appended = None if effects.append is None else deepcopy(effects.append)
    answered = [outcome for _, outcome in effects.answer]
    return (effects.truncate, appended, effects.aborted, effects.persist, answered, effects.wake)


def state(leader):
    return (
        leader.log_start, leader.log_end, leader.high_watermark, leader.unflushed, leader.next_deadline(),
        leader.last_stable_offset(), sorted(leader.producers.entries(), key=lambda entry: entry.producer_id),
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
            kept = deepcopy([arg if isinstance(arg, PLAIN) else "receiver" for arg in args])
            effects = found(*args)
            self.trace.append((name, kept, told(effects), self.flush_messages))
            return effects

        return record

    def __setattr__(self, name, value):
        assert name in ("min_isr", "flush_messages", "log_append_time"), f"the shell set {name} itself"
        setattr(self.leader, name, value)


@pytest.mark.parametrize("settings", [{}, {"flush_messages": 3}], ids=["default", "flush"])
def test_a_trace_replays_to_the_same_effects(tmp_path, settings, eventually, make_world):
    confluent = pytest.importorskip("confluent_kafka")
    with logkernel.open(tmp_path) as log:
        log.create_topic("t", partitions=2, **settings)
        recorders = {}
        for name, replica in log.broker.replicas.led.items():
            recorders[name] = replica.leader = Recorder(replica.leader)
        world = make_world(log)
        for number in range(12):
            for partition in (0, 1):
                world.coordinator.held = number % 3 == 0
                now = log.broker.runtime.clock.wall_ms()
                sequences = (2 * number, 2 * number + 1)
                answers = [world.send(first, partitions=(partition,), timestamp_ms=now) for first in sequences]
                if world.coordinator.held:
                    world.coordinator.speak()
                assert [world.codes(answer) for answer in answers] == [[0], [0]]
                assert world.mark(committed=number % 4 > 0, partitions=(partition,)) == [0]
        assert len(world.values()) == 18
        address = log.listen()
        for acks in ("all", "1", "0"):
            idempotent = {"enable.idempotence": True} if acks == "all" else {}
            producer = confluent.Producer({"bootstrap.servers": address, "acks": acks, **idempotent})
            for number in range(200):
                producer.produce("t", b"%d" % number, partition=number % 2)
                if number % 20 == 0:
                    producer.flush(20)
            assert producer.flush(20) == 0
        eventually(lambda: sum(log.end_offset("t", partition) for partition in (0, 1)) == 672, what="acks=0 arrives")
        for (_, partition), recorder in recorders.items():
            log_start, log_end, epoch, isr = recorder.start
            fresh = Leader(
                node_id=1, leader_epoch=epoch, isr=isr, log_start=log_start, log_end=log_end,
                high_watermark=log_end, producers=ProducerStates(),
            )  # fmt: skip
            assert len(recorder.trace) > 20
            assert {event for event, *_ in recorder.trace} >= {"on_verification", "on_marker"}
            for event, args, effects, flush_messages in recorder.trace:
                fresh.flush_messages = flush_messages
                assert told(getattr(fresh, event)(*args)) == effects, event
            assert state(fresh) == state(recorder.leader)
            decided = [effects for _, _, effects, _ in recorder.trace if isinstance(effects, tuple)]
            appended = [facts for _, batches, *_ in decided for facts in batches or ()]
            assert [(facts.base_offset, facts.last_offset) for facts in appended] == stored(log, partition)


def stored(log, partition):
    """(base, last) offset of every batch on disk."""
    from logkernel.record.batch import batches

    found = log.broker.replicas.led["t", partition].log.read(0, 1 << 30)
    return [(facts.base_offset, facts.last_offset) for facts in batches(found.read())]
