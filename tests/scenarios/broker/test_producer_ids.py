"""Idempotent producers: two with one id, epochs, ids that never repeat, state that outlives restarts and expiry."""

from __future__ import annotations

from typing import Any

import logkernel
from logkernel.errors import DuplicateSequenceNumber, InvalidProducerEpoch, OutOfOrderSequenceNumber
from logkernel.requests.producers import InitProducerIdRequest

OK = 0


def plain(world: Any, sequence: int, value: bytes, **more: Any) -> list[int]:
    return world.codes(world.send(sequence, value, transactional_id=None, transactional=False, **more))


def new_id(log: Any) -> int:
    answer = log.request(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1_000))
    assert answer.error_code == OK
    return int(answer.producer_id)


def test_two_clients_with_one_id_cannot_both_go_on(world: Any) -> None:
    """Whoever is second to a sequence is told so: his records are neither taken for the other's nor mixed in."""
    assert plain(world, 0, b"one 0") == [OK]
    assert plain(world, 1, b"one 1") == [OK]
    assert plain(world, 0, b"two 0") == [OK], "it looks like a repetition, and is not written"
    assert plain(world, 3, b"two 3") == [OutOfOrderSequenceNumber.code]
    assert plain(world, 2, b"one 2") == [OK]
    assert world.values() == [b"one 0", b"one 1", b"one 2"]


def test_a_repetition_whose_offset_is_forgotten_is_told_that_it_is_written(world: Any) -> None:
    for sequence in range(12):
        assert plain(world, sequence, b"%d" % sequence) == [OK]
    assert plain(world, 0, b"0") == [DuplicateSequenceNumber.code]
    assert world.values() == [b"%d" % number for number in range(12)]


def test_a_new_epoch_fences_the_old_one(world: Any) -> None:
    plain(world, 0, b"old")
    assert plain(world, 5, b"new", epoch=1) == [OutOfOrderSequenceNumber.code]
    assert plain(world, 0, b"new", epoch=1) == [OK]
    assert plain(world, 1, b"old", epoch=0) == [InvalidProducerEpoch.code]
    assert plain(world, 1, b"new", epoch=1) == [OK]
    assert world.values() == [b"old", b"new", b"new"]


def test_state_outlives_a_crash_and_a_clean_end(tmp_path: Any, make_world: Any) -> None:
    for life in range(4):
        log = logkernel.open(tmp_path)
        if life == 0:
            log.create_topic("t")
        world = make_world(log)
        if life:
            assert plain(world, life - 1, b"%d" % (life - 1)) == [OK], "a repetition across the restart"
        assert plain(world, life, b"%d" % life) == [OK]
        assert plain(world, life + 2, b"gap") == [OutOfOrderSequenceNumber.code]
        assert world.values() == [b"%d" % number for number in range(life + 1)]
        if life % 2:
            log.close()
        else:
            log.broker.logs.abandon()  # as if killed: nothing is flushed, no mark is left


def test_ten_batches_are_known_after_a_crash(tmp_path: Any, make_world: Any) -> None:
    log = logkernel.open(tmp_path)
    log.create_topic("t")
    world = make_world(log)
    for sequence in range(11):
        assert plain(world, sequence, b"%d" % sequence) == [OK]
    log.broker.logs.abandon()
    log = logkernel.open(tmp_path)
    world = make_world(log)
    assert plain(world, 0, b"0") == [OutOfOrderSequenceNumber.code]
    for sequence in range(1, 11):
        assert plain(world, sequence, b"%d" % sequence) == [OK], "a repetition"
    assert world.values() == [b"%d" % number for number in range(11)]
    log.close()


def test_ids_never_repeat(tmp_path: Any) -> None:
    given: list[int] = []
    for life in range(5):
        log = logkernel.open(tmp_path)
        given += [new_id(log) for _ in range(3)]
        if life % 2:
            log.close()
        else:
            log.broker.logs.abandon()
    assert len(set(given)) == len(given) == 15
    assert given == sorted(given)


def test_an_idle_producer_is_forgotten_and_may_go_on(make_world: Any) -> None:
    with logkernel.open(producer_id_expiration_ms=1) as log:
        log.create_topic("t")
        world = make_world(log)
        plain(world, 0, b"a")
        world.send(0, b"open", producer=8)
        log.broker.scheduler.expire_producers()
        assert [entry.producer_id for entry in log.broker.replicas.led["t", 0].leader.producers.entries()] == [8]
        assert plain(world, 41, b"b") == [OK], "KIP-360: nothing is known of it any more"
        assert world.mark(producer=8) == [OK]
