"""What recovery would do to a damaged directory: said first, then done by storage's own recovery.

A log in which something is wrong is recovered from the first segment that has it: every batch is checked, the log is
cut where the first one is rotten (what lies behind the cut goes too: a log has no holes that nobody knows of), indexes,
epochs and producers' state are made anew. A hole between whole segments is kept, as here nobody knows whether
compaction made it.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

from logkernel.config.topic import TopicSettings
from logkernel.errors import ConfigError, CorruptMessage
from logkernel.inspect.folder import log_folders
from logkernel.inspect.segments import LogCheck
from logkernel.partition.producers import ProducerStates
from logkernel.storage import checkpoints, snapshot
from logkernel.storage.directories import LogDirectories, Needs
from logkernel.storage.disk import Disk
from logkernel.storage.ledger import NoProducers
from logkernel.storage.log import Log
from logkernel.storage.names import NO_TOPICS, SNAPSHOT
from logkernel.storage.recovery import Damage
from logkernel.vocabulary import TopicPartition

SETTINGS = TopicSettings(cleanup_policy=("compact", "delete"))


@frozen
class Step:
    """One log that will be recovered."""

    name: TopicPartition
    recover_from: int
    """Base offset of the first segment that is checked again."""
    cut: tuple[str, int] | None
    """File and byte where the log will end; None: no record is lost."""
    without_epochs: bool = False
    """The file of leader epochs contradicts the records and is removed."""

    def text(self) -> str:
        head = f"{self.name}: check it from offset {self.recover_from}, rebuild its indexes and epochs"
        if self.cut is None:
            return head + "; no record is lost"
        path, position = self.cut
        return f"{head}; TRUNCATE the log at byte {position} of {path}: the records behind it are lost here"


def plan(checks: dict[TopicPartition, LogCheck]) -> list[Step]:
    """What must be done, of what a check found."""
    return [
        Step(name, check.repair_from, check.cut_at, check.epochs_lie)
        for name, check in sorted(checks.items())
        if check.repair_from is not None
    ]


def node_id_of(disk: Disk, path: str) -> int:
    """Whose directory it is. Raises `ConfigError` where nothing says so."""
    where = f"{path}/{checkpoints.META_PROPERTIES}"
    if not disk.exists(where):
        raise ConfigError(f"{where} is missing; give the node id of the directory's broker with --node-id")
    try:
        return checkpoints.parse_meta(disk.read(where), where).node_id
    except checkpoints.CorruptCheckpoint as error:
        raise ConfigError(
            f"{error}; move the file away, and give the node id of the directory's broker with --node-id"
        ) from None


def carry_out(disk: Disk, path: str, steps: Sequence[Step], node_id: int, wall_ms: int) -> list[tuple[str, Damage]]:
    """Recover every log of the directory and close it cleanly; gives what was cut, with the partition's name.

    Raises as `LogDirectories.open` and `load`.
    """
    low = {step.name: step.recover_from for step in steps}
    found: list[tuple[str, Damage]] = []
    directories = LogDirectories.open(disk, [path], node_id=node_id)
    try:
        (directory,) = directories.directories
        directory.clean = False
        _remove_rotten_snapshots(disk, path)
        for step in steps:
            epochs = f"{path}/{step.name}/{checkpoints.LEADER_EPOCHS}"
            if step.without_epochs and disk.exists(epochs):
                disk.remove(epochs)
        for name, offset in low.items():
            directory.recovery_points[name] = min(offset, directory.recovery_points.get(name, 0))
        for name in [name for name in low if name.topic in NO_TOPICS]:
            state = Log.open(disk, path, *name, SETTINGS, producers=NoProducers())
            found += [(str(name), damage) for damage in state.damages]
            state.close()
        directories.load(Needs(lambda topic: SETTINGS, lambda name: ProducerStates()), wall_ms)
        directory.write_clean_offsets()
        for name, log in directories.logs.items():
            found += [(str(name), damage) for damage in log.damages]
        watermarks = {
            name: min(directory.high_watermarks.get(name, log.end_offset), log.end_offset)
            for name, log in directories.logs.items()
        }
    except BaseException:
        directories.abandon()
        raise
    directories.close(watermarks)
    return found


def _remove_rotten_snapshots(disk: Disk, path: str) -> None:
    """Another one, or the log, gives the same state; closing writes that at the log's end anew."""
    for name in log_folders(disk, path):
        for file in disk.listdir(f"{path}/{name}"):
            where = f"{path}/{name}/{file}"
            if file.endswith(SNAPSHOT):
                try:
                    snapshot.decode(disk.read(where))
                except CorruptMessage:
                    disk.remove(where)
