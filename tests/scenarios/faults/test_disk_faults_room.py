"""Rows of docs/disk-faults.md: no room on the disk, and no file handles."""

from __future__ import annotations

import errno
import time

import pytest
from disk_failures import STORAGE_ERROR, expiring, failing, no_handles, online

from logkernel.broker.replicas.manager import ROOM_MS
from logkernel.errors import KafkaStorageError
from logkernel.record.batch import parse_header, stamp
from logkernel.record.encode import encode_batch
from logkernel.storage.simdisk import PowerCut
from logkernel.vocabulary import Record


def stamped(data: bytearray, offset: int):
    stamp(data, 0, offset, 0)
    return parse_header(data, 0)


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_refuses_writes_serves_reads_and_goes_on_when_there_is_room(error, machine):
    machine.boot()
    machine.topic()
    assert machine.produce([b"a"]) == [0]
    machine.disk.fault = failing("append", "/t-0/", error)
    assert machine.produce([b"b"]) == [STORAGE_ERROR]
    assert machine.produce([b"c"]) == [STORAGE_ERROR]
    assert machine.values() == [b"a"]
    machine.disk.fault = None
    assert machine.produce([b"d"]) == [0]
    assert machine.values() == [b"a", b"d"]
    machine.kill()
    machine.boot()
    assert machine.values() == [b"a", b"d"]


@pytest.mark.parametrize("kind", ["create", "write", "truncate"])
def test_a_disk_that_fills_up_while_a_segment_is_closed(kind, machine):
    """Whatever step is refused, the next write finds a log that can go on."""
    machine.boot()
    machine.topic(segment_bytes=1 << 20)
    values = [b"%d" % n * 300_000 for n in range(3)]
    for value in values:
        assert machine.produce([value]) == [0]
    machine.disk.fault = failing(kind, "/t-0/", errno.ENOSPC)
    refused = machine.produce([b"x" * 300_000])
    assert refused in ([STORAGE_ERROR], [0])
    machine.disk.fault = None
    kept = [*values, *([b"x" * 300_000] if refused == [0] else [])]
    for n in range(4, 9):
        kept.append(b"%d" % n * 300_000)
        assert machine.produce(kept[-1:]) == [0]
    assert machine.values() == kept
    machine.kill()
    machine.boot()
    assert machine.values() == kept


def test_a_full_disk_keeps_the_checkpoints_that_there_are(machine):
    machine.boot()
    machine.topic()
    machine.produce([b"a"])
    machine.pass_ms(70_000)
    before = machine.disk.read("/data/replication-offset-checkpoint")
    machine.produce([b"b"])
    machine.disk.fault = failing("write", "-checkpoint", errno.ENOSPC)
    machine.pass_ms(70_000)
    assert machine.disk.read("/data/replication-offset-checkpoint") == before
    machine.disk.fault = None
    assert machine.produce([b"c"]) == [0]
    machine.pass_ms(70_000)
    assert machine.disk.read("/data/replication-offset-checkpoint") != before


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE])
def test_too_few_file_handles_refuse_what_needs_one_and_cost_nothing(error, machine):
    machine.boot()
    machine.topic(segment_bytes=1 << 20, flush_messages=2)
    kept = [b"%d" % n * 300_000 for n in range(3)]
    for value in kept:
        machine.produce([value])
    machine.disk.fault = lambda what, path: error if no_handles(what, path) else None
    told = [machine.produce([b"x%d" % n * 150_000]) for n in range(4)]
    assert [STORAGE_ERROR] in told or [] in told
    machine.topic("new")
    assert machine.produce([b"a"], topic="new") == [STORAGE_ERROR]
    machine.disk.fault = None
    machine.pass_ms(2_000)
    kept += [b"x%d" % n * 150_000 for n in range(4) if told[n] == [0]]
    assert all(answer for answer in told), "who waited for a flush that was put off has its answer"
    assert machine.produce([b"end"]) in ([0], [])
    machine.pass_ms(2_000)
    assert machine.values() == [*kept, b"end"]
    machine.broker.close()
    machine.boot()
    assert machine.values() == [*kept, b"end"]
    assert machine.produce([b"a"], topic="new") == [0]


