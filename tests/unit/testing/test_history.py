"""Histories made by hand: each kind of anomaly is found, and what only looks like one is left alone."""

from __future__ import annotations

import io
from typing import Any

import pytest

from logkernel.testing.history import History, check, load
from logkernel.testing.history.operations import HistoryError

Row = tuple[int, str]


class Script:
    """Writes a history by calls that are over at once."""

    def __init__(self) -> None:
        self.history = History()

    def do(
        self, name: str, client: str = "c", outcome: str = "ok", result: dict[str, Any] | None = None, **given: Any
    ) -> int:
        number = self.history.call(name, client, **given)
        if outcome == "ok":
            self.history.ok(number, **(result or {}))
        else:
            getattr(self.history, outcome)(number)
        return number

    def send(self, value: str, offset: int = -1, client: str = "p", partition: int = 0, **given: Any) -> int:
        """Acknowledged at `offset`, or without an answer."""
        outcome, result = ("ok", {"offset": offset}) if offset >= 0 else ("unknown", {})
        return self.do(
            "send", client, given.pop("outcome", outcome), result, topic="t", partition=partition, value=value, **given
        )

    def rows(self, partition: int, rows: tuple[Row, ...]) -> list[list[Any]]:
        return [["t", partition, offset, value] for offset, value in rows]

    def poll(self, *rows: Row, client: str = "c", partition: int = 0, **given: Any) -> int:
        return self.do("poll", client, result={"records": self.rows(partition, rows)}, **given)

    def assign(self, *partitions: int, client: str = "c", group: str | None = None) -> int:
        return self.do("assign", client, partitions=[["t", number] for number in partitions], group=group)

    def read(self, *rows: Row, start: int = 0, end: int = 100, partition: int = 0, **given: Any) -> int:
        result = {"start": start, "end": end, "records": self.rows(partition, rows)}
        return self.do("read", "end", result=result, topic="t", partition=partition, **given)

    def begin(self, client: str = "p") -> int:
        return self.do("begin", client)

    def end(self, txn: int, outcome: str = "ok", *, commit: bool = True, client: str = "p", **given: Any) -> int:
        return self.do("end", client, outcome, txn=txn, commit=commit, **given)

    def commit(self, offset: int, group: str = "g", outcome: str = "ok") -> int:
        return self.do("commit", "c", outcome, group=group, offsets=[["t", 0, offset]])

    def kinds(self, **how: bool) -> set[str]:
        return {found.kind for found in check(self.history, **how)}


@pytest.fixture
def script() -> Script:
    return Script()


COMMITTED = {"isolation": "read_committed"}


def test_a_history_without_a_fault_is_good(script: Script) -> None:
    script.assign(0, group="g")
    for offset in range(5):
        script.send(f"v{offset}", offset)
    script.poll((0, "v0"), (1, "v1"))
    script.commit(2)
    script.assign(0, client="d", group="g")
    script.poll((2, "v2"), (3, "v3"), (4, "v4"), client="d")
    script.read(*((offset, f"v{offset}") for offset in range(5)))
    assert check(script.history) == []


# ---------------------------------------------------------------- lost


def test_an_acknowledged_record_that_is_not_there_is_lost(script: Script) -> None:
    script.send("a", 0)
    script.send("b", 1)
    script.read((0, "a"))
    (found,) = check(script.history)
    assert found.kind == "lost"
    assert "value=b" in found.what


def test_a_record_that_was_acknowledged_without_an_offset_lies_anywhere(script: Script) -> None:
    script.do("send", "p", "ok", {"offset": -1}, topic="t", partition=0, value="a")
    script.send("b", 1)
    script.poll((0, "a"), (1, "b"))
    script.read((0, "a"), (1, "b"))
    assert script.kinds() == set()


def test_a_record_that_was_acknowledged_without_an_offset_is_lost_where_nobody_finds_it(script: Script) -> None:
    script.do("send", "p", "ok", {"offset": -1}, topic="t", partition=0, value="a")
    script.read()
    assert script.kinds() == {"lost"}


