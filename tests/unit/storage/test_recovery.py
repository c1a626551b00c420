"""Opening a log that was not closed: damage is found and cut, everything else is kept and rebuilt."""

from __future__ import annotations

import random

import pytest


def fill(store, batches=40, **options):
    log = store.open(**options)
    for n in range(batches):
        producer = {"producer_id": 5 + n % 3, "producer_epoch": 0, "base_sequence": n}
        store.append(log, 2, size=100, timestamp=1000 + n * 7 % 50, epoch=n // 10, **producer)
    return log


def overwrite(store, name: str, position: int, data: bytes) -> None:
    path = f"{store.root}/t-0/{name}"
    old = store.disk.read(path)
    store.disk.write(path, old[:position] + data + old[position + len(data) :])


def active_name(log) -> str:
    return f"{log.facts()[-1].base_offset:020d}.log"


def test_everything_is_rebuilt_from_the_records_alone(store):
    log = fill(store)
    everything = store.records(log)
    wanted = sorted(store.ledger.entries(), key=lambda entry: entry.producer_id)
    epochs = log.epochs.entries
    log.close()
    files = {name: store.bytes(name) for name in store.names()}
    for name in files:
        if not name.endswith((".log", ".metadata")):
            store.disk.remove(f"{store.root}/t-0/{name}")
    log = store.open()
    assert store.records(log) == everything
    assert log.epochs.entries == epochs
    assert sorted(store.ledger.entries(), key=lambda entry: entry.producer_id) == wanted
    assert not log.damages
    store.check_indexes(log)
    log.close()
    for name, data in files.items():
        if name.endswith(("index", ".log")):
            assert store.bytes(name) == data, name


@pytest.mark.parametrize(
    ("tail", "why"),
    [
        (b"\0" * 5000, "zeros of a page that was never written"),
        (b"\xff" * 5000, "garbage"),
        (b"\x7f" * 70, "a length beyond the file"),
        (b"x", "a byte"),
        (b"\0" * 60, "less than a header"),
    ],
)
def test_a_rotten_tail_is_cut(store, tail, why):
    log = fill(store)
    everything = store.records(log)
    name = active_name(log)
    log.abandon()
    good = store.bytes(name)
    store.disk.write(f"{store.root}/t-0/{name}", good + tail)
    log = store.open()
    assert store.records(log) == everything, why
    (damage,) = log.damages
    assert (damage.position, damage.lost_bytes) == (len(good), len(tail))
    store.append(log)
    log.close()
    assert len(store.records(store.open(clean=True))) == len(everything) + 1


def test_an_interrupted_batch_is_cut_at_every_length(store):
    log = fill(store, 3)
    name = active_name(log)
    log.abandon()
    good = store.bytes(name)
    size = len(good) // 3
    for cut in (1, 11, 12, 13, 16, 17, 60, 61, 62, size - 1):
        store.disk.write(f"{store.root}/t-0/{name}", good[: 2 * size + cut])
        log = store.open()
        assert log.end_offset == 4, cut
        assert store.bytes(name) == good[: 2 * size]
        log.abandon()


def test_a_flipped_bit_anywhere_is_found(store):
    log = fill(store, 6)
    name = active_name(log)
    log.abandon()
    good = store.bytes(name)
    size = len(good) // 6
    chance = random.Random(1)
    uncovered = range(12, 16)  # the leader epoch is outside the CRC
    for at in chance.sample([at for at in range(size) if at not in uncovered], 60):
        overwrite(store, name, 3 * size + at, bytes([good[3 * size + at] ^ 1 << chance.randrange(8)]))
        log = store.open()
        first = log.end_offset
        if at < 8:  # a higher base offset is a gap, as compaction leaves it; a lower one is disorder
            assert first == 6 or first > 6
        else:
            assert first == 6, at
        log.abandon()
        store.disk.write(f"{store.root}/t-0/{name}", good)


@pytest.mark.parametrize("policy", ["delete", "compact"])
def test_damage_in_an_old_segment_takes_all_behind_it(store, policy):
    settings = store.settings(cleanup_policy=(policy,))
    log = fill(store, settings=settings)
    everything = store.records(log)
    bases = [facts.base_offset for facts in log.facts()]
    log.abandon()
    overwrite(store, f"{bases[1]:020d}.log", 700, b"\xee" * 30)
    log = store.open(recovery_point=bases[1], settings=settings)
    assert bases[1] < log.end_offset < bases[2]
    assert [facts.base_offset for facts in log.facts()] == bases[:2]
    assert [(damage.path[-24:], damage.lost_bytes > 0) for damage in log.damages] == [
        (f"{base:020d}.log", True) for base in bases[1:]
    ]
    assert store.records(log) == everything[: log.end_offset]
    assert all(entry.batches[-1][1] < log.end_offset for entry in store.ledger.entries())
    store.check_indexes(log)
    store.append(log)
    log.close()
    assert len(store.records(store.open(settings=settings))) == log.end_offset


def test_a_batch_that_begins_before_the_end_of_the_one_before_is_cut(store):
    """Whole, and of a right checksum: two that hold the same offset."""
    log = store.open()
    first = store.append(log, 4)
    second = store.append(log, 4)
    name = active_name(log)
    log.abandon()
    overlapping = store.batch(log, 4, base_offset=2)
    store.disk.write(f"{store.root}/t-0/{name}", first + overlapping + second)
    log = store.open()
    assert log.end_offset == 4
    assert log.damages[0].reason == "offset 2 follows 3"


def test_what_stood_behind_a_cut_is_known_no_more(store):
    """Neither its leader epochs nor the state of its producers, which a later start could take for what is written
    there by then."""
    log = fill(store, 12)
    log.close()
    end = f"{log.end_offset:020d}.snapshot"
    assert (log.epochs.latest, log.epochs.entries[-1].start_offset) == (1, 20)
    assert end in store.names()
    name = active_name(log)
    data = store.bytes(name)
    store.disk.write(f"{store.root}/t-0/{name}", data[: -3 * (len(data) // 12)] + b"\0" * 100)
    log = store.open()
    assert log.end_offset == 18
    assert (log.epochs.latest, [entry.start_offset for entry in log.epochs.entries]) == (0, [0])
    assert end not in store.names()


def test_an_index_that_was_made_anew_below_the_recovery_point_is_durable(simulated):
    """The next start looks at its last entries alone, so that a page lost in its midst would stay."""
    store = simulated(3)
    settings = store.settings(segment_bytes=1 << 20, index_interval_bytes=1, segment_index_bytes=1 << 20)
    log = store.open(settings=settings)
    for _ in range(700):
        store.append(log, size=1)
    log.roll(1000)
    log.flush()
    store.disk.sync_dir("/")
    end = log.end_offset
    log.abandon()
    store.disk.write(f"{log.folder}/{0:020d}.index", bytes(8 * 699 + 1))
    store.disk.sync(f"{log.folder}/{0:020d}.index")
    store.open(settings=settings, recovery_point=end)
    for _ in range(40):
        again = simulated(store.disk.crash())
        log = again.open(settings=settings, recovery_point=end)
        assert log.segments[0].index.count == 699
        assert [log.segments[0].index.entry(at)[0] for at in range(699)] == list(range(1, 700))


def test_below_the_recovery_point_nothing_is_read(store):
    log = fill(store)
    bases = [facts.base_offset for facts in log.facts()]
    log.flush()
    log.abandon()
    overwrite(store, f"{bases[0]:020d}.log", 200, b"\xee")
    log = store.open(recovery_point=log.end_offset)
    assert log.end_offset == 80
    assert not log.damages


def test_a_lost_segment_leaves_no_hole(store):
    log = fill(store)
    everything = store.records(log)
    bases = [facts.base_offset for facts in log.facts()]
    log.abandon()
    for suffix in ("log", "index", "timeindex"):
        store.disk.remove(f"{log.folder}/{bases[1]:020d}.{suffix}")
    log = store.open()
    assert log.end_offset == bases[1]
    assert store.records(log) == everything[: bases[1]]
    assert f"offsets {bases[1]} to {bases[2] - 1} before it are missing" in {damage.reason for damage in log.damages}


def test_gaps_between_segments_of_a_compacted_log_stay(store):
    settings = store.settings(cleanup_policy=("compact",))
    log = fill(store, settings=settings)
    bases = [facts.base_offset for facts in log.facts()]
    log.abandon()
    for suffix in ("log", "index", "timeindex"):
        store.disk.remove(f"{log.folder}/{bases[1]:020d}.{suffix}")
    log = store.open(settings=settings)
    assert log.end_offset == 80
    assert [at for at, _ in store.records(log)] == [at for at in range(80) if not bases[1] <= at < bases[2]]


@pytest.mark.parametrize("suffix", ["index", "timeindex"])
@pytest.mark.parametrize("how", ["gone", "odd", "shuffled"])
@pytest.mark.parametrize("clean", [True, False])
def test_a_bad_index_of_an_old_segment_is_rebuilt(store, suffix, how, clean):
    log = fill(store)
    log.close()
    end = log.end_offset
    name = f"{log.facts()[0].base_offset:020d}.{suffix}"
    good = store.bytes(name)
    path = f"{store.root}/t-0/{name}"
    if how == "gone":
        store.disk.remove(path)
    else:
        store.disk.write(path, good + b"\x01" if how == "odd" else bytes(len(good)))
    log = store.open(clean=clean, recovery_point=end)
    assert log.end_offset == end
    store.check_indexes(log)
    assert store.bytes(name) == good


def test_a_bad_index_of_the_active_segment_is_rebuilt(store):
    log = fill(store)
    everything = store.records(log)
    name = active_name(log).replace(".log", ".index")
    log.close()
    store.disk.write(f"{store.root}/t-0/{name}", b"\0\0\0\1\0\0\0\1")
    log = store.open(clean=True)
    assert store.records(log) == everything
    store.check_indexes(log)


def test_a_rotten_snapshot_is_passed_over(store):
    log = fill(store)
    wanted = sorted((entry.producer_id, entry.batches[-1]) for entry in store.ledger.entries())
    log.close()
    newest = [name for name in store.names() if name.endswith(".snapshot")][-1]
    overwrite(store, newest, 12, b"\xff")
    store.open(clean=True)
    assert sorted((entry.producer_id, entry.batches[-1]) for entry in store.ledger.entries()) == wanted
    assert newest not in store.names()


def test_old_snapshots_go(store):
    log = fill(store, 3)
    log.close()
    for _ in range(3):
        log = store.open(clean=True)
        store.append(log)
        log.close()
    log = store.open(clean=True)
    assert [name for name in store.names() if name.endswith(".snapshot")] == [f"{log.end_offset:020d}.snapshot"]


def test_leftovers_of_removal_and_rewriting(store):
    log = fill(store)
    everything = store.records(log)
    bases = [facts.base_offset for facts in log.facts()]
    log.close()
    folder = log.folder
    for name in (f"{bases[0]:020d}.log.deleted", "00000000000000009999.log.cleaned", "leader-epoch-checkpoint.tmp"):
        store.disk.write(f"{folder}/{name}", b"junk")
    store.disk.create(f"{folder}/{7777:020d}.index")
    log = store.open(clean=True)
    assert store.records(log) == everything
    assert not [name for name in store.names() if name.endswith((".deleted", ".cleaned", ".tmp"))]
    assert f"{7777:020d}.index" not in store.names()


def test_a_finished_rewrite_replaces_what_it_covers(store):
    log = fill(store)
    bases = [facts.base_offset for facts in log.facts()]
    log.close()
    folder = log.folder
    old = [store.bytes(f"{base:020d}.log") for base in bases[:2]]
    batch = len(old[0]) // ((bases[1] - bases[0]) // 2)
    swap = old[0][batch:] + old[1]  # the first batch was compacted away
    store.disk.write(f"{folder}/{bases[0]:020d}.log.swap", swap)
    log = store.open(clean=True, settings=store.settings(cleanup_policy=("compact",)))
    assert [facts.base_offset for facts in log.facts()] == [bases[0], *bases[2:]]
    assert [at for at, _ in store.records(log)] == list(range(2, 80))
    store.check_indexes(log)


def test_an_unfinished_rewrite_is_thrown_away(store):
    log = fill(store)
    everything = store.records(log)
    bases = [facts.base_offset for facts in log.facts()]
    log.close()
    store.disk.write(f"{log.folder}/{bases[1]:020d}.log.swap", b"half")
    store.disk.write(f"{log.folder}/{bases[0]:020d}.log.cleaned", b"half")
    log = store.open(clean=True)
    assert store.records(log) == everything
    assert not [name for name in store.names() if name.endswith((".swap", ".cleaned"))]


def test_segments_below_the_log_start_go(store):
    log = fill(store)
    bases = [facts.base_offset for facts in log.facts()]
    log.close()
    log = store.open(clean=True, log_start=bases[2] + 1)
    assert log.start_offset == bases[2] + 1
    assert [facts.base_offset for facts in log.facts()] == bases[2:]


def test_a_log_that_ends_below_its_start_begins_there(store):
    log = fill(store)
    log.close()
    log = store.open(clean=True, log_start=500)
    assert (log.start_offset, log.end_offset) == (500, 500)
    store.append(log)
    assert [at for at, _ in store.records(log)] == [500]


def test_batches_larger_than_the_reading_window(store, monkeypatch):
    monkeypatch.setattr("logkernel.storage.recovery.CHUNK_BYTES", 256)
    log = store.open(settings=store.settings(segment_bytes=1 << 20))
    for n in range(12):
        store.append(log, size=n * 150)
    everything = store.records(log)
    log.abandon()
    log = store.open()
    assert store.records(log) == everything
    assert not log.damages


def test_only_the_newest_batches_of_a_producer_are_replayed(store, new_ledger):
    log = store.open(settings=store.settings(segment_bytes=1 << 20))
    for n in range(50):
        store.append(log, producer_id=9, producer_epoch=0, base_sequence=n)
    log.abandon()
    ledger = new_ledger()
    store.open(settings=store.settings(segment_bytes=1 << 20), producers=ledger)
    assert ledger.replayed == 10
    assert [batch[0] for batch in ledger.entries()[0].batches] == list(range(40, 50))


def test_an_open_transaction_survives(store):
    log = store.open()
    store.append(log, producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)
    for n in range(60):
        store.append(log, size=200, producer_id=2, producer_epoch=0, base_sequence=n)
    log.abandon()
    for options in ({}, {"recovery_point": 40}, {"recovery_point": 61}):
        log = store.open(**options)
        assert {entry.producer_id: entry.current_txn_first_offset for entry in store.ledger.entries()} == {1: 0, 2: -1}
        log.abandon()