def test_too_few_file_handles_at_the_start_refuse_to_start(machine):
    machine.boot()
    machine.topic("t", 5)
    machine.kill()
    machine.disk.fault = lambda what, path: errno.EMFILE if what == "open" and "/t-3" in path else None
    with pytest.raises(OSError, match="Too many open files"):
        machine.boot()
    machine.disk.fault = None
    machine.kill()
    machine.boot()
    assert machine.values(partition=3) == []


def test_a_start_on_a_full_disk_removes_first_what_was_dropped(machine):
    expiring(machine)
    machine.pass_ms(2000)
    machine.broker.retention.expire("t", lambda done: None)

    def dropped() -> list[str]:
        return [name for name in machine.disk.listdir("/data/t-0") if name.endswith(".deleted")]

    assert dropped(), "the files wait for file.delete.delay.ms"
    machine.kill()
    full = failing("truncate", "/t-0/", errno.ENOSPC)  # a step of recovery, as is the making of indexes
    machine.disk.fault = lambda what, path: full(what, path) if dropped() else None
    machine.boot()
    assert dropped() == []
    assert machine.produce([b"there is room"]) == [0]
    assert machine.values() == [b"there is room"]


def test_a_start_that_finds_no_room_names_the_log_and_changes_nothing(machine):
    machine.boot()
    machine.topic("t", 2)
    assert machine.produce([b"a"], partition=1) == [0]
    machine.kill()
    machine.disk.fault = failing("truncate", "/t-1/", errno.ENOSPC)
    with pytest.raises(OSError, match="No space left on device: '/data/t-1'"):
        machine.boot()
    machine.disk.fault = None
    machine.kill()
    machine.boot()
    assert machine.values(partition=1) == [b"a"]


@pytest.mark.parametrize("error", [errno.ENOSPC, errno.EMFILE])
def test_a_log_that_could_not_be_made_is_made_when_there_is_room(error, machine):
    """It was offline until a restart."""
    machine.boot()
    machine.disk.fault = failing("mkdir", "/t-0", error)
    machine.topic()
    assert machine.produce([b"a"]) == [STORAGE_ERROR]
    machine.pass_ms(ROOM_MS + 1)
    assert machine.produce([b"b"]) == [STORAGE_ERROR]
    machine.disk.fault = None
    machine.pass_ms(ROOM_MS + 1)
    assert machine.produce([b"c"]) == [0]
    assert machine.values() == [b"c"]


def test_metadata_that_finds_no_room_is_refused_and_goes_on_later(machine):
    machine.boot()
    machine.disk.fault = failing("append", "__logkernel_metadata", errno.ENOSPC)
    with pytest.raises(KafkaStorageError, match="No space left"):
        machine.topic("refused")
    machine.disk.fault = None
    machine.topic("taken")
    machine.crash()
    machine.boot()
    assert sorted(machine.broker.cluster.topics) == ["taken"]


@pytest.mark.parametrize("kind", ["index", "timeindex"])
def test_a_disk_without_room_for_an_index_entry_refuses_the_records_too(kind, machine):
    """Else a store into the mapped file would find no block, and the system would end the process."""
    machine.boot()
    machine.topic(index_interval_bytes=100)
    kept = [b"a" * 200]
    assert machine.produce(kept) == [0]
    machine.disk.fault = failing("truncate", f".{kind}", errno.ENOSPC)
    assert machine.produce([b"b" * 200]) == [STORAGE_ERROR]
    assert machine.values() == kept
    machine.disk.fault = None
    kept += [b"%d" % number * 200 for number in range(30)]
    assert {machine.produce([value])[0] for value in kept[1:]} == {0}
    assert machine.values() == kept
    machine.kill()
    machine.boot()
    assert machine.values() == kept


