"""The contract of what is done once for each record, run over plain Python and over the compiled codec."""

from __future__ import annotations

import gc
import inspect
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from logkernel.record import pure_encode, pure_handing, pure_hash, pure_sending

PARTITIONS = 3
NAMES = ("Holder", "Lane", "Route", "Sending", "quick")
quick_way = pytest.mark.parametrize("loops", ["compiled"], indirect=True)
"""Plain Python has no quick way: there `send` itself takes every record."""


@pytest.fixture(params=["pure", "compiled"])
def loops(request: pytest.FixtureRequest) -> Any:
    if request.param == "compiled":
        return pytest.importorskip(
            "logkernel.record._loops", reason="the compiled codec was not built", exc_type=ImportError
        )
    return SimpleNamespace(
        BatchBuilder=pure_encode.BatchBuilder,
        Place=pure_encode.Place,
        Handing=pure_handing.Handing,
        Unread=pure_handing.Unread,
        **{name: getattr(pure_sending, name) for name in NAMES},
    )


@pytest.fixture
def sender(loops: Any) -> Any:
    """A producer of one topic `t` that notes what came the usual way (`slow`) and what was overdue."""

    class Sender(loops.Sending):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            self._fast = {}
            self.slow: list[tuple[Any, ...]] = []
            self.late: list[Any] = []

        @loops.quick
        def send(
            self,
            topic: str,
            value: Any = None,
            key: Any = None,
            headers: Any = (),
            partition: int | None = None,
            timestamp_ms: int | None = None,
            on_delivery: Any = None,
        ) -> Any:
            """Send it."""
            self.slow.append((topic, value, key, headers, partition, timestamp_ms, on_delivery))
            return "slow"

        def _overdue(self, batch: Any) -> None:
            self.late.append(batch)

    made = Sender()
    route = made._fast["t"] = loops.Route()
    route.keyed, route.kind = True, loops.Place
    route.queues = [loops.Lane() for _ in range(PARTITIONS)]
    for lane in route.queues:
        lane.open = loops.Holder()
        lane.open.builder, lane.open.due_ms = loops.BatchBuilder(1000, 61), 2**63 - 1
    route.sticky = route.queues[1]
    return made


def counts(sender: Any) -> list[int]:
    return [lane.open.builder.count for lane in sender._fast["t"].queues]


