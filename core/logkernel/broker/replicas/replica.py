"""What leaders and followers have in common: a log that is synced by its settings, and readers that wait for news.

A role is an object: `leader_replica.LeaderReplica` leads, `follower_replica.FollowerReplica` follows. Where a
partition's role changes here, the object of the old role goes out of service and another one takes over its log.

A replica knows nothing of the broker round it: it is lent the runtime, tells its `news` to readers that subscribed, and
tells `storage_failed` of an error after which its directory cannot be trusted.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING
from uuid import UUID

from logkernel.broker.replicas.flushing import LogFlushing
from logkernel.broker.runtime import Runtime
from logkernel.config.topic import TopicSettings
from logkernel.errors import KafkaError, KafkaStorageError
from logkernel.partition.news import News
from logkernel.storage.log import Log
from logkernel.vocabulary import TopicPartition

if TYPE_CHECKING:
    from logkernel.partition.producers import ProducerStates

StorageFailed = Callable[["Replica", OSError], KafkaStorageError]
"""Takes the replica's directory offline; returns the error for requests that wait for the failed write."""


class Replica(ABC):
    """A partition's log on this broker, and what both roles do with it."""

    __slots__ = (
        "_runtime",
        "_storage_failed",
        "flushing",
        "in_service",
        "log",
        "name",
        "news",
        "producers",
        "settings",
        "topic_id",
    )

    def __init__(
        self,
        runtime: Runtime,
        name: TopicPartition,
        topic_id: UUID,
        disk_log: Log,
        producers: ProducerStates,
        settings: TopicSettings,
        *,
        storage_failed: StorageFailed,
        before: Replica | None = None,
    ) -> None:
        """`before` had the partition here, in another role."""
        self._runtime = runtime
        self._storage_failed = storage_failed
        self.name = name
        self.topic_id = topic_id
        self.log = disk_log
        self.producers = producers
        self.settings = settings
        self.news = News()
        """Told when a reader may find something else than before."""
        self.in_service = True
        """False once another role, or none, has the partition here, or its directory is offline; its manager's to
        set."""
        self.flushing: LogFlushing = LogFlushing(runtime, self) if before is None else before.flushing
        """Syncs the log."""
        self.flushing.owner = self

    # ------------------------------------------------------------ what a role says of itself

    @property
    @abstractmethod
    def leader_epoch(self) -> int:
        """The newest leader epoch that this broker got."""

    @property
    @abstractmethod
    def high_watermark(self) -> int:
        """All below it is committed, as far as this broker knows."""

    @abstractmethod
    def last_stable_offset(self) -> int:
        """Below it no transaction is undecided."""

    @abstractmethod
    def _on_log_start(self, offset: int) -> None:
        """The log start moved."""

    @abstractmethod
    def on_flushed(self, end: int) -> None:
        """All below `end` is durable."""

    @abstractmethod
    def went_offline(self, error: KafkaError) -> None:
        """The directory is offline: answer waiting requests."""

    def tell(self) -> None:
        """Tell readers to look again."""
        self.news.tell()

    # ------------------------------------------------------------ the disk

    def flush(self) -> None:
        """Make what is in the log durable. One flush at a time: all that came meanwhile shares the next."""
        self.flushing.flush()

    def flush_soon(self) -> None:
        """A segment was closed: sync it off the request's path, so that recovery need not read it again."""
        self.flushing.flush_in(0)

    @property
    def is_flushing(self) -> bool:
        return self.flushing.under_way

    def storage_failed(self, error: OSError) -> KafkaStorageError:
        """Take the directory offline; return the error for waiting requests."""
        return self._storage_failed(self, error)

    # ------------------------------------------------------------ the log's bounds and place

    def move_to(self, disk_log: Log) -> None:
        """Use a log that was moved, complete and synced."""
        self.log = disk_log
        self.on_flushed(disk_log.end_offset)
        self.tell()

    def advance_log_start(self, offset: int) -> None:
        """Move the log start to `offset`."""
        self.log.advance_log_start(offset)
        self._on_log_start(offset)
        self.tell()
