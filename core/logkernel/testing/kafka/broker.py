"""The seam between a `Kafka` and its broker, which is in this process (`here`) or in another one (`testing.child`)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from logkernel.attrs_lite import frozen
from logkernel.contracts import MetadataChange
from logkernel.errors import ConfigError, GroupIdNotFound
from logkernel.storage.memory_disk import DiskSnapshot
from logkernel.testing.kafka.faults import AskedFault, FaultCalls
from logkernel.testing.kafka.folder import FolderSnapshot
from logkernel.testing.kafka.requests import ClientRequest, KeptRequests
from logkernel.testing.kafka.security import ListenerSecurity
from logkernel.vocabulary import Record, RecordMetadata

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.client.admin.groups import GroupDescription
    from logkernel.client.consumer.consumer import Consumer
    from logkernel.client.producer.producer import Producer


NOT_RUNNING = "the broker does not run: start() it"
NOT_SAVED = "the broker does not run: start() it, then save()"
RUNS = "this broker runs; stop or kill it first"


class BrokerClock(Protocol):
    """The broker's time."""

    @property
    def ahead_ms(self) -> int:
        """How far the broker's time is ahead of the system's."""
        ...

    def wall_ms(self) -> int:
        """In ms since 1970."""
        ...

    def advance(
        self,
        *unnamed: object,
        days: float | None = None,
        hours: float | None = None,
        minutes: float | None = None,
        seconds: float | None = None,
        ms: float | None = None,
    ) -> None:
        """Let the broker's time jump forward; returns when everything that fell due is done.

        Clients keep their own time: a member of a group that does not heartbeat within such a jump loses its session,
        as after a long pause. A broker that was stopped or killed starts with the time that was reached meanwhile.
        Raises `TypeError` for what is no number or has no unit, and `ValueError` for a jump back
        or one of more than ten thousand years.
        """
        ...


OTHER_KIND = "this was saved by a broker of another kind; save() and restore() the same Kafka"


def no_snapshot(given: object, of: str) -> ConfigError:
    """What is raised for something that no `save` of `of` returned."""
    return ConfigError(f"a {type(given).__name__} was not saved by a {of}; pass what its own save() returned")


class LogInside(Protocol):
    """What a view asks of the log inside; methods do and raise what those of `EmbeddedLog` do."""

    def create_topic(
        self, name: str, partitions: int = -1, *, config: Mapping[str, str] | None = None, **settings: Any
    ) -> None: ...
    def delete_topic(self, name: str) -> None: ...
    def topics(self) -> dict[str, int]: ...
    def start_offset(self, topic: str, partition: int = 0) -> int: ...
    def end_offset(self, topic: str, partition: int = 0) -> int: ...
    def append_many(
        self, topic: str, records: Iterable[Record], *, partition: int | None = None
    ) -> list[RecordMetadata]: ...
    def read(
        self, topic: str, partition: int = 0, offset: int | None = None, *, isolation: str = ...
    ) -> Iterator[Record]: ...
    def compact(self, topic: str) -> object: ...
    def apply_retention(self, topic: str) -> object: ...
    def producer(self, **settings: Any) -> Producer: ...
    def consumer(self, *topics: str, group: str | None = None, **settings: Any) -> Consumer: ...
    def admin(self, **settings: Any) -> Admin: ...
    def describe_group(self, group: str) -> GroupDescription | None:
        """None where there is no such group."""
        ...

    def committed(self, group: str, topic: str, partition: int) -> int:
        """The offset that a group has committed, -1 for none."""
        ...


class GroupsByAdmin:
    """What a log with an admin client is asked of groups."""

    if TYPE_CHECKING:

        def admin(self, **settings: Any) -> Admin: ...

    def describe_group(self, group: str) -> GroupDescription | None:
        with self.admin() as admin:
            try:
                return admin.describe_groups(group)[group]
            except GroupIdNotFound:
                return None

    def committed(self, group: str, topic: str, partition: int) -> int:
        with self.admin() as admin:
            found = admin.list_consumer_group_offsets(group, [(topic, partition)])
        return max((each.offset for each in found.values()), default=-1)


@frozen
class KafkaSnapshot:
    """What `Kafka.save` saved; for the same `Kafka`."""

    files: DiskSnapshot | FolderSnapshot
    metadata: tuple[MetadataChange, ...]
    ahead_ms: int


@frozen
class BrokerOptions:
    """What `Kafka` is told of its broker; see there."""

    settings: Mapping[str, Any]
    plugins: Sequence[object]
    path: str | Path | None
    sockets: bool
    listen: str
    advertised: str | None
    as_version: str | None
    seed: int
    ahead_ms: int
    security: ListenerSecurity


class KafkaBroker(ABC):
    """A broker, its life, and what happens in it. Methods may be called from any thread."""

    clock: BrokerClock
    faults: FaultCalls[AskedFault]
    look_again_s: float
    """How long to wait before asking again."""

    # ------------------------------------------------------------ life

    @property
    @abstractmethod
    def running(self) -> bool:
        """False after `stop`, `kill` and `close`, and when its process has ended by itself."""

    @abstractmethod
    def close(self) -> None:
        """End it and forget its data, if they are not in a folder that the test named. Idempotent."""

    @abstractmethod
    def stop(self) -> None:
        """End it cleanly."""

    @abstractmethod
    def kill(self) -> None:
        """End it without a flush or a word to anybody."""

    @abstractmethod
    def start(self) -> None:
        """Start it on the same port with what it had. Raises `LogkernelError` while it runs."""

    @abstractmethod
    def save(self) -> KafkaSnapshot:
        """All that it has. It is restarted. Raises `LogkernelError` where it does not run, `OSError`."""

    @abstractmethod
    def restore(self, snapshot: KafkaSnapshot) -> None:
        """It runs then, whether it did or not, and what clients asked is forgotten. Raises `ConfigError` for a snapshot
        of another kind of broker, `OSError`."""

    @abstractmethod
    def fill_disk(self, full: bool) -> None:
        """Have no room on its disk, or room again."""

    # ------------------------------------------------------------ what it is asked

    @property
    @abstractmethod
    def address(self) -> str:
        """Where clients are told to connect to, "" without sockets."""

    @property
    @abstractmethod
    def pid(self) -> int:
        """The id of its process, -1 while there is none."""

    @property
    @abstractmethod
    def listens(self) -> str:
        """Where it listens, "" without sockets."""

    @property
    @abstractmethod
    def log(self) -> LogInside:
        """The open log inside. Raises `LogkernelError` while the broker does not run."""

    @property
    @abstractmethod
    def process_log(self) -> str:
        """What its process wrote to stderr, "" where it is this process."""

    @abstractmethod
    def requests(self) -> KeptRequests:
        """What clients asked."""

    @abstractmethod
    def requests_since(self, number: int, most: int, most_bytes: int) -> tuple[list[tuple[int, ClientRequest]], int]:
        """Requests from `number` on, as `RequestLog.since`; and the number that the next one gets."""