def test_a_record_that_was_acknowledged_without_an_offset_may_be_lost_lawfully(script: Script) -> None:
    script.do("send", "p", "ok", {"offset": -1}, topic="t", partition=0, value="a")
    script.history.lose("t", 0, 0, "a power cut")
    script.read()
    assert script.kinds() == set()


def test_a_record_without_an_answer_may_be_lost(script: Script) -> None:
    script.send("a", 0)
    script.send("b")
    script.read((0, "a"))
    assert script.kinds() == set()


def test_a_record_that_the_leader_alone_acknowledged_may_be_lost(script: Script) -> None:
    script.send("a", 0, acks="1")
    script.read()
    assert script.kinds() == set()


def test_what_is_lost_lawfully_is_lost_from_its_offset_on_and_before_its_line_only(script: Script) -> None:
    script.send("a", 0)
    script.send("b", 1)
    script.history.lose("t", 0, 1, "a power cut on the last in-sync replica")
    script.send("c", 1)
    script.read((0, "a"), (1, "c"))
    assert script.kinds() == set()
    script.read((0, "a"))
    assert script.kinds() == {"lost"}


def test_a_record_below_the_log_start_is_lost_unless_its_deletion_was_asked_for(script: Script) -> None:
    script.send("a", 0)
    script.send("b", 1)
    script.read((1, "b"), start=1)
    assert script.kinds() == {"lost"}
    script.do("delete_records", topic="t", partition=0, before=1)
    assert script.kinds() == set()


def test_a_record_that_is_old_may_go_where_records_expire(script: Script) -> None:
    script.history.topic("t", expires=True)
    script.send("a", 0)
    script.read(start=1)
    assert script.kinds() == set()


def test_compaction_keeps_the_last_record_of_a_key(script: Script) -> None:
    script.history.topic("t", compacts=True)
    script.send("a", 0, key="k")
    script.send("b", 1, key="k")
    script.read((1, "b"))
    assert script.kinds() == set()


def test_compaction_that_drops_the_last_record_of_a_key_loses_it(script: Script) -> None:
    script.history.topic("t", compacts=True)
    script.send("a", 0, key="k")
    script.send("b", 1, key="k")
    script.read((0, "a"))
    assert script.kinds() == {"lost"}


def test_a_deleted_topic_has_to_hold_nothing(script: Script) -> None:
    script.send("a", 0)
    script.do("delete_topic", topic="t")
    script.send("b", 0)
    script.read((0, "b"))
    assert script.kinds() == set()


# ---------------------------------------------------------------- doubled, disagreement, phantom


def test_a_record_at_two_offsets_is_doubled(script: Script) -> None:
    script.send("a", 0)
    script.read((0, "a"), (1, "a"))
    assert "doubled" in script.kinds()


def test_a_producer_without_sequences_may_double(script: Script) -> None:
    script.send("a", 0, once=False)
    script.read((0, "a"), (1, "a"))
    assert script.kinds() == set()


def test_a_value_that_an_aborted_transaction_sent_before_is_not_doubled(script: Script) -> None:
    first = script.begin()
    script.send("a", 0, txn=first)
    script.end(first, commit=False)
    second = script.begin()
    script.send("a", 2, txn=second)
    script.end(second)
    script.read((0, "a"), (2, "a"))
    script.read((2, "a"), **COMMITTED)
    assert script.kinds() == set()


def test_a_value_that_two_transactions_commit_is_doubled(script: Script) -> None:
    for offset in (0, 2):
        txn = script.begin()
        script.send("a", offset, txn=txn)
        script.end(txn)
    script.read((0, "a"), (2, "a"), **COMMITTED)
    assert "doubled" in script.kinds()


def test_an_offset_shows_everybody_the_same_record(script: Script) -> None:
    script.send("a")
    script.send("b")
    script.poll((0, "a"))
    script.poll((0, "b"), client="d")
    assert "disagreement" in script.kinds()


