"""Checks a whole data directory: who owns it, its checkpoints, every log. Writes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from logkernel.errors import LogkernelError
from logkernel.inspect.findings import BY_OPENING, Report
from logkernel.inspect.rows import OFFSET_CHECKPOINTS
from logkernel.inspect.segments import END, PASS_OVER, LogCheck
from logkernel.record.bounds import CodecFor
from logkernel.storage import checkpoints
from logkernel.storage.directory import LOCK, refuse_clusters_folder
from logkernel.storage.disk import Disk
from logkernel.storage.names import DELETE_DIR, FUTURE_DIR, LOG, NO_TOPICS, STRAY_DIR, partition_of
from logkernel.vocabulary import TopicPartition

KNOWN_FILES = (
    *OFFSET_CHECKPOINTS,
    checkpoints.META_PROPERTIES,
    checkpoints.CLEAN_SHUTDOWN,
    checkpoints.CLUSTER_MEMBER,
    LOCK,
    "bootstrap.checkpoint",
    "control.sock",
)
FOREIGN_LOGS = frozenset(("__cluster_metadata",))
"""Apache Kafka's own metadata: its snapshots have another form."""


@contextmanager
def held(disk: Disk, path: str) -> Iterator[None]:
    """Keep brokers out while a directory is read. Raises `DataDirectoryLocked` where one is in."""
    release = disk.share(f"{path}/{LOCK}")
    try:
        yield
    finally:
        release()


def log_bytes(disk: Disk, path: str) -> int:
    """Bytes of all segments: what a check has before it."""
    total = 0
    for name in log_folders(disk, path):
        folder = f"{path}/{name}"
        total += sum(disk.size(f"{folder}/{file}") for file in disk.listdir(folder) if file.endswith(LOG))
    return total


def check_directory(disk: Disk, path: str, codec_for: CodecFor, report: Report) -> dict[TopicPartition, LogCheck]:
    """Every finding goes into `report`; gives the check of each log.

    Raises `FileNotFoundError` and the like where there is no directory, `ConfigError` for the folder of a cluster.
    """
    refuse_clusters_folder(disk, path)
    names = disk.listdir(path)
    clean = checkpoints.CLEAN_SHUTDOWN in names
    _check_owner(disk, path, names, report)
    synced = _offsets(disk, f"{path}/{checkpoints.RECOVERY_POINTS}")
    starts = _offsets(disk, f"{path}/{checkpoints.LOG_STARTS}")
    cleaned = _offsets(disk, f"{path}/{checkpoints.CLEAN_OFFSETS}")
    checks: dict[TopicPartition, LogCheck] = {}
    for name in sorted(names):
        where = f"{path}/{name}"
        partition = partition_of(name) if disk.is_dir(where) else None
        if partition is not None and partition.topic not in FOREIGN_LOGS:
            unsynced_from = END if clean else synced.get(partition, 0)
            check = LogCheck(
                disk, where, codec_for, report, unsynced_from, starts.get(partition, 0), cleaned.get(partition)
            )
            check.run()
            report.partitions += 1
            checks[partition] = check
        elif partition is None:
            _check_name(disk, where, name, report)
    for name in OFFSET_CHECKPOINTS:
        if name in names:
            _check_checkpoint(disk, f"{path}/{name}", name, checks, clean, report)
    return checks


def _offsets(disk: Disk, where: str) -> dict[TopicPartition, int]:
    """As recovery will read them: a file that is no checkpoint counts as empty."""
    try:
        return checkpoints.parse_offsets(disk.read(where), where)
    except (OSError, LogkernelError):
        return {}


def log_folders(disk: Disk, path: str) -> list[str]:
    """Names of the folders of logs that are ours to look into."""
    return [
        name
        for name in disk.listdir(path)
        if disk.is_dir(f"{path}/{name}")
        and (found := partition_of(name)) is not None
        and found.topic not in FOREIGN_LOGS
    ]


def _check_owner(disk: Disk, path: str, names: Sequence[str], report: Report) -> None:
    where = f"{path}/{checkpoints.META_PROPERTIES}"
    remedy = "write it with node.id, version=1 and cluster.id; a broker creates a missing one"
    if checkpoints.META_PROPERTIES not in names:
        report.warning(where, "is missing; the directory's broker is unknown", remedy)
        return
    try:
        checkpoints.parse_meta(disk.read(where), where)
    except LogkernelError as error:
        report.error(where, str(error).removeprefix(where).lstrip(": "), remedy)
    except OSError as error:
        report.error(where, f"cannot be read: {error.strerror or error}", "check the disk; " + remedy)


def _check_name(disk: Disk, where: str, name: str, report: Report) -> None:
    if name.endswith(DELETE_DIR):
        report.warning(where, "the removal of a topic was not finished", "opening the directory finishes it")
    elif name.endswith((FUTURE_DIR, STRAY_DIR)):
        report.warning(where, "a log that was moved or set aside; it is not served", PASS_OVER)
    elif disk.is_dir(where):
        report.warning(where, "not the name of a log's directory", PASS_OVER)
    elif name.endswith(".tmp"):
        report.warning(where, "a write of a checkpoint was not finished", "remove it; the old checkpoint is used")
    elif name not in KNOWN_FILES:
        report.warning(where, "not the name of a file in a data directory", PASS_OVER)


def _check_checkpoint(
    disk: Disk, where: str, name: str, checks: dict[TopicPartition, LogCheck], clean: bool, report: Report
) -> None:
    try:
        data = disk.read(where)
        found = checkpoints.parse_offsets(data, where) if data else {}
    except LogkernelError as error:
        report.error(where, str(error).removeprefix(where).lstrip(",: "), "remove it; every offset in it counts as 0")
        return
    except OSError as error:
        report.error(where, f"cannot be read: {error.strerror or error}", "check the disk")
        return
    for partition, offset in found.items():
        if partition.topic in NO_TOPICS:
            continue
        if partition not in checks:
            report.warning(where, f"names {partition}, which has no log here", "nothing; the next checkpoint omits it")
            continue
        end = checks[partition].end_offset
        if offset > end:
            say = report.error if clean or name == checkpoints.RECOVERY_POINTS else report.warning
            say(where, f"{partition} at {offset}, past the log end {end}; records were lost", BY_OPENING)
