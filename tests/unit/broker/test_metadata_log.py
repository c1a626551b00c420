"""The lent log on a disk that forgets: a replacement is whole or never was."""

from __future__ import annotations

import contextlib
import errno

import pytest

from logkernel.broker.metadata_log import DiskMetadataLog, metadata_generations
from logkernel.errors import KafkaStorageError
from logkernel.storage.memory_disk import MemoryDisk
from logkernel.storage.simdisk import PowerCut, SimulatedDisk
from logkernel.vocabulary import Record

OLD = [b"%d" % number for number in range(40)]
NEW = [b"new %d" % number for number in range(1200)]
MORE = [b"more"]


def rows(keys: list[bytes]) -> list[Record]:
    return [Record(key, b"v" * 50) for key in keys]


def keys(log: DiskMetadataLog) -> list[bytes]:
    return [record.key or b"" for record in log.records()]


def prepared(seed: int) -> SimulatedDisk:
    disk = SimulatedDisk(seed)
    disk.mkdir("d")
    disk.sync_dir("/")
    log = DiskMetadataLog(disk, "d")
    for key in OLD:
        log.append(rows([key]), sync=True)
    log.close()
    return disk


def test_a_replacement_takes_the_place_of_all() -> None:
    disk = MemoryDisk()
    disk.mkdir("d")
    log = DiskMetadataLog(disk, "d")
    log.append(rows(OLD), sync=True)
    log.replace(rows(NEW))
    assert keys(log) == NEW
    log.append(rows(MORE), sync=True)
    log.close()
    assert metadata_generations(disk, "d") == [1]
    again = DiskMetadataLog(disk, "d")
    assert keys(again) == NEW + MORE
    again.replace(rows(OLD))
    again.close()
    assert metadata_generations(disk, "d") == [2]
    assert keys(DiskMetadataLog(disk, "d")) == OLD


def operations() -> int:
    """Changing operations of one replacement."""
    number = 1
    while True:
        disk = prepared(0)
        log = DiskMetadataLog(disk, "d")
        disk.fail_at(disk.operations + number, None)
        try:
            log.replace(rows(NEW))
        except PowerCut:
            number += 1
            continue
        return number


STEPS = operations()


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_power_fails_at_every_step(step: int) -> None:
    for seed in range(6):
        disk = prepared(seed)
        log = DiskMetadataLog(disk, "d")
        disk.fail_at(disk.operations + step, None)
        finished = False
        with contextlib.suppress(PowerCut):
            log.replace(rows(NEW))
            finished = True
        found = DiskMetadataLog(disk.crash(), "d")
        assert keys(found) in ([NEW] if finished else [OLD, NEW])
        found.append(rows(MORE), sync=True)
        assert keys(found)[-1:] == MORE


@pytest.mark.parametrize("step", range(1, STEPS))
def test_a_disk_that_refuses_leaves_a_log_that_is_one_of_the_two(step: int) -> None:
    disk = prepared(step)
    log = DiskMetadataLog(disk, "d")
    disk.fail_at(disk.operations + step, errno.ENOSPC)
    replaced = False
    with contextlib.suppress(OSError):
        log.replace(rows(NEW))
        replaced = True
    with contextlib.suppress(KafkaStorageError):
        log.append(rows(MORE), sync=True)
        replaced |= False
        kept = keys(log)
        log.close()
        assert keys(DiskMetadataLog(disk, "d")) == kept
        return
    assert not replaced
    log.close()
    assert keys(DiskMetadataLog(disk, "d")) in (OLD, NEW)