def test_a_record_lies_where_its_acknowledgement_says(script: Script) -> None:
    script.send("a", 3)
    script.send("b")
    script.poll((3, "b"))
    assert "disagreement" in script.kinds()


def test_a_record_that_nobody_sent_is_a_phantom(script: Script) -> None:
    script.poll((0, "a"))
    assert script.kinds() == {"phantom"}


def test_a_record_whose_send_failed_is_a_phantom(script: Script) -> None:
    script.send("a", outcome="fail")
    script.poll((0, "a"))
    assert script.kinds() == {"phantom"}


def test_a_record_in_another_partition_is_a_phantom(script: Script) -> None:
    script.send("a", 0, partition=1)
    script.poll((0, "a"))
    assert "phantom" in script.kinds()


# ---------------------------------------------------------------- transactions


@pytest.mark.parametrize("end", ["abort", "none", "refused commit"])
def test_a_committed_reader_never_sees_an_aborted_record(script: Script, end: str) -> None:
    txn = script.begin()
    script.send("a", 0, txn=txn)
    if end != "none":
        script.end(txn, "ok" if end == "abort" else "fail", commit=end != "abort")
    script.poll((0, "a"))
    assert script.kinds() == set(), "another reader may"
    script.poll((0, "a"), client="d", **COMMITTED)
    assert script.kinds() == {"aborted"}


def test_a_commit_without_an_answer_is_all_or_nothing(script: Script) -> None:
    txn = script.begin()
    script.send("a", 0, txn=txn)
    script.send("b", 0, txn=txn, partition=1)
    script.end(txn, "unknown")
    script.read((0, "a"), **COMMITTED)
    script.read(partition=1, **COMMITTED)
    assert script.kinds() == {"half"}
    script.read(**COMMITTED)
    assert script.kinds() == set(), "nothing is visible"


def test_half_a_committed_transaction_is_lost(script: Script) -> None:
    txn = script.begin()
    script.send("a", 0, txn=txn)
    script.send("b", 0, txn=txn, partition=1)
    script.end(txn)
    script.read((0, "a"), **COMMITTED)
    script.read(partition=1, **COMMITTED)
    assert script.kinds() == {"lost", "half"}


# ---------------------------------------------------------------- order


def test_records_of_one_producer_lie_in_their_order(script: Script) -> None:
    script.send("a", 1)
    script.send("b", 0)
    assert "order" in script.kinds()


def test_records_that_are_under_way_together_keep_their_order(script: Script) -> None:
    history = script.history
    one, two = (history.call("send", "p", topic="t", partition=0, value=value) for value in "ab")
    history.ok(two, offset=0)
    history.ok(one, offset=1)
    assert script.kinds() == {"order"}


def test_a_consumer_never_goes_back(script: Script) -> None:
    script.assign(0)
    script.send("a", 0)
    script.poll((0, "a"))
    script.poll((0, "a"))
    assert script.kinds() == {"rewound"}


def test_a_consumer_that_is_assigned_anew_may_begin_anew(script: Script) -> None:
    script.assign(0)
    script.send("a", 0)
    script.poll((0, "a"))
    script.assign()
    script.assign(0)
    script.poll((0, "a"))
    assert script.kinds() == set()


def test_a_partition_that_a_consumer_keeps_goes_on(script: Script) -> None:
    script.assign(0)
    script.send("a", 0)
    script.poll((0, "a"))
    script.assign(0, 1)
    script.poll((0, "a"))
    assert script.kinds() == {"rewound"}


def test_a_consumer_passes_no_record(script: Script) -> None:
    script.assign(0)
    for offset, value in enumerate("abc"):
        script.send(value, offset)
    script.poll((0, "a"), (2, "c"))
    assert script.kinds() == {"skipped"}


def test_a_consumer_passes_what_was_deleted(script: Script) -> None:
    script.assign(0)
    for offset, value in enumerate("abc"):
        script.send(value, offset)
    script.do("delete_records", topic="t", partition=0, before=2)
    script.poll((0, "a"), (2, "c"))
    assert script.kinds() == set()


