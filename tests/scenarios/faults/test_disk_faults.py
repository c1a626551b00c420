"""Every row of docs/disk-faults.md: a broker over a disk that fails in one way, and what its clients then see.

Here what cannot be written, synced or read; `test_disk_faults_*` have the rest.
"""

from __future__ import annotations

import errno

import pytest
from disk_failures import STORAGE_ERROR, expiring, failing, folder_of, online, two_folders

from logkernel.errors import KafkaStorageError
from logkernel.storage.simdisk import SimulatedDisk


@pytest.mark.parametrize("error", [errno.EIO, errno.EROFS])
def test_a_write_error_takes_its_directory_offline_and_no_other(error, new_machine):
    machine = two_folders(new_machine)
    bad = folder_of(machine, 0)
    machine.disk.fault = failing("append", f"{bad}/t-0/", error)
    assert machine.produce([b"x"]) == [STORAGE_ERROR]
    machine.disk.fault = None
    assert machine.produce([b"x"]) == [STORAGE_ERROR], "nothing is tried again before a restart"
    assert machine.produce([b"y"], partition=1) == [0]
    assert online(machine) == [folder_of(machine, 1)]
    machine.kill()
    machine.boot()
    assert (machine.values(partition=0), machine.values(partition=1)) == ([b"0"], [b"1", b"y"])


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC, errno.EDQUOT])  # room may be missing only by then
def test_a_sync_error_ends_the_service_of_the_log_and_answers_who_waits(error, new_machine):
    machine = new_machine()
    machine.boot()
    machine.topic(flush_messages=2)
    assert machine.produce([b"a"]) == [0]
    machine.flush_later = True
    waiting = machine.produce([b"b"])
    assert waiting == []
    machine.disk.fault = failing("sync", "/t-0/", error)
    machine.run_flushes()
    assert waiting == [STORAGE_ERROR]
    machine.disk.fault = None
    synced = [line for line in machine.disk.trace if " sync " in line and "/t-0/" in line]
    machine.pass_ms(120_000)
    machine.run_flushes()
    assert [line for line in machine.disk.trace if " sync " in line and "/t-0/" in line] == synced
    assert machine.produce([b"c"]) == [STORAGE_ERROR]
    machine.broker.close()
    assert not machine.disk.exists("/data/.kafka_cleanshutdown"), "the next start must check the log"


def test_a_checkpoint_that_cannot_be_written_takes_its_directory_offline(new_machine):
    machine = two_folders(new_machine)
    bad = folder_of(machine, 0)
    machine.disk.fault = failing("sync", f"{bad}/replication-offset-checkpoint", errno.EIO)
    machine.pass_ms(10_000)
    machine.disk.fault = None
    assert machine.produce([b"x"]) == [STORAGE_ERROR]
    assert machine.produce([b"y"], partition=1) == [0]


def test_a_read_error_refuses_the_read_and_leaves_the_rest_alone(new_machine):
    machine = two_folders(new_machine)
    path = f"{folder_of(machine, 0)}/t-0/00000000000000000000.log"
    machine.disk.unreadable.add(path)
    with pytest.raises(OSError):
        machine.values(partition=0)
    assert machine.produce([b"y"], partition=1) == [0]
    assert machine.values(partition=1) == [b"1", b"y"]
    machine.disk.unreadable.clear()
    assert machine.values(partition=0) == [b"0"]


def test_a_log_that_cannot_be_opened_is_offline_and_the_rest_is_served(new_machine):
    machine = two_folders(new_machine)
    path = f"{folder_of(machine, 0)}/t-0/partition.metadata"
    machine.broker.close()
    machine.disk.write(path, b"version: 0\ntopic_id: rotten")
    machine.boot()
    assert machine.produce([b"x"]) == [STORAGE_ERROR]
    assert machine.produce([b"y"], partition=1) == [0]
    assert list(map(str, machine.broker.logs.directories.unreadable)) == ["t-0"]


