"""Snapshots of producers that a power cut took or tore: what they say is said again, or was durable."""

from __future__ import annotations

from logkernel.storage.names import SNAPSHOT


def fill(log, store, batches):
    for number in range(batches):
        producer = {"producer_id": number, "producer_epoch": 0, "base_sequence": 0}
        store.append(log, 1, size=100, **producer)


def producers(store):
    return sorted(entry.producer_id for entry in store.ledger.entries())


def test_recovery_writes_what_a_power_cut_tore(simulated):
    """World seed 40246: snapshots stayed torn, since segments are recovered in one pass. Once the segments below were
    deleted, the next start had nothing to replay, and took a batch that was sent again for a new one."""
    store = simulated()
    log = store.open()
    fill(log, store, 120)
    bases = [facts.base_offset for facts in log.facts()]
    assert len(bases) > 3
    torn = f"{store.root}/t-0/{bases[2]:020d}{SNAPSHOT}"
    store.disk.write(torn, store.disk.read(torn)[:-5])
    store.disk.remove(f"{store.root}/t-0/{bases[3]:020d}{SNAPSHOT}")
    log.abandon()
    log = store.open()
    for base in bases[2:4]:
        log.drop_before(base)
        log.abandon()
        log = store.open(log_start=base)
        assert producers(store) == list(range(120))


def test_the_snapshot_at_the_log_start_is_durable_before_what_it_follows_goes(simulated):
    store = simulated()
    log = store.open()
    fill(log, store, 120)
    start = log.facts()[2].base_offset
    for facts in log.facts():
        store.disk.sync(f"{store.root}/t-0/{facts.base_offset:020d}.log")
    store.disk.sync_dir(f"{store.root}/t-0")
    store.disk.sync_dir(store.root)
    log.drop_before(start)
    end = log.end_offset
    store.disk = store.disk.crash()
    log = store.open(log_start=start)
    assert (log.start_offset, log.end_offset) == (start, end)
    assert producers(store) == list(range(120))


def test_a_flush_syncs_snapshots(simulated):
    store = simulated()
    log = store.open()
    fill(log, store, 120)
    bases = [facts.base_offset for facts in log.facts()]
    log.flush()
    files = {base: store.bytes(f"{base:020d}{SNAPSHOT}") for base in bases[1:]}
    assert all(files.values())
    store.disk = store.disk.crash()
    assert {base: store.bytes(f"{base:020d}{SNAPSHOT}") for base in bases[1:]} == files
