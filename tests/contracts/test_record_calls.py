"""The contract of what is done once for each record, run over plain Python and over the compiled codec."""

from __future__ import annotations

import contextlib
import gc
import inspect
import time
import weakref
from types import SimpleNamespace
from typing import Any

import pytest

from logkernel.record import pure_encode, pure_handing, pure_hash, pure_sending

PARTITIONS = 3
NAMES = ("Lane", "Route", "SendPath", "fast_send")
fast_way = pytest.mark.parametrize("loops", ["compiled"], indirect=True)
"""Plain Python has no fast way: there `send` itself takes every record."""


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

    class Sender:
        __slots__ = ("_path", "late", "slow")

        def __init__(self) -> None:
            self.slow: list[tuple[Any, ...]] = []
            self.late: list[Any] = []
            self._path = loops.SendPath(loops.Place, self.late.append)

        @property
        def path(self) -> Any:
            return self._path

        @loops.fast_send
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

    made = Sender()
    route = made.path.routes["t"] = loops.Route()
    route.keyed = True
    route.lanes = [loops.Lane() for _ in range(PARTITIONS)]
    for lane in route.lanes:
        batch = SimpleNamespace(builder=loops.BatchBuilder(1000, 61))
        lane.open(batch, batch.builder)
    route.sticky = route.lanes[1]
    return made


def counts(sender: Any) -> list[int]:
    return [lane.batch.builder.count for lane in sender.path.routes["t"].lanes]


@fast_way
def test_a_record_takes_the_fast_way_to_its_lane(loops: Any, sender: Any) -> None:
    batches = [lane.batch for lane in sender.path.routes["t"].lanes]
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
    sender.path.routes["t"].keyed = False
    assert sender.send("t", b"v", b"k") == "slow"  # to the sticky lane, which was finished just now


@fast_way
def test_the_time_of_a_record_is_the_systems(loops: Any, sender: Any) -> None:
    for _ in range(50):
        before = time.time_ns() // 1_000_000
        place = sender.send("t", b"v", partition=0)
        assert before <= place.timestamp_ms <= time.time_ns() // 1_000_000


@fast_way
def test_a_clock_that_is_patched_rules_the_fast_way(sender: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends_the_batch() -> int:
        sender.path.routes["t"].lanes[1].batch.builder.finish()
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
    lanes = sender.path.routes["t"].lanes
    lanes[0].close()
    lanes[2].open("a batch", SimpleNamespace(count=0))

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
    lanes[1].batch.builder.finish()
    assert sender.send("t", b"v") == "slow"
    assert len(sender.slow) == len(calls) + 1 + (loops.fast_send is pure_sending.fast_send)
    if loops.fast_send is not pure_sending.fast_send:
        assert lanes[1].batch.builder.count == 1


@fast_way
def test_what_no_batch_can_hold_is_refused_or_left_to_the_slow_way_which_says_why(loops: Any, sender: Any) -> None:
    for call, kind in (
        (("t", "text"), TypeError),
        (("t", b"v", None, [("h", "text")]), Exception),
        (("t", b"v", None, (), None, "now"), TypeError),
        (("t", b"v", None, (), None, 2**63), OverflowError),
        (([], b"v"), TypeError),
    ):
        with contextlib.suppress(kind):
            assert sender.send(*call) == "slow"
    with pytest.raises(TypeError):
        sender.send()
    with pytest.raises(AttributeError, match="_path"):
        type(sender).send(object(), "t")
    with pytest.raises(AttributeError, match="_path"):
        type(sender).send(type(sender).__new__(type(sender)), "t")
    with pytest.raises(TypeError):
        type(sender).send(type("Unslotted", (), {"_path": sender.path})(), "t")
    wrong = type(sender).__new__(type(sender))
    wrong._path = "no path"
    with pytest.raises(TypeError):
        wrong.send("t")
    with pytest.raises(TypeError):
        loops.SendPath(object, print)
    assert counts(sender) == [0, 0, 0]
    empty = loops.Route()
    empty.keyed, empty.lanes = True, []
    sender.path.routes["t"] = empty
    assert [sender.send("t", b"v", b"k"), sender.send("t", b"v"), sender.send("t", partition=0)] == ["slow"] * 3


@fast_way
def test_a_record_at_its_batchs_time_makes_it_overdue(loops: Any, sender: Any) -> None:
    lane = sender.path.routes["t"].sticky
    lane.due_ms = 1000
    sender.send("t", b"v", timestamp_ms=999)
    assert not sender.late
    sender.send("t", b"v", timestamp_ms=1000)
    assert sender.late == [lane]
    lane.open(lane.batch, lane.batch.builder)
    sender.send("t", b"v", timestamp_ms=1000)
    assert sender.late == [lane], "what is opened anew is due anew"


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
