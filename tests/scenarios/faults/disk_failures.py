"""What the tests of disk faults share: faults, and brokers to meet them."""

from __future__ import annotations

import errno

from logkernel.errors import KafkaStorageError

STORAGE_ERROR = KafkaStorageError.code
LOGS = "/a,/b"


def failing(kind: str, part: str, error: int):
    """A fault of one kind of operation on paths with `part` in them."""
    return lambda what, path: error if what == kind and part in path else None


def two_folders(new_machine, *settings: str):
    """A broker over two directories, with a partition in each."""
    machine = new_machine(1, *settings, folders=LOGS)
    machine.boot()
    machine.topic("t", 2)
    assert {machine.produce([b"%d" % n], partition=n)[0] for n in (0, 1)} == {0}
    return machine


def folder_of(machine, partition: int) -> str:
    return machine.broker.logs.directories.directory_of(("t", partition)).path


def online(machine) -> list[str]:
    return [directory.path for directory in machine.broker.logs.directories.online()]


def no_handles(what: str, path: str) -> int | None:
    return errno.EMFILE if what == "open" else None


def expiring(machine, segments: int = 6):
    """A log of closed segments, a record each, and an active one, all of them too old by the next look at retention."""
    machine.boot()
    machine.topic(retention_ms=1000, file_delete_delay_ms=60_000)
    for number in range(segments):
        assert machine.produce([b"%d" % number]) == [0]
        machine.broker.replicas.led.get(("t", 0)).log.roll(machine.clock.wall_ms())
    assert machine.produce([b"active"]) == [0]
    return machine.broker.replicas.led.get(("t", 0)).log
