"""The table of `client.transactions`, with a coordinator that answers as it is told."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from logkernel.client.cluster.calls import Call, ClientCore
from logkernel.client.producer.transactions import ABORTABLE, FATAL, IN_TRANSACTION, MAX_EPOCH, READY, V1, Transactions
from logkernel.client.settings.producer import load_producer
from logkernel.client.vocabulary import GroupMetadata
from logkernel.errors import (
    InvalidProducerEpoch,
    LogkernelError,
    ProducerFenced,
    TopicAuthorizationFailed,
    TransactionAbortable,
)
from logkernel.requests.producers import InitProducerIdRequest, InitProducerIdResponse
from logkernel.requests.transactions import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    EndTxnResponse,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)

A = ("t", 0)


class Scene:
    """A transactional producer, and the calls that it makes."""

    def __init__(self, version: int = 2) -> None:
        settings = load_producer({"bootstrap_servers": "h:1", "transactional_id": "me"})
        self.core = ClientCore(settings, [("h", 1)], Random(1))
        self.machine = Transactions(self.core, settings)
        self.machine.level = lambda: version  # type: ignore[method-assign]

    def asked(self, kind: type) -> Call:
        """The one call that is open; it must be of this kind."""
        (call,) = self.core.calls
        assert isinstance(call.request, kind)
        self.core.calls.clear()
        return call

    def answer(self, kind: type, response: Any = None, error: Exception | None = None) -> Any:
        call = self.asked(kind)
        call.done(response, error)
        return call.request

    def ready(self) -> Scene:
        operation = self.machine.init()
        self.answer(InitProducerIdRequest, InitProducerIdResponse(producer_id=9, producer_epoch=4))
        assert operation.done
        assert self.machine.state == READY
        return self

    def begun(self) -> Scene:
        self.ready()
        self.machine.begin()
        return self


def test_what_may_be_done_when() -> None:
    machine = Scene().machine
    for early in (machine.begin, machine.check_send, lambda: machine.end(commit=True)):
        with pytest.raises(LogkernelError, match="uninitialized"):
            early()
    scene = Scene().begun()
    scene.machine.check_send()
    with pytest.raises(LogkernelError, match="in transaction"):
        scene.machine.begin()


def test_the_new_way() -> None:
    scene = Scene().begun()
    machine = scene.machine
    assert machine.may_send(A)
    operation = machine.end(commit=True)
    machine.step(incomplete=True)
    assert not scene.core.calls, "batches come first"
    machine.step(incomplete=False)
    request = scene.answer(EndTxnRequest, EndTxnResponse(producer_id=9, producer_epoch=5))
    assert request.committed
    assert operation.done
    assert (machine.state, machine.epoch) == (READY, 5)


def test_the_old_way() -> None:
    scene = Scene(version=1).begun()
    machine = scene.machine
    assert not machine.may_send(A)
    assert machine.wants_partitions, "the sender steps again: else nobody would, before something else wakes it"
    machine.step(incomplete=True)
    assert not machine.wants_partitions
    call = scene.asked(AddPartitionsToTxnRequest)
    assert call.withheld == V1
    assert call.request.v3_and_below_topics[0].partitions == [0]
    call.done(AddPartitionsToTxnResponse(), None)
    assert machine.may_send(A)
    operation = machine.send_offsets({A: 3}, GroupMetadata("g"))
    scene.answer(AddOffsetsToTxnRequest, AddOffsetsToTxnResponse())
    request = scene.answer(TxnOffsetCommitRequest, TxnOffsetCommitResponse())
    assert request.topics[0].partitions[0].committed_offset == 3
    assert operation.done
    machine.end(commit=False)
    machine.step(incomplete=False)
    assert not scene.answer(EndTxnRequest, EndTxnResponse()).committed
    assert (machine.state, machine.epoch) == (READY, 4)


def test_a_transaction_without_anything_ends_at_once() -> None:
    scene = Scene().begun()
    operation = scene.machine.end(commit=True)
    scene.machine.step(incomplete=False)
    assert operation.done
    assert not scene.core.calls


def test_offsets_are_committed_one_after_the_other() -> None:
    scene = Scene().begun()
    first = scene.machine.send_offsets({A: 1}, GroupMetadata("g"))
    second = scene.machine.send_offsets({A: (2, 7, "text")}, GroupMetadata("h", 3, "m"))
    scene.answer(TxnOffsetCommitRequest, TxnOffsetCommitResponse())
    assert first.done
    assert not second.done
    request = scene.answer(TxnOffsetCommitRequest, TxnOffsetCommitResponse())
    assert (request.group_id, request.generation_id, request.member_id) == ("h", 3, "m")
    assert request.topics[0].partitions[0].committed_metadata == "text"
    assert second.done


@pytest.mark.parametrize("version", [1, 2])
def test_after_an_error_there_is_only_the_abort(version: int) -> None:
    scene = Scene(version).begun()
    machine = scene.machine
    machine.added.add(A)
    machine._started = True
    machine.batch_failed(TransactionAbortable("no"))
    assert machine.state == ABORTABLE
    for late in (machine.check_send, lambda: machine.end(commit=True)):
        with pytest.raises(TransactionAbortable):
            late()
    operation = machine.end(commit=False)
    machine.step(incomplete=False)
    scene.answer(EndTxnRequest, EndTxnResponse(producer_id=9 if version == 2 else -1, producer_epoch=5))
    if version == 1:
        request = scene.answer(InitProducerIdRequest, InitProducerIdResponse(producer_id=9, producer_epoch=5))
        assert (request.producer_id, request.producer_epoch) == (9, 4), "it grows its own epoch"
    assert operation.done
    assert operation.error is None
    assert (machine.state, machine.epoch, machine.error) == (READY, 5, None)


def test_a_commit_fails_with_its_batch() -> None:
    scene = Scene().begun()
    assert scene.machine.may_send(A)
    operation = scene.machine.end(commit=True)
    scene.machine.batch_failed(TopicAuthorizationFailed("no"))
    assert isinstance(operation.error, TopicAuthorizationFailed)
    assert scene.machine.state == ABORTABLE


@pytest.mark.parametrize("error", [ProducerFenced("new one"), InvalidProducerEpoch("new one")])
def test_who_is_fenced_is_fenced_for_good(error: Exception) -> None:
    scene = Scene().begun()
    assert scene.machine.may_send(A)
    operation = scene.machine.end(commit=True)
    scene.machine.step(incomplete=False)
    scene.answer(EndTxnRequest, error=error)
    assert operation.error is error
    assert scene.machine.state == FATAL
    for late in (scene.machine.check_send, scene.machine.begin, lambda: scene.machine.end(commit=False)):
        with pytest.raises(type(error)):
            late()


def test_the_epochs_of_an_idempotent_producer() -> None:
    settings = load_producer({"bootstrap_servers": "h:1"})
    core = ClientCore(settings, [("h", 1)], Random(1))
    machine = Transactions(core, settings)
    machine.need_id()
    machine.need_id()
    (call,) = core.calls
    core.calls.clear()
    call.done(InitProducerIdResponse(producer_id=3, producer_epoch=0), None)
    assert machine.new_epoch()
    assert (machine.producer_id, machine.epoch) == (3, 1)
    machine.epoch = MAX_EPOCH
    assert not machine.new_epoch(), "a new id first"
    assert len(core.calls) == 1
    assert not machine.has_id
    assert machine.state != IN_TRANSACTION
