"""The same ways through life, walked by Apache Kafka 4.3.1's own classes and by ours: the same bytes at every step.

`transactions.txt` was printed by `GoldenTransactions.java`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from logkernel.errors import CorruptMessage
from logkernel.plugins.services.transactions.records import decode_key, decode_value, encode_key, encode_value, fits
from logkernel.plugins.services.transactions.state import NO_EPOCH, State, Transaction
from logkernel.vocabulary import TopicPartition

ROWS = [line.split() for line in (Path(__file__).parent / "transactions.txt").read_text().splitlines()]
GOLDEN = {name: bytes.fromhex(value) for name, value, *_ in ROWS}
FACTS = {name: tuple(map(int, facts)) for name, _, *facts in ROWS}
STEPS = [name for name in GOLDEN if name != "key"]
ONE = [TopicPartition("orders", 3)]
MORE = [TopicPartition("orders", 3), TopicPartition("grüße", 0)]


def old_life() -> list[Transaction]:
    life = [Transaction.first(4000, 60_000, 1_000).init(60_000, 2_000, None)]
    for step in (
        lambda txn: txn.add(ONE, 3_000, 0),
        lambda txn: txn.add(MORE, 3_500, 0),
        lambda txn: txn.end(True, 4_000, 0, -1),
        lambda txn: txn.complete(5_000),
        lambda txn: txn.init(50_000, 6_000, 0),
        lambda txn: txn.init(50_000, 6_500, 0),
        lambda txn: txn.add(ONE, 7_000, 0),
        lambda txn: txn.fence(9_000, 0, -1),
        lambda txn: txn.complete(9_500),
    ):
        life.append(step(life[-1]))
    return life


def new_life() -> list[Transaction]:
    life = [Transaction.first(4001, 60_000, 1_000).init(60_000, 2_000, None)]
    for step in (
        lambda txn: txn.add(ONE, 3_000, 2),
        lambda txn: txn.end(True, 4_000, 2, -1),
        lambda txn: txn.complete(5_000),
        lambda txn: txn.end(False, 6_000, 2, -1),
        lambda txn: txn.complete(6_500),
        lambda txn: txn.add(ONE, 7_000, 2),
        lambda txn: txn.fence(9_000, 2, -1),
        lambda txn: txn.complete(9_500),
    ):
        life.append(step(life[-1]))
    return life


def full(producer_id: int, state: State = State.EMPTY) -> Transaction:
    return Transaction(state, producer_id, 32_766, 60_000, client_version=2)


def used_up() -> list[Transaction]:
    added = full(4002).add(ONE, 3_000, 2)
    committed = added.end(True, 4_000, 2, 5000)
    return [added, committed, committed.complete(5_000)]


def fenced_when_used_up() -> list[Transaction]:
    added = full(4003).add(ONE, 3_000, 2)
    fenced = added.fence(9_000, 2, 5001)
    return [added, fenced, fenced.complete(9_500)]


def rotated() -> list[Transaction]:
    once = full(4004, State.COMPLETE_COMMIT).rotate(5002, 45_000, 3_000, known=True)
    return [once, once.init(45_000, 3_500, 32_766)]


def named(prefix: str) -> list[str]:
    return [name for name in STEPS if name.startswith(prefix)]


LIVES = [
    *zip(named("old-"), old_life(), [0] * 99, strict=False),
    *zip(named("v1-"), old_life(), [1] * 99, strict=False),
    *zip(named("v2-"), new_life(), [2] * 99, strict=False),
    *zip(named("full-"), used_up(), [2] * 99, strict=False),
    *zip(named("last-"), fenced_when_used_up(), [2] * 99, strict=False),
    *zip(named("rotate"), rotated(), [2] * 99, strict=False),
    ("wide-add", Transaction(State.EMPTY, 4005, 7, 60_000).add([TopicPartition("x" * 200, 100_000)], 3_000, 2), 2),
]


def test_every_step_of_kafkas_is_walked() -> None:
    assert [name for name, *_ in LIVES] == STEPS


@pytest.mark.parametrize(("name", "txn", "level"), LIVES)
def test_the_bytes_are_kafkas(name: str, txn: Transaction, level: int) -> None:
    assert encode_value(txn, level) == GOLDEN[name]
    assert (txn.producer_id, txn.epoch, txn.last_epoch) == FACTS[name]


@pytest.mark.parametrize(("name", "txn", "level"), LIVES)
def test_kafkas_bytes_are_read(name: str, txn: Transaction, level: int) -> None:
    expected = txn if level else evolve(txn, previous_producer_id=-1)
    found = decode_value(GOLDEN[name])
    assert found == expected
    assert found.last_epoch == NO_EPOCH


def test_the_key_is_kafkas() -> None:
    assert encode_key("grüße") == GOLDEN["key"]
    assert decode_key(GOLDEN["key"]) == "grüße"
    assert decode_key(b"\0\1\0\1g") is None, "a kind of record that is not ours"


def test_a_client_of_v2_is_remembered_whatever_the_level() -> None:
    committed = used_up()[1]
    assert decode_value(encode_value(committed, 0)) == committed


def test_tags_of_later_brokers_are_skipped() -> None:
    value = bytearray(GOLDEN["v2-add"])
    assert value[-15:-12] == b"\2\0\x08"
    value[-15] = 3
    assert decode_value(bytes(value) + b"\3\2\0\7") == decode_value(GOLDEN["v2-add"])


@pytest.mark.parametrize("name", ["key", "old-add-more", "v1-add-more", "full-commit"])
def test_whatever_is_cut_off_is_corrupt(name: str) -> None:
    whole = GOLDEN[name]
    for size in range(len(whole)):
        with pytest.raises(CorruptMessage):
            (decode_key if name == "key" else decode_value)(whole[:size])


@pytest.mark.parametrize(
    ("at", "new", "fault"),
    [
        (0, b"\0\2", "version 2"),
        (0, b"\xff\xff", "version -1"),
        (16, b"\6", "6 is no state"),
        (17, b"\x7f\xff", "elements"),
    ],
)
def test_what_a_record_claims_is_not_believed(at: int, new: bytes, fault: str) -> None:
    value = bytearray(GOLDEN["old-add"])
    value[at : at + len(new)] = new
    with pytest.raises(CorruptMessage, match=fault):
        decode_value(bytes(value))


def test_a_tag_of_the_wrong_size_and_a_text_that_is_none() -> None:
    with pytest.raises(CorruptMessage, match="tag 0 of 2 bytes"):
        decode_value(GOLDEN["v1-init"][:-11] + b"\1\0\2\0\0")
    with pytest.raises(CorruptMessage, match="UTF-8"):
        decode_key(b"\0\0\0\1\xff")
    with pytest.raises(CorruptMessage, match="varint"):
        decode_value(GOLDEN["v1-init"][:17] + b"\xff" * 6)


def test_ids_that_cannot_be_kept() -> None:
    assert fits("x" * 32_767)
    assert fits("é" * 16_383)
    assert not fits("é" * 16_384)
