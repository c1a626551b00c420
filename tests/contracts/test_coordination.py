"""The built-in coordinations keep the contract; and what is true of one of them."""

from __future__ import annotations

import pytest

from logkernel.contracts import StateLog
from logkernel.errors import CorruptMessage
from logkernel.plugins.transport import local, memory
from logkernel.testing.contracts import CoordinationContract
from logkernel.testing.contracts.coordination import CHANGES, ListLog
from logkernel.vocabulary import Record


def unused() -> ListLog:
    raise AssertionError("memory needs no log")


class TestLocal(CoordinationContract):
    name = "local"


class TestMemory(CoordinationContract):
    name = "memory"
    durable = False

    def open_log(self) -> StateLog:
        return unused()


def test_local_keeps_a_commit_as_one_batch_of_json() -> None:
    log = ListLog()
    coordination = local.logkernel_coordination("local", lambda: log)
    assert coordination is not None
    coordination.commit(CHANGES)
    (batch,) = log.batches
    assert [record.key for record in batch] == [b"topic\0orders", b"config\0topic:orders", b"topic\0orders"]
    assert batch[1].value == '{"retention.ms":"1","ключ":"值"}'.encode()
    assert batch[2].value is None
    coordination.close()
    assert log.closed


@pytest.mark.parametrize(
    "record",
    [
        Record(None, b"{}", offset=7),
        Record(b"topic", b"{}", offset=7),
        Record(b"topic\0\xff", b"{}", offset=7),
        Record(b"topic\0a", b"{", offset=7),
        Record(b"topic\0a", b"[1]", offset=7),
        Record(b"topic\0a", b"[" * 200_000, offset=7),
    ],
)
def test_local_names_the_record_that_is_no_change(record: Record) -> None:
    coordination = local.logkernel_coordination("local", lambda: ListLog([[record]]))
    assert coordination is not None
    with pytest.raises(CorruptMessage, match="offset 7 of the metadata log"):
        list(coordination.changes())


def test_each_plugin_answers_to_its_own_name_only() -> None:
    assert local.logkernel_coordination("memory", unused) is memory.logkernel_coordination("local", unused) is None
    assert list(local.logkernel_names()) == [("coordination", "local")]