def test_a_full_disk_is_made_room_on_by_retention(machine):
    """Not even a checkpoint finds room, until something has gone. Nothing went, as that had to be noted first, or the
    directory went offline, as there was no room for another segment."""
    log = expiring(machine)
    names = lambda: [name for name in machine.disk.listdir("/data/t-0") if ".log" in name]  # noqa: E731
    before = len(names())

    def full(kind: str, path: str) -> int | None:
        return errno.ENOSPC if kind in ("write", "append", "create") and len(names()) >= before else None

    machine.disk.fault = full
    assert machine.produce([b"refused"]) == [STORAGE_ERROR]
    machine.pass_ms(301_000)
    assert online(machine) == ["/data"]
    assert log.start_offset == 6, "the closed ones have gone"
    assert machine.values() == [b"active"]
    machine.pass_ms(300_000)  # now there is room for another segment, too
    assert (log.start_offset, log.end_offset) == (7, 7)
    assert machine.produce([b"goes on"]) == [0]
    machine.crash()
    machine.boot()
    assert machine.broker.replicas.led.get(("t", 0)).log.start_offset == 7


def test_a_flush_that_finds_no_room_for_leader_epochs_is_put_off(new_machine):
    """No sync failed. It took the directory offline, with the first segment that was closed on a full disk."""
    for seed in range(20):  # names are lost in another order each time
        machine = new_machine(seed)
        machine.boot()
        machine.topic(flush_messages=4, segment_bytes=1 << 20)
        values = [b"%d" % number * 300_000 for number in range(4)]
        assert [machine.produce([value]) for value in values[:3]] == [[0]] * 3
        machine.disk.fault = failing("write", "leader-epoch-checkpoint", errno.ENOSPC)
        waiting = machine.produce(values[3:])
        machine.pass_ms(3_000)
        assert waiting == []
        assert online(machine) == ["/data"]
        machine.disk.fault = None
        machine.pass_ms(3_000)
        assert waiting == [0]
        machine.crash()
        machine.boot()
        assert machine.values() == values, seed


def test_retention_on_a_full_disk_leaves_no_hole_whenever_the_power_goes(new_machine):
    """Segments go one by one there, as no checkpoint keeps them from coming back."""
    point = 0
    while True:
        point += 1
        machine = new_machine(point)
        expiring(machine)
        machine.broker.replicas.led.get(("t", 0)).log.flush()
        machine.pass_ms(299_000)
        machine.disk.fault = lambda kind, path: errno.ENOSPC if kind in ("write", "append", "create") else None
        begun = machine.disk.operations
        machine.disk.fail_at(begun + point, None)
        told = 0
        try:
            for _ in range(30):
                machine.pass_ms(100)
                told = max(told, machine.broker.replicas.led.get(("t", 0)).log.start_offset)
        except PowerCut:
            machine.crash()
            machine.boot()
            assert machine.broker.replicas.led.get(("t", 0)).log.start_offset >= told, point
            values = machine.values()
            assert values == [b"0", b"1", b"2", b"3", b"4", b"5", b"active"][-len(values) :], point
        else:
            assert told == 6
            if machine.disk.operations < begun + point:
                assert point > 40
                return


def test_too_few_file_handles_put_cleaning_off(machine):
    """It took the directory offline, and a compacted log was left alone until a restart."""
    expiring(machine)
    machine.topic("c", cleanup_policy="compact", min_cleanable_dirty_ratio=0.0)
    replica = machine.broker.replicas.led.get(("c", 0))
    data = bytearray(encode_batch([Record(b"k", b"v", timestamp_ms=1)]))
    for _ in range(3):
        replica.log.append(data, [stamped(data, replica.log.end_offset)], 0)
    replica.log.roll(0)
    machine.broker.close()
    machine.boot()
    machine.disk.fault = no_handles
    machine.pass_ms(310_000)
    assert online(machine) == ["/data"]
    assert machine.broker.cleaner.uncleanable == {}
    assert machine.broker.replicas.led.get(("t", 0)).log.start_offset == 0
    machine.disk.fault = None
    machine.pass_ms(310_000)
    assert machine.broker.replicas.led.get(("t", 0)).log.start_offset == 7
    deadline = time.monotonic() + 180
    while machine.broker.replicas.led.get(("c", 0)).log.clean_offset != 3:
        assert time.monotonic() < deadline
        machine.broker.runtime.workers.wait(0.01)
        machine.pass_ms(1000)
