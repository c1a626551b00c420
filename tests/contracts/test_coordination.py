"""Every coordination keeps what is committed, whole and in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import count
from uuid import UUID

import pytest
from attrs import Factory, define
from hypothesis import given
from hypothesis import strategies as st

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import Coordination, MetadataChange
from logkernel.controller.controller import Controller
from logkernel.controller.image import ClusterImage
from logkernel.errors import CorruptMessage, KafkaStorageError
from logkernel.plugins.transport import local, memory
from logkernel.vocabulary import Record


@define
class ListLog:
    """A StateLog in memory whose batches outlive it; only synced ones count."""

    batches: list[list[Record]] = Factory(list)
    closed: bool = False

    def append(self, records: Sequence[Record], *, sync: bool) -> int:
        assert sync, "a commit must be durable"
        assert not self.closed
        self.batches.append(list(records))
        return sum(map(len, self.batches))

    def replace(self, records: Sequence[Record]) -> None:
        assert not self.closed
        self.batches = [list(records)]

    def records(self) -> Iterator[Record]:
        return (record for batch in self.batches for record in batch)

    def close(self) -> None:
        self.closed = True


def unused() -> ListLog:
    raise AssertionError("memory needs no log")


def open_local() -> Coordination:
    found = local.logkernel_coordination("local", ListLog)
    assert found is not None
    return found


def open_memory() -> Coordination:
    found = memory.logkernel_coordination("memory", unused)
    assert found is not None
    return found


Open = Callable[[], Coordination]
EVERY = pytest.mark.parametrize("make", [open_local, open_memory], ids=["local", "memory"])
CHANGES = [
    MetadataChange("topic", "orders", {"id": "x", "partitions": [[[1], [1], 1, 0, 0]]}),
    MetadataChange("config", "topic:orders", {"retention.ms": "1", "ключ": "值"}),
    MetadataChange("topic", "orders", None),
]


@EVERY
def test_changes_come_back_whole_and_in_order(make: Open) -> None:
    coordination = make()
    assert isinstance(coordination, Coordination)
    assert list(coordination.changes()) == []
    coordination.commit(CHANGES[:2])
    coordination.commit([])
    coordination.commit(CHANGES[2:])
    assert list(coordination.changes()) == CHANGES
    assert list(coordination.changes()) == CHANGES


@EVERY
def test_what_was_given_can_be_changed_afterwards(make: Open) -> None:
    coordination = make()
    value = {"a": [1]}
    coordination.commit([MetadataChange("x", "y", value)])
    value["a"].append(2)
    (kept,) = coordination.changes()
    assert kept.value == {"a": [1]}


@EVERY
def test_closed_is_closed(make: Open) -> None:
    coordination = make()
    coordination.close()
    coordination.close()
    with pytest.raises(KafkaStorageError, match="open the broker again"):
        coordination.commit(CHANGES)
    with pytest.raises(KafkaStorageError):
        list(coordination.changes())


@EVERY
def test_what_was_kept_can_be_replaced(make: Open) -> None:
    coordination = make()
    coordination.commit(CHANGES)
    assert coordination.kept() == 3
    coordination.replace(CHANGES[1:2])
    assert list(coordination.changes()) == CHANGES[1:2]
    coordination.commit(CHANGES[:1])
    assert list(coordination.changes()) == [CHANGES[1], CHANGES[0]]
    assert coordination.kept() == 2
    coordination.replace([])
    assert list(coordination.changes()) == []
    coordination.close()
    with pytest.raises(KafkaStorageError):
        coordination.replace(CHANGES)


TEXT = st.text(st.characters(codec="utf-8"))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
ANY_CHANGE = st.builds(
    MetadataChange,
    NAMES,
    TEXT,
    st.none() | st.dictionaries(TEXT, JSON, max_size=3),
)


@EVERY
@given(commits=st.lists(st.lists(ANY_CHANGE, max_size=3), max_size=4))
def test_any_change_survives(make: Open, commits: list[list[MetadataChange]]) -> None:
    coordination = make()
    for changes in commits:
        coordination.commit(changes)
    assert list(coordination.changes()) == [change for changes in commits for change in changes]


@EVERY
def test_a_controllers_image_is_the_same_after_a_restart(make: Open) -> None:
    ids = count(1)
    controller = Controller(BrokerConfig.load(), 1, lambda: UUID(int=next(ids)))
    coordination, image = make(), ClusterImage()
    for name in ("a", "b", "c"):
        result = controller.create_topic(image, name, 3, settings={"flush.ms": "1"})
        coordination.commit(result.changes)
        image.apply_all(result.changes)
    result = controller.delete_topic(image, "b")
    coordination.commit(result.changes)
    image.apply_all(result.changes)
    assert ClusterImage.of(coordination.changes()) == image
    assert sorted(image.topics) == ["a", "c"]


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
    log.closed = False
    again = local.logkernel_coordination("local", lambda: log)
    assert again is not None
    assert list(again.changes()) == CHANGES


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
