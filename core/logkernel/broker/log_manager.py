"""The broker's logs: opened, led, created, deleted, checkpointed. `storage` knows files, this knows replicas."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING
from uuid import UUID

from logkernel.broker.metadata_log import DiskMetadataLog, metadata_generations
from logkernel.config.broker import BrokerConfig
from logkernel.config.topic import TopicSettings
from logkernel.contracts import StateLog
from logkernel.errors import KafkaStorageError
from logkernel.storage.directories import LogDirectories, Needs
from logkernel.storage.directory import DataDirectory, Write
from logkernel.storage.disk import Disk
from logkernel.storage.log import Log
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.broker.replicas.replica import Replica
    from logkernel.controller.image import Partition
    from logkernel.partition.producers import ProducerStates

log = logging.getLogger("logkernel.storage")

DEFAULT_FOLDER = "./data"
MAX_GIVEN_ID = 1 << 62
"""No cluster counts so far: a larger producer id in a log was made up by its client, and is not counted on from."""


def _jitter() -> float:
    """From 0 up to 1; `random` takes 1 ms of the start to import."""
    return int.from_bytes(os.urandom(4), "big") / (1 << 32)


class LogManager:
    """All data directories of one broker."""

    def __init__(self, config: BrokerConfig, *, in_memory: bool = False, disk: Disk | None = None) -> None:
        """`disk` stands in for the operating system's (a simulation)."""
        self._config = config
        self._in_memory = in_memory
        self._ledgers: dict[TopicPartition, ProducerStates] = {}
        self._offline: set[TopicPartition] = set()
        self._directories: LogDirectories | None = None
        self._state_folder = ""
        self._loaded = False
        self.paths: list[str] = ["/memory"] if in_memory else [str(path) for path in config.get("log.dirs") or ()]
        if not self.paths:
            self.paths = [DEFAULT_FOLDER]
        self._disk = disk or self._make_disk()

    def _make_disk(self) -> Disk:
        if self._in_memory:
            from logkernel.storage.simdisk import MemoryDisk

            return MemoryDisk()
        from logkernel.storage.disk import RealDisk

        return RealDisk()

    @property
    def directories(self) -> LogDirectories:
        assert self._directories is not None, "storage is not open"
        return self._directories

    @property
    def cluster_id(self) -> str:
        return self.directories.cluster_id

    def folders(self) -> list[str]:
        """The data directories that are online, where there is a disk."""
        return [] if self._in_memory else [directory.path for directory in self.directories.online()]

    @property
    def coordination_name(self) -> str:
        return "memory" if self._in_memory else str(self._config.get("coordination"))

    # ------------------------------------------------------------ open

    def open(self) -> None:
        """Lock and read the directories. Raises `DataDirectoryLocked`, `ConfigError`, `KafkaStorageError`."""
        self._directories = LogDirectories.open(self._disk, self.paths, node_id=int(self._config.get("node.id")))
        self._state_folder = self._find_state_folder()

    def _find_state_folder(self) -> str:
        online = [directory.path for directory in self.directories.online()]
        for path in online:
            if metadata_generations(self._disk, path):
                return path
        if self.directories.offline():
            offline = ", ".join(directory.path for directory in self.directories.offline())
            raise KafkaStorageError(
                f"{', '.join(online)}: no metadata log is here, and it may lie where nothing can be read ({offline});"
                " mend that directory first, or leave it out of log.dirs"
            )
        return online[0]

    def open_state_log(self) -> StateLog:
        """The log that the coordination keeps the cluster's metadata in."""
        clean = all(directory.clean for directory in self.directories.online())
        return DiskMetadataLog(self._disk, self._state_folder, torn_is_well=not clean)

    def load(self, broker: Broker) -> None:
        """Open every log, recover what needs it, and lead what the metadata assigns to this broker."""
        clock = broker.clock
        hook = broker.kernel.hook

        def rolled(name: TopicPartition, base_offset: int, size_bytes: int) -> None:
            replica = broker.replicas.get(name)
            if replica is not None:
                replica.flush_soon()
            hook.logkernel_segment_rolled(
                topic=name.topic, partition=name.partition, base_offset=base_offset, size_bytes=size_bytes
            )

        image = broker.metadata.image
        needs = Needs(broker.metadata.topic_settings, self._ledger, rolled, _jitter, lambda each: each in image.gone)
        threads = int(self._config.get("num.recovery.threads.per.data.dir"))
        self.directories.load(needs, clock.wall_ms(), threads)
        for name in broker.metadata.adopt({name: each.topic_id for name, each in self.directories.logs.items()}):
            log.info("log of a deleted topic removed: partition=%s", name)
            self._remove(name)
        ids = (entry.producer_id for ledger in self._ledgers.values() for entry in ledger.entries())
        broker.metadata.reserve_producer_ids(max((found for found in ids if found < MAX_GIVEN_ID), default=-1))
        if not all(directory.clean for directory in self.directories.online()):
            broker.metadata.new_incarnation()
        for topic in broker.metadata.image.topics:
            self.create_partitions(broker, topic, 0)
        self._loaded = True
        broker.metadata.compact()

    def _ledger(self, name: TopicPartition) -> ProducerStates:
        from logkernel.partition.producers import ProducerStates

        ledger = self._ledgers[name] = ProducerStates()
        return ledger

    # ------------------------------------------------------------ partitions

    def create_partitions(self, broker: Broker, topic: str, first: int) -> None:
        """Open or make the logs of a topic's partitions from `first` on, and lead them."""
        known = broker.metadata.image.topics[topic]
        settings = broker.metadata.topic_settings(topic)
        wall_ms = broker.clock.wall_ms()
        for index in range(first, len(known.partitions)):
            partition = known.partitions[index]
            name = TopicPartition(topic, index)
            if broker.node_id not in partition.replicas or name in broker.replicas:
                continue
            disk_log = self._log_of(name, known.id, wall_ms)
            if disk_log is None:
                self._offline.add(name)
            elif partition.leader == broker.node_id:
                broker.replicas[name] = self._lead(broker, name, known.id, disk_log, partition, settings)

    def _log_of(self, name: TopicPartition, topic_id: UUID, wall_ms: int) -> Log | None:
        """The open log, or a new one; None where it lies in a directory that is offline or can't be read."""
        found = self.directories.logs.get(name)
        if found is not None:
            return found if found.failure is None else None
        lost = not self._loaded and self.directories.offline()  # made in an earlier life: it may lie there
        if name in self.directories.unreadable or lost:
            return None
        if not self._loaded:
            log.warning("no directory has the log, which is made anew: partition=%s", name)
        try:
            return self.directories.create(name, topic_id, wall_ms)
        except KafkaStorageError as error:
            log.error("log not made, the partition is offline until a restart: partition=%s error=%s", name, error)
            return None

    def _lead(
        self,
        broker: Broker,
        name: TopicPartition,
        topic_id: UUID,
        disk_log: Log,
        row: Partition,
        settings: TopicSettings,
    ) -> Replica:
        from logkernel.broker.replicas.replica import Replica  # a first start leads nothing, and waits for every import
        from logkernel.partition.leader import Leader

        leader = Leader(
            node_id=broker.node_id,
            leader_epoch=row.leader_epoch,
            isr=row.isr,
            log_start=disk_log.start_offset,
            log_end=disk_log.end_offset,
            high_watermark=self.directories.high_watermark(name),
            min_isr=settings.min_insync_replicas,
            producers=self._ledgers[name],
        )
        return Replica(broker, name, topic_id, disk_log, leader, settings)

    def delete_topic(self, broker: Broker, topic: str) -> None:
        if broker.moving:
            broker.moves.cancel_topic(topic)
        for name in [*self.directories.logs, *self.directories.unreadable]:
            if name.topic == topic:
                gone = broker.replicas.pop(name, None)
                if gone is not None:
                    gone.news.tell()
                self._ledgers.pop(name, None)
                broker.cleaner.forget(name)
                self._remove(name)
        self.drop_offline(broker)
        broker.cleaner.retention.sweep()
        self._offline = {name for name in self._offline if name.topic != topic}

    def _remove(self, name: TopicPartition) -> None:
        try:
            self.directories.delete(name)
        except OSError as error:
            log.error("log not removed, the next start does: partition=%s error=%s", name, error)

    def settle_deletions(self, broker: Broker) -> bool:
        """Make the removal of deleted topics' folders durable; False where one may lie on a disk still."""
        directories = self.directories
        if not self._loaded or directories.offline() or directories.unreadable or directories.left:
            return False
        if any(name.topic not in broker.metadata.image.topics for name in directories.logs):
            return False
        for directory in directories.online():
            try:
                self._disk.sync_dir(directory.path)
            except OSError as error:
                log.error("folder not synced: path=%s error=%s", directory.path, error)
                return False
        return True

    # ------------------------------------------------------------ failure

    def is_offline(self, topic: str, partition: int) -> bool:
        return (topic, partition) in self._offline

    def fail_directory_of(self, broker: Broker, replica: Replica, error: OSError) -> None:
        """The directory goes offline with every partition in it; whoever waits for one of them is told."""
        directory = self.directories.directory_of(replica.name)
        directory.fail(error)
        self.directory_failed(broker, directory)

    def directory_failed(self, broker: Broker, directory: DataDirectory) -> None:
        """Moves from it and to it are given up."""
        for name, move in list(broker.moving.items()):
            if directory in (move.future.target, move.future.source_directory):
                broker.moves.cancel(name, f"{directory.path} is offline")
        self.drop_offline(broker)

    def drop_offline(self, broker: Broker) -> None:
        """Serve no more what lies in a directory that went offline, by whatever came to notice."""
        for directory in self.directories.offline():
            for name in directory.logs:
                gone = broker.replicas.pop(name, None)
                if gone is not None:
                    self._offline.add(name)
                    gone.news.tell()
                    broker.soon(partial(gone.went_offline, KafkaStorageError(f"{directory.path}: {directory.failure}")))

    def path_of(self, directory: DataDirectory) -> str:
        """A directory's absolute path, as tools are told it."""
        return directory.path if self._in_memory else os.path.abspath(directory.path)

    # ------------------------------------------------------------ checkpoints and the end

    def checkpoint_recovery_points(self, broker: Broker) -> None:
        """Begin to write them, in every directory that is online; as the next two."""
        self._checkpoint(broker, DataDirectory.begin_recovery_points)

    def checkpoint_log_starts(
        self, broker: Broker, done: Callable[[DataDirectory, OSError | None], None] | None = None
    ) -> None:
        """`done` is told of each directory, and what went wrong with it."""
        self._checkpoint(broker, DataDirectory.begin_log_starts, done)

    def checkpoint_watermarks(self, broker: Broker) -> None:
        marks = self._watermarks(broker)
        self._checkpoint(broker, lambda directory: directory.begin_high_watermarks(marks))

    def _checkpoint(
        self,
        broker: Broker,
        begin: Callable[[DataDirectory], Write],
        done: Callable[[DataDirectory, OSError | None], None] | None = None,
    ) -> None:
        """Off the path of requests, as a disk that is busy lets a sync wait for long."""

        def told(directory: DataDirectory, error: BaseException | None) -> None:
            failed = error if error is None or isinstance(error, OSError) else OSError(str(error))
            if failed is not None:
                self.directories.not_written(directory, failed)
            self.drop_offline(broker)
            if done is not None:
                done(directory, failed)

        for directory in self.directories.online():
            broker.run_flush(begin(directory), partial(told, directory))

    def write_log_starts(self, broker: Broker) -> bool:
        """Here and now, as what was promised must not come undone; returns whether all were written."""
        well = self.directories.write_log_starts()
        self.drop_offline(broker)
        return well

    def _watermarks(self, broker: Broker) -> dict[TopicPartition, int]:
        return {TopicPartition(*name): replica.leader.high_watermark for name, replica in broker.replicas.items()}

    def close(self, broker: Broker) -> None:
        """Sync and close every log, leave the clean-shutdown marks."""
        self.directories.close(self._watermarks(broker))

    def abandon(self) -> None:
        """Give the locks back and write nothing: the broker never started."""
        if self._directories is not None:
            self._directories.abandon()
