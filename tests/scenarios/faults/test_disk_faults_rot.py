"""Rows of docs/disk-faults.md: bytes that changed on the disk."""

from __future__ import annotations

import time

import pytest
from disk_failures import folder_of, two_folders

import logkernel
from logkernel.broker.commands import handle
from logkernel.errors import CorruptMessage


def test_rot_found_by_recovery_is_placed_and_the_rest_is_served(new_machine):
    machine = two_folders(new_machine)
    for number in range(20):
        machine.produce([b"v%d" % number], partition=0)
    machine.kill()
    path = f"{folder_of(machine, 0)}/t-0/00000000000000000000.log"
    machine.disk.content(path)[200] ^= 1
    machine.boot()
    (damage,) = machine.broker.logs.directories.logs["t", 0].damages
    assert damage.path == path
    assert damage.position <= 200
    assert "checksum" in damage.reason
    assert machine.values(partition=0) == [b"0", b"v0", b"v1"][: len(machine.values(partition=0))]
    assert machine.values(partition=1) == [b"1"]


def test_rot_in_the_metadata_log_refuses_to_start_and_a_torn_end_does_not(new_machine):
    machine = new_machine(3)
    machine.boot()
    for number in range(5):
        machine.topic(f"topic-{number}")
    machine.kill()
    path = "/data/__logkernel_metadata-0/00000000000000000000.log"
    whole = bytes(machine.disk.read(path))
    machine.disk.write(path, whole[:150] + bytes([whole[150] ^ 1]) + whole[151:])
    with pytest.raises(CorruptMessage, match=r"byte \d+: .*damaged"):
        machine.boot()
    machine.kill()
    machine.disk.write(path, whole[:-10])
    machine.boot()
    assert "topic-3" in machine.broker.cluster.topics
    machine.broker.close()
    machine.disk.write(path, whole[:-10])
    with pytest.raises(CorruptMessage, match="damaged"):
        machine.boot()


def test_rot_found_by_the_checker_is_placed(new_machine):
    """In a sealed segment, below the recovery point, where no broker looks."""
    from logkernel.inspect.findings import Report
    from logkernel.inspect.folder import check_directory

    machine = new_machine()
    machine.boot()
    machine.topic(segment_bytes=1 << 20)
    for number in range(8):
        machine.produce([b"%d" % number * 300_000])
    machine.broker.close()
    path = "/data/t-0/00000000000000000000.log"
    machine.disk.content(path)[400_000] ^= 1
    before = machine.disk.operations
    report = Report()
    check_directory(machine.disk, "/data", machine.broker.runtime.kernel.codec_for, report)
    (finding,) = report.findings
    assert (finding.severity, finding.path) == ("error", path)
    assert finding.position == 300_072  # where the second batch begins
    assert finding.remedy
    assert machine.disk.operations == before


def test_rot_found_by_the_cleaner_is_placed_and_the_log_is_served_on(tmp_path, caplog):
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=1 << 20)
        for number in range(120):
            log.append("t", b"%03d" % number + bytes(20_000), key=b"k%d" % (number % 7))
    rotten = tmp_path / "t-0" / f"{0:020d}.log"
    data = bytearray(rotten.read_bytes())
    data[20_150] ^= 1
    rotten.write_bytes(data)
    with logkernel.open(tmp_path, log_cleaner_backoff_ms=1) as log:
        told: list[dict] = []
        deadline = time.monotonic() + 180
        while not (told and told[-1]["result"]["uncleanable"]):
            assert time.monotonic() < deadline
            log.broker.runtime.workers.wait(0.01)
            log.step()
            handle(log.broker, "status", {}, told.append)
        why = told[-1]["result"]["uncleanable"]["t-0"]
        assert f"{rotten}, byte 20" in why
        assert why in caplog.text
        assert told[-1]["result"]["offline"] == []
        assert len([*log.read("t", offset=2)]) == 118
        log.append("t", b"lives on", key=b"k")