def test_a_directory_that_vanishes_is_noticed_at_the_next_checkpoint(new_machine):
    machine = two_folders(new_machine)
    bad = folder_of(machine, 0)
    machine.disk.remove_tree(bad)
    machine.pass_ms(5_000)
    assert machine.produce([b"x"]) == [STORAGE_ERROR]
    assert machine.produce([b"y"], partition=1) == [0]
    assert online(machine) == [folder_of(machine, 1)]


def test_a_log_that_no_directory_has_at_the_start_is_made_anew_and_told_of(new_machine, caplog):
    machine = two_folders(new_machine)
    machine.broker.close()
    assert "made anew" not in caplog.text
    machine.disk.remove_tree(f"{folder_of(machine, 0)}/t-0")
    machine.boot()
    assert "no directory has the log, which is made anew: partition=t-0" in caplog.text
    assert (machine.values(partition=0), machine.values(partition=1)) == ([], [b"1"])


def test_metadata_that_cannot_be_synced_is_refused_from_then_on(machine):
    machine.boot()
    machine.topic("before")
    machine.disk.fault = failing("sync", "__logkernel_metadata", errno.EIO)
    with pytest.raises(KafkaStorageError, match="cannot be synced"):
        machine.topic("doubtful")
    machine.disk.fault = None
    with pytest.raises(KafkaStorageError):
        machine.topic("after")
    assert machine.produce([b"a"], topic="before") == [0]
    machine.crash()
    machine.boot()
    assert "before" in machine.broker.cluster.topics
    assert "after" not in machine.broker.cluster.topics


def test_checkpoints_that_cannot_be_read_count_as_empty(machine):
    machine.boot()
    machine.topic()
    machine.produce([b"a"])
    machine.broker.close()
    for name in ("recovery-point", "replication", "log-start"):
        machine.disk.write(f"/data/{name}-offset-checkpoint", b"\0\0\0rot")
    machine.boot()
    assert machine.values() == [b"a"]


def test_a_dead_device_is_an_error_for_clients_and_no_end_of_the_broker(new_machine):
    for seed in range(20):
        machine = new_machine(seed)
        machine.boot()
        machine.topic(flush_messages=3)
        machine.disk.fail_at(machine.disk.operations + machine.random.randint(1, 12), errno.EIO, forever=True)
        told = [machine.produce([b"%d" % number]) for number in range(30)]
        machine.pass_ms(60_000)
        assert told[-1] == [STORAGE_ERROR], seed
        assert isinstance(machine.disk, SimulatedDisk)


@pytest.mark.parametrize("error", [errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_flush_is_tried_again_only_where_no_file_could_be_opened_for_it(error, new_machine):
    """No sync ends so: whatever else it may have been, it was one that failed. All that it had to do is left to do."""
    again = error in (errno.EMFILE, errno.ENFILE)
    for seed in range(15):  # names are lost in another order each time
        machine = new_machine(seed)
        machine.boot()
        machine.topic(flush_messages=1, segment_bytes=1 << 20)
        values = [b"%d" % number * 300_000 for number in range(4)]
        assert [machine.produce([value]) for value in values[:3]] == [[0]] * 3
        machine.flush_later = True
        waiting = machine.produce(values[3:])
        ((_, done),) = machine.flushes
        machine.flushes.clear()
        done(OSError(error, "told to"))
        machine.broker.turn.end()
        assert waiting == ([] if again else [STORAGE_ERROR])
        machine.pass_ms(3_000)
        machine.run_flushes()
        assert waiting == [0 if again else STORAGE_ERROR]
        machine.crash()
        machine.boot()
        assert machine.values() == values[: 4 if again else len(machine.values())], seed


def test_a_read_error_puts_retention_off(machine):
    log = expiring(machine)
    machine.broker.close()
    machine.boot()
    log = machine.broker.replicas.led["t", 0].log
    for segment in log.segments.closed:
        segment.largest_ms = None
    machine.disk.fault = lambda kind, path: errno.EIO if kind == "open" and path.endswith(".timeindex") else None
    machine.pass_ms(301_000)
    assert online(machine) == ["/data"]
    assert log.start_offset == 0
    machine.disk.fault = None
    machine.pass_ms(301_000)
    assert log.start_offset == 7
