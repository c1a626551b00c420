"""What a sender does with a batch that the broker found out of order, and with what is named in passing."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from logkernel.client.cluster.metadata import TopicInfo
from logkernel.client.producer.accumulator import Queue
from logkernel.client.producer.batches import Batch
from logkernel.client.producer.sender import Sender
from logkernel.client.producer.sequences import Sequences
from logkernel.client.settings.producer import load_producer
from logkernel.errors import (
    KafkaError,
    KafkaStorageError,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
)
from logkernel.requests.data import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)


def sender(**settings: Any) -> Sender:
    values = load_producer({"bootstrap_servers": "h:1", **settings})
    return Sender(values, [("h", 1)], Random(1), None, None)  # type: ignore[arg-type]


def pending(*, unresolved: bool, lost: bool, following: bool) -> tuple[Sequences, Batch]:
    sequences, batch = Sequences(), Batch("t", 0, 100, 0, 0)
    batch.append(0, None, b"v", ())
    batch.close(None)
    sequences.next, sequences.last_acked = 10, 9
    batch.stamp(7, 0, sequences.assign(batch, -1, -1), False)
    batch.sequence = 10 if following else 12
    sequences.last_acked = 9
    sequences.unresolved, batch.lost = unresolved, lost
    return sequences, batch


@pytest.mark.parametrize(
    ("unresolved", "lost", "following", "again", "reset"),
    [
        (False, False, False, True, False),  # an earlier one is still to come
        (False, True, True, True, True),  # the broker lost our state
        (True, False, False, True, True),  # nothing of it is under way: under a new epoch
        (True, True, False, False, False),  # a copy may still arrive under the old epoch: it fails
    ],
)
def test_out_of_order(unresolved: bool, lost: bool, following: bool, again: bool, reset: bool) -> None:
    sequences, batch = pending(unresolved=unresolved, lost=lost, following=following)
    assert sender()._out_of_order(sequences, batch) is again
    assert sequences.reset is reset


def test_in_a_transaction_lost_state_is_an_error() -> None:
    sequences, batch = pending(unresolved=False, lost=False, following=True)
    assert not sender(transactional_id="me")._out_of_order(sequences, batch)


def on_its_way(made: Sender) -> tuple[Queue, Batch]:
    made.core.metadata.topics["t"] = TopicInfo("t", leaders=[1], epochs=[3])
    queue = made.accumulator.queue("t", 0)
    assert made.accumulator.pool.take(1000)
    batch = made.accumulator.new_batch(queue, 1000, 0)
    batch.append(0, None, b"v", ())
    made.accumulator.add_open(queue, batch)
    made.accumulator.close_open(queue)
    made.accumulator.remove(queue, batch)
    batch.stamp(7, 0, queue.sequences.assign(batch, 7, 0), False)
    queue.sequences.wire = 1
    return queue, batch


@pytest.mark.parametrize("error", [NotLeaderOrFollower, KafkaStorageError, UnknownTopicOrPartition])
def test_the_sequence_of_a_batch_that_a_leader_may_hold_that_is_one_no_longer_is_not_given_again(
    error: type[KafkaError],
) -> None:
    """World seed 41271: the next record got that sequence, and was acknowledged as its duplicate."""
    made = sender()
    queue, batch = on_its_way(made)
    made.answered(
        1, [batch], ProduceResponse([TopicProduceResponse("t", [PartitionProduceResponse(0, error.code)])]), None, 10
    )
    assert queue.sequences.pending == [batch]
    made.step(0, 1_000_000)
    assert queue.sequences.pending == []
    assert queue.sequences.needs_epoch


def test_a_leader_that_is_named_in_passing_is_believed() -> None:
    made = sender()
    queue, batch = on_its_way(made)
    row = PartitionProduceResponse(0, NotLeaderOrFollower.code, current_leader=LeaderIdAndEpoch(2, 4))
    response = ProduceResponse([TopicProduceResponse("t", [row])], node_endpoints=[NodeEndpoint(2, "far", 99)])
    made.answered(1, [batch], response, None, 10)
    assert made.core.metadata.leader("t", 0) == 2
    assert made.core.metadata.brokers[2] == ("far", 99)
    assert list(queue.batches) == [batch]
    assert batch.retry_ms > 10
