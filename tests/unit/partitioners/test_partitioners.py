"""The built-in partitioners; the hash against tables that Java wrote and against Python clients."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logkernel.contracts import Partitioner
from logkernel.plugins.partitioners import default, keyed, round_robin
from logkernel.record import loops, pure_hash

TABLE = Path(__file__).parents[2] / "golden" / "record" / "murmur2.txt"
PLUGINS: dict[str, ModuleType] = {"default": default, "keyed": keyed, "round_robin": round_robin}


def make(name: str, seed: int = 1) -> Partitioner:
    partitioner: Partitioner = PLUGINS[name].logkernel_partitioner(name, {}, seed)
    return partitioner


def java_table() -> list[tuple[bytes, int]]:
    rows = (line.split() for line in TABLE.read_text().splitlines())
    return [(bytes.fromhex(key[1:]), int(hashed)) for key, hashed in rows]


@pytest.fixture(params=["pure", "compiled"])
def hashing(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    module: object = pure_hash
    if request.param == "compiled":
        module = pytest.importorskip(
            "logkernel.record._loops", reason="the compiled codec was not built", exc_type=ImportError
        )
    monkeypatch.setattr(loops, "murmur2", getattr(module, "murmur2"))  # noqa: B009


@pytest.mark.usefixtures("hashing")
def test_the_hash_is_javas() -> None:
    table = java_table()
    assert len(table) == 300
    for key, signed in table:
        assert loops.murmur2(key) == signed & 0xFFFFFFFF


@pytest.mark.usefixtures("hashing")
@pytest.mark.parametrize("name", ["default", "keyed"])
def test_keys_go_where_java_sends_them(name: str) -> None:
    partitioner = make(name)
    for key, signed in java_table():
        for partitions in (1, 2, 6, 50, 1000):
            assert partitioner.partition(key, None, partitions, [0]) == (signed & 0x7FFFFFFF) % partitions


@given(key=st.binary(max_size=64))
@settings(deadline=None)
def test_keys_go_where_python_clients_send_them(key: bytes) -> None:
    theirs = pytest.importorskip("aiokafka.partitioner").murmur2
    assert pure_hash.murmur2(key) & 0x7FFFFFFF == theirs(key) & 0x7FFFFFFF
    kafka = pytest.importorskip("kafka.partitioner").murmur2
    assert pure_hash.murmur2(key) & 0x7FFFFFFF == kafka(key) & 0x7FFFFFFF


@pytest.mark.parametrize("name", PLUGINS)
@given(
    seed=st.integers(0, 2**64),
    partitions=st.integers(1, 20),
    full=st.lists(st.booleans(), max_size=50),
    data=st.data(),
)
@settings(deadline=None)
def test_records_without_a_key_go_where_a_leader_is(
    name: str, seed: int, partitions: int, full: list[bool], data: st.DataObject
) -> None:
    partitioner = make(name, seed)
    available = sorted(data.draw(st.sets(st.integers(0, partitions - 1), min_size=1)))
    for is_full in full:
        found = partitioner.partition(None, b"v", partitions, available)
        assert found in available
        if is_full:
            partitioner.on_batch_full(found)


def test_default_sticks_until_a_batch_is_full() -> None:
    partitioner = make("default")
    everywhere = range(6)
    seen = []
    for _ in range(200):
        first = partitioner.partition(None, b"", 6, everywhere)
        assert {partitioner.partition(None, b"", 6, everywhere) for _ in range(5)} == {first}
        partitioner.on_batch_full(first)
        seen.append(first)
    assert all(one != other for one, other in pairwise(seen))
    assert set(Counter(seen)) == set(everywhere)
    assert min(Counter(seen).values()) > 15


def test_default_stays_where_another_batch_was_full() -> None:
    partitioner = make("default")
    first = partitioner.partition(None, b"", 6, range(6))
    partitioner.on_batch_full((first + 1) % 6)
    assert partitioner.partition(None, b"", 6, range(6)) == first


def test_default_leaves_a_partition_without_leader() -> None:
    partitioner = make("default")
    first = partitioner.partition(None, b"", 3, [0, 1, 2])
    others = [partition for partition in range(3) if partition != first]
    assert partitioner.partition(None, b"", 3, others) in others
    assert partitioner.partition(None, b"", 1, []) == 0


def test_default_with_one_partition_has_no_choice() -> None:
    partitioner = make("default")
    partitioner.on_batch_full(partitioner.partition(None, b"", 1, [0]))
    assert partitioner.partition(None, b"", 1, [0]) == 0


def test_keyed_keeps_keyless_records_together() -> None:
    partitioner = make("keyed")
    first = partitioner.partition(None, b"", 6, range(6))
    for _ in range(20):
        partitioner.on_batch_full(first)
        assert partitioner.partition(None, b"", 6, range(6)) == first
    others = [partition for partition in range(6) if partition != first]
    assert partitioner.partition(None, b"", 6, others) in others
    assert {make("keyed", seed).partition(None, b"", 6, range(6)) for seed in range(50)} == set(range(6))


def test_round_robin_takes_turns() -> None:
    partitioner = make("round_robin")
    found = [partitioner.partition(b"same key", b"", 3, [0, 1, 2]) for _ in range(9)]
    assert sorted(found[:3]) == [0, 1, 2]
    assert found == found[:3] * 3
    few = [partitioner.partition(None, b"", 3, [0, 2]) for _ in range(4)]
    assert few == few[:2] * 2
    assert set(few) == {0, 2}
