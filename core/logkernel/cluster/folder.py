"""The folder of a durable cluster: `coordination` beside `broker-1`, `broker-2`, …; one process at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from logkernel.broker.metadata_log import DiskMetadataLog, metadata_generations
from logkernel.cluster.store import SharedStore
from logkernel.contracts import StateLog
from logkernel.errors import ConfigError, DataDirectoryLocked
from logkernel.kernel import Kernel
from logkernel.storage.checkpoints import CLUSTER_MEMBER, META_PROPERTIES
from logkernel.storage.disk import RealDisk
from logkernel.storage.names import BROKER_FOLDER
from logkernel.vocabulary import Record

LOCK = ".lock"
COORDINATION = "coordination"
LOOK_AGAIN_S = 0.02


def broker_folder(path: str | Path, node: int) -> str:
    return str(Path(path) / f"{BROKER_FOLDER}{node}")


def coordination_folder(path: str | Path) -> str:
    return str(Path(path) / COORDINATION)


def open_store(path: str | Path) -> SharedStore:
    """The coordination of the cluster in folder `path`. Raises `DataDirectoryLocked`, `CorruptMessage`, and
    `ConfigError` for the folder of a single broker."""
    _refuse_single_brokers_folder(path)
    return SharedStore(Kernel().coordination("local", lambda: open_log(Path(coordination_folder(path)))))


def wait_for_folders(path: str | Path, brokers: int, timeout_s: float) -> None:
    """Wait until no process holds a broker's folder: brokers whose parent was killed end a moment after it.

    Raises `DataDirectoryLocked`.
    """
    deadline_s = time.monotonic() + timeout_s
    for node in range(1, brokers + 1):
        while True:
            try:
                RealDisk().share(f"{broker_folder(path, node)}/{LOCK}")()
                break
            except DataDirectoryLocked:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(LOOK_AGAIN_S)


def check_brokers(path: str, brokers: int) -> None:
    """Raise `ConfigError` where the folder belongs to a single broker, or to a cluster of more brokers."""
    _refuse_single_brokers_folder(path)
    folder = Path(path)
    found = (
        [each.name.removeprefix(BROKER_FOLDER) for each in folder.glob(f"{BROKER_FOLDER}*")] if folder.is_dir() else []
    )
    most = max((int(number) for number in found if number.isdigit()), default=0)
    if most > brokers:
        raise ConfigError(f"{path} holds {most} brokers, and --brokers {brokers} leaves some out; say --brokers {most}")


def is_members(path: str | Path) -> bool:
    """Whether the data directory is one of a cluster's broker, or of a broker with several directories, and what was
    decided (topics, users, access rules) is kept elsewhere: in the cluster's folder, in ZooKeeper, in another
    directory."""
    folder = Path(path).resolve()
    if not (folder / META_PROPERTIES).exists():
        return False
    if folder.name.startswith(BROKER_FOLDER) and Path(coordination_folder(folder.parent)).is_dir():
        return True
    return not metadata_generations(RealDisk(), str(folder)) or (folder / CLUSTER_MEMBER).exists()


def _refuse_single_brokers_folder(path: str | Path) -> None:
    if (Path(path) / META_PROPERTIES).exists():
        raise ConfigError(
            f"{path} is the folder of a single broker; give a cluster another one, on a command line by --data"
        )


class _LockedLog:
    """A `contracts.StateLog` that gives its folder's lock back at the end."""

    def __init__(self, log: DiskMetadataLog, release: Callable[[], None]) -> None:
        self._log = log
        self._release = release

    def append(self, records: Sequence[Record], *, sync: bool) -> int:
        return self._log.append(records, sync=sync)

    def replace(self, records: Sequence[Record]) -> None:
        self._log.replace(records)

    def records(self) -> Iterator[Record]:
        return self._log.records()

    def close(self) -> None:
        self._log.close()
        self._release()


def open_log(path: Path) -> StateLog:
    """The coordination's log in folder `path`, which is made. Raises `DataDirectoryLocked`, `CorruptMessage`."""
    path.mkdir(parents=True, exist_ok=True)
    disk = RealDisk()
    release = disk.lock(f"{path}/{LOCK}")
    try:
        return _LockedLog(DiskMetadataLog(disk, str(path)), release)
    except BaseException:
        release()
        raise