def test_a_group_passes_no_record(script: Script) -> None:
    for offset, value in enumerate("abc"):
        script.send(value, offset)
    script.assign(0, group="g")
    script.poll((0, "a"))
    script.assign(0, client="d", group="g")
    script.poll((2, "c"), client="d")
    assert script.kinds() == {"skipped"}


# ---------------------------------------------------------------- offsets of groups


def test_a_group_begins_where_it_committed(script: Script) -> None:
    script.send("a", 0)
    script.assign(0, group="g")
    script.poll((0, "a"))
    script.commit(1)
    script.assign(0, client="d", group="g")
    script.poll((0, "a"), client="d")
    assert script.kinds() == {"offsets"}


@pytest.mark.parametrize("outcome", ["fail", "unknown"])
def test_a_commit_that_was_not_acknowledged_may_have_no_effect(script: Script, outcome: str) -> None:
    script.send("a", 0)
    script.assign(0, group="g")
    script.poll((0, "a"))
    script.commit(1, outcome=outcome)
    script.assign(0, client="d", group="g")
    script.poll((0, "a"), client="d")
    assert script.kinds() == set()


def test_a_group_may_begin_anew_where_its_offsets_were_lost_lawfully(script: Script) -> None:
    script.send("a", 0)
    script.commit(1)
    script.history.lose("__consumer_offsets", 0, 0, "a power cut on the last in-sync replica")
    script.assign(0, group="g")
    script.poll((0, "a"))
    assert script.kinds() == set()


def test_a_transaction_may_come_to_another_end_where_its_state_was_lost_lawfully(script: Script) -> None:
    txn = script.begin()
    script.send("a", 0, txn=txn)
    script.send("b", 0, txn=txn, partition=1)
    script.end(txn)
    script.history.lose("__transaction_state", 0, 0, "a power cut on the last in-sync replica")
    script.read((0, "a"), **COMMITTED)
    script.read(partition=1, **COMMITTED)
    assert script.kinds() == set()
    script.send("c", 1)
    script.read((0, "a"))
    assert script.kinds() == {"lost"}, "what is no part of one has to be there"


def test_a_marker_that_was_lost_lawfully_aborts_nothing(script: Script) -> None:
    """Found by the world's seed 278: a later commit of the same producer made the record visible."""
    txn = script.begin()
    script.send("a", 0, txn=txn)
    script.end(txn, commit=False)
    script.history.lose("t", 0, 1, "a power cut on the last in-sync replica")
    script.poll((0, "a"), **COMMITTED)
    assert script.kinds() == set()


def test_a_group_that_committed_what_was_lost_lawfully_may_begin_anew(script: Script) -> None:
    script.send("a", 0)
    script.send("b", 1)
    script.commit(2)
    script.history.lose("t", 0, 1, "an unclean election")
    script.assign(0, group="g")
    script.poll((0, "a"))
    assert script.kinds() == set()


def test_a_later_commit_may_go_back(script: Script) -> None:
    script.send("a", 0)
    script.commit(1)
    script.commit(0, outcome="unknown")
    script.assign(0, group="g")
    script.poll((0, "a"))
    assert script.kinds() == set()


def test_offsets_of_a_committed_transaction_count(script: Script) -> None:
    script.send("a", 0)
    txn = script.begin()
    script.end(txn, group="g", offsets=[["t", 0, 1]])
    script.assign(0, group="g")
    script.poll((0, "a"))
    assert script.kinds() == {"offsets"}


def test_offsets_of_an_aborted_transaction_do_not_count(script: Script) -> None:
    script.send("a", 0)
    txn = script.begin()
    script.end(txn, commit=False, group="g", offsets=[["t", 0, 1]])
    script.assign(0, group="g")
    script.poll((0, "a"))
    assert script.kinds() == set()


# ---------------------------------------------------------------- cycles


