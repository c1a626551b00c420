"""The pure parts of chaos on real processes: schedules, histories of several programs, figures."""

from __future__ import annotations

from itertools import islice

from chaos import faults, figures
from chaos.field import Field, Plain
from chaos.recorder import merged
from chaos.servers import metadata

from logkernel.testing.history import History, check

SECOND = figures.SECOND


def test_a_seed_draws_the_same_faults_again_and_each_round_has_all() -> None:
    kinds = ["kill", "pause", "full disk"]
    first, again = (list(islice(faults.schedule(7, kinds, (1, 2, 3)), 9)) for _ in range(2))
    assert first == again
    assert [sorted(each.kind for each in first[at : at + 3]) for at in (0, 3, 6)] == [sorted(kinds)] * 3
    assert all(each.node != each.other for each in first)
    assert all(low <= each.hold_s <= high for each in first for low, high in [faults.HOLD_S[each.kind]])


def test_every_fault_that_a_field_allows_is_described() -> None:
    plain = Plain(["b1"])
    assert set(faults.kinds_on(plain)) == set(faults.PROCESS_FAULTS)
    every = {*faults.PROCESS_FAULTS, *faults.FIELD_FAULTS, faults.SLOW}
    assert every == faults.MEANING.keys() == faults.HOLD_S.keys()
    assert Field.network
    assert not plain.network


def test_lines_of_several_programs_become_one_history_in_the_order_of_their_clock() -> None:
    one = [
        {"at": 1, "call": "begin", "id": 1, "client": "a"}, {"at": 2, "ok": 1},
        {"at": 5, "call": "send", "id": 2, "client": "a", "topic": "t", "partition": 0, "value": "x", "txn": 1},
        {"at": 9, "ok": 2, "offset": 0},
    ]  # fmt: skip
    other = [{"at": 4, "call": "begin", "id": 1, "client": "b"}, {"at": 6, "ok": 1}]
    lines = merged([one, other])
    assert [line["at"] for line in lines] == [1, 2, 4, 5, 6, 9]
    assert [line["id"] for line in lines if "call" in line] == [0, 1, 2]
    assert [line["ok"] for line in lines if "ok" in line] == [0, 1, 2]
    assert lines[3]["txn"] == 0
    history = History()
    for line in lines:
        history.add({key: value for key, value in line.items() if key != "at"})
    assert check(history) == []


def test_figures_count_calls_and_find_the_longest_stall_of_a_partition() -> None:
    lines = []
    for number, at in enumerate((1, 2, 9, 10)):
        call = {"call": "send", "id": number, "client": "p", "topic": "orders", "partition": 0, "value": str(number)}
        lines += [{"at": at * SECOND, **call}, {"at": at * SECOND, "ok": number, "offset": number}]
    lines += [
        {"at": 10 * SECOND, "call": "end", "id": 8, "client": "p", "txn": 4, "commit": True},
        {"at": 11 * SECOND, "ok": 8},
        {"at": 11 * SECOND, "call": "end", "id": 9, "client": "p", "txn": 5, "commit": True},
        {"at": 13 * SECOND, "unknown": 9},
    ]
    struck = [figures.Struck("kill", 3 * SECOND, 4 * SECOND, 8 * SECOND)]
    found = figures.figures_of(lines, struck, ["lost", "lost"], 2)
    assert (found.sent, found.acknowledged, found.committed, found.unknown, found.ended) == (4, 4, 1, 1, 2)
    assert (found.stall_s, found.stalls_s, found.recoveries_s) == (7.0, {"kill": [7.0]}, {"kill": [4.0]})
    assert found.minutes == 0.2
    both = found.plus(found)
    assert (both.acknowledged, both.stall_s, both.anomalies, both.faults) == (8, 7.0, {"lost": 4}, {"kill": 2})
    told = figures.tables(both, found)
    assert "| **lost** | **4** | **2** |" in told
    assert "| kill | 2 / 1 | 7.0 / 7.0 | 4.0 / 4.0 |" in told


def test_what_a_broker_knows_is_read_from_its_metadata() -> None:
    host = b"\x00\x01h" + b"\x00\x00\x00\x01" + b"\xff\xff"
    broker = b"\x00\x00\x00\x02" + host
    partition = (
        b"\x00\x00"
        + b"\x00\x00\x00\x05"
        + b"\x00\x00\x00\x02"
        + b"\x00\x00\x00\x00"
        + (b"\x00\x00\x00\x01\x00\x00\x00\x02")
    )
    topic = b"\x00\x00" + b"\x00\x01t" + b"\x00" + b"\x00\x00\x00\x01" + partition
    answer = b"\x00\x00\x00\x07" + b"\x00\x00\x00\x01" + broker + b"\x00\x00\x00\x02" + b"\x00\x00\x00\x01" + topic
    assert metadata(answer) == {"brokers": [2], "controller": 2, "partitions": {("t", 5): (2, [2])}}