@quick_way
def test_a_record_takes_the_quick_way_to_its_lane(loops: Any, sender: Any) -> None:
    batches = [lane.open for lane in sender._fast["t"].queues]
    places = [
        sender.send("t", b"v"),
        sender.send("t", None, headers=[("h", b"1")], timestamp_ms=5),
        sender.send("t", b"v", partition=2, key=b"k"),
        sender.send(topic="t", value=bytearray(b"v"), headers={"h": None}, partition=0),
    ]
    key = next(b"%d" % number for number in range(100) if pure_hash.murmur2(b"%d" % number) % 2**31 % PARTITIONS == 2)
    places.append(sender.send("t", b"v", key))
    assert [(batches.index(place.batch), place.index) for place in places] == [(1, 0), (1, 1), (2, 0), (0, 0), (2, 1)]
    assert abs(places[0].timestamp_ms - time.time_ns() // 1_000_000) < 60_000
    assert places[1].timestamp_ms == 5
    assert not sender.slow
    by_hand = pure_encode.BatchBuilder(1000, 61)
    for place, row in zip(places, ((None, b"v", ()), (None, None, (("h", b"1"),))), strict=False):
        by_hand.append(place.timestamp_ms, *row)
    assert batches[1].builder.finish() == by_hand.finish()
    sender._fast["t"].keyed = False
    assert sender.send("t", b"v", b"k") == "slow"  # to the sticky lane, which was finished just now


@quick_way
def test_the_time_of_a_record_is_the_systems(loops: Any, sender: Any) -> None:
    for _ in range(50):
        before = time.time_ns() // 1_000_000
        place = sender.send("t", b"v", partition=0)
        assert before <= place.timestamp_ms <= time.time_ns() // 1_000_000


@quick_way
def test_a_clock_that_is_patched_rules_the_quick_way(sender: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends_the_batch() -> int:
        sender._fast["t"].queues[1].open.builder.finish()
        return 0

    def fails() -> int:
        raise OverflowError("no time")

    with monkeypatch.context() as patch:
        patch.setattr(time, "time_ns", lambda: 1_234_567_890)
        assert sender.send("t", b"v", partition=0).timestamp_ms == 1234
        patch.setattr(time, "time_ns", fails)
        with pytest.raises(OverflowError, match="no time"):
            sender.send("t", b"v", partition=0)
        patch.setattr(time, "time_ns", ends_the_batch)
        assert sender.send("t", b"v", partition=1) == "slow"
    assert sender.send("t", b"v", partition=0).timestamp_ms > 1234
    assert counts(sender) == [2, 0, 0]


def test_all_others_go_the_usual_way_and_nothing_is_changed(loops: Any, sender: Any) -> None:
    lanes = sender._fast["t"].queues
    lanes[0].open = None
    lanes[2].open.builder = SimpleNamespace(count=0)

    def told(*_: Any) -> None:
        pass

    calls: list[tuple[Any, ...]] = [
        ("other", b"v"),
        ("t", b"v", None, (), 0),
        ("t", b"v", None, (), 2),
        ("t", b"v", None, (), -1),
        ("t", b"v", None, (), PARTITIONS),
        ("t", b"v", None, (), True),
        ("t", b"v", None, (), 2**70),
        ("t", b"v", "text"),
        ("t", b"v", bytearray(b"k")),
        ("t", b"v", None, iter([("h", b"1")])),
        ("t", b"v", None, (), None, None, told),
        ("t", bytes(2000), None, (), 1),
    ]
    sender.send("t", b"v", partition=1)
    for call in calls:
        assert sender.send(*call) == "slow"
        given = (*call, *(None, None, (), None, None, None)[len(call) - 1 :])
        assert sender.slow[-1] == given
    lanes[1].open.builder.finish()
    assert sender.send("t", b"v") == "slow"
    assert len(sender.slow) == len(calls) + 1 + (loops.quick is pure_sending.quick)
    if loops.quick is not pure_sending.quick:
        assert lanes[1].open.builder.count == 1


@quick_way
def test_what_no_batch_can_hold_is_refused(loops: Any, sender: Any) -> None:
    for call, kind in (
        (("t", "text"), TypeError),
        (("t", b"v", None, [("h", "text")]), Exception),
        (("t", b"v", None, (), None, "now"), TypeError),
        (("t", b"v", None, (), None, 2**63), OverflowError),
        (([], b"v"), TypeError),
    ):
        with pytest.raises(kind):
            sender.send(*call)
    with pytest.raises(TypeError):
        sender.send()
    with pytest.raises(TypeError):
        type(sender).send(object(), "t")
    with pytest.raises(TypeError):
        sender._fast["t"].kind = object
    assert counts(sender) == [0, 0, 0]
    empty = loops.Route()
    empty.keyed, empty.kind, empty.queues = True, loops.Place, []
    sender._fast["t"] = empty
    assert [sender.send("t", b"v", b"k"), sender.send("t", b"v"), sender.send("t", partition=0)] == ["slow"] * 3


@quick_way
def test_a_record_at_its_batchs_time_makes_it_overdue(loops: Any, sender: Any) -> None:
    batch = sender._fast["t"].sticky.open
    batch.due_ms = 1000
    sender.send("t", b"v", timestamp_ms=999)
    assert not sender.late
    sender.send("t", b"v", timestamp_ms=1000)
    assert sender.late == [batch]


def test_it_looks_like_what_was_decorated(sender: Any) -> None:
    assert list(inspect.signature(type(sender).send).parameters)[:3] == ["self", "topic", "value"]
    assert (type(sender).send.__doc__, type(sender).send.__name__) == ("Send it.", "send")


def test_unread_rows_are_handed_out_in_order_and_let_go(loops: Any) -> None:
    class Row:
        pass

    unread = loops.Unread()
    assert (len(unread), bool(unread), unread.rest()) == (0, False, [])
    with pytest.raises(IndexError):
        unread.pop()
    rows = [Row() for _ in range(5)]
    unread.fill(rows)
    assert (len(unread), unread.rest()) == (5, rows)
    assert unread.pop() is rows[0]
    assert unread.rest() == rows[1:]
    assert unread.rest() is not rows
    gone = weakref.ref(rows[1])
    rest = rows[2:]
    del rows[:]
    unread.pop()
    gc.collect()
    assert gone() is None, "a row is held after it was handed out"
    unread.fill(tuple(reversed(rest)))
    assert [unread.pop() for _ in range(3)] == rest[::-1]
    assert len(unread) == 0
    unread.fill(iter(()))
    with pytest.raises(IndexError):
        unread.pop()


def test_iteration_asks_for_more_where_there_is_no_more(loops: Any) -> None:
    unread = loops.Unread()
    left = [[1, 2, 3], [4]]

    def more() -> int:
        if not left:
            raise StopIteration
        unread.fill(left.pop(0))
        found: int = unread.pop()
        return found

    rows = loops.Handing(unread, more)
    assert iter(rows) is rows
    assert next(rows) == 1
    assert unread.pop() == 2  # taken past the iterator
    assert list(rows) == [3, 4]
    assert list(rows) == []

    def broken() -> int:
        raise KeyError("x")

    with pytest.raises(KeyError):
        next(loops.Handing(unread, broken))
    if not isinstance(rows, pure_handing.Handing):
        with pytest.raises(TypeError):
            loops.Handing(None, more)