def test_a_record_is_not_seen_before_it_is_sent(script: Script) -> None:
    script.poll((0, "a"))
    script.send("a", 0)
    assert script.kinds() == {"cycle"}
    assert script.kinds(real_time=False) == set(), "lines of several machines tell no order"


def test_a_write_that_came_later_lies_behind(script: Script) -> None:
    script.send("a", 1, client="p")
    script.send("b", 0, client="q")
    assert script.kinds() == {"cycle"}


def test_two_transactions_do_not_read_each_other(script: Script) -> None:
    one, two = script.begin("p"), script.begin("q")
    script.send("a", 0, client="p", txn=one)
    script.send("b", 0, client="q", txn=two, partition=1)
    script.poll((0, "b"), client="p", partition=1, **COMMITTED)
    script.poll((0, "a"), client="q", **COMMITTED)
    script.end(one, client="p")
    script.end(two, client="q")
    assert script.kinds() == {"cycle"}
    assert script.kinds(real_time=False) == {"cycle"}


def test_writes_of_concurrent_transactions_may_interleave(script: Script) -> None:
    one, two = script.begin("p"), script.begin("q")
    script.send("a", 0, client="p", txn=one)
    script.send("b", 1, client="q", txn=two)
    script.send("c", 0, client="q", txn=two, partition=1)
    script.send("d", 1, client="p", txn=one, partition=1)
    script.end(one, client="p")
    script.end(two, client="q")
    assert script.kinds() == set()


# ---------------------------------------------------------------- files


def test_a_history_is_read_back_as_it_was_written() -> None:
    sink = io.StringIO()
    history = History(sink)
    number = history.call("send", "p", topic="t", partition=0, value="a", acks="all")
    history.ok(number, offset=0)
    history.topic("t", compacts=True)
    history.lose("t", 0, 5, "unclean")
    history.call("poll", "c", isolation="read_committed")
    again = load(sink.getvalue().splitlines())
    assert [str(one) for one in again] == [str(one) for one in history]
    assert (again.lawful, again.compacts) == (history.lawful, history.compacts)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "no JSON"),
        ("[]", "no JSON object"),
        ("[" * 100_000, "no JSON"),
        ('{"call": "write", "id": 0, "client": "p"}', "call 'write' is none of"),
        ('{"call": "begin", "id": -1, "client": "p"}', "a call has a number as id"),
        ('{"call": "begin", "id": true, "client": "p"}', "a call has a number as id"),
        ('{"call": "send", "id": 0, "client": "p", "topic": "t", "partition": 0}', "send has no value"),
        ('{"call": "send", "id": 0, "client": "p", "topic": "t", "partition": "0", "value": "a"}', "partition of send"),
        ('{"call": "poll", "id": 0, "client": "p", "isolation": "none"}', "isolation of poll does not fit"),
        ('{"ok": 3}', "ok of 3, which is not under way"),
        ('{"hello": 3}', "neither a call, an outcome nor a fact"),
        ('{"lawful": ["t"]}', "lawful is"),
        ('{"topic": 3}', "topic is a text"),
    ],
)
def test_a_line_that_does_not_fit_is_named(line: str, problem: str) -> None:
    with pytest.raises(HistoryError, match="line 1") as raised:
        load([line])
    assert problem in str(raised.value)


@pytest.mark.parametrize("result", ['"offset": -2', '"offset": -1.0', '"offset": "1"', '"other": 1'])
def test_an_outcome_that_does_not_fit_its_call_is_named(result: str) -> None:
    call = '{"call": "send", "id": 0, "client": "p", "topic": "t", "partition": 0, "value": "a"}'
    with pytest.raises(HistoryError, match="line 2"):
        load([call, f'{{"ok": 0, {result}}}'])


def test_a_call_has_one_outcome() -> None:
    history = History()
    number = history.call("begin", "p")
    history.ok(number)
    with pytest.raises(HistoryError, match="not under way"):
        history.fail(number)
