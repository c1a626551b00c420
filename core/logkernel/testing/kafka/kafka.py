"""What a test of a program that talks to Kafka holds: a broker, and what happens in it.

    with Kafka(topics={"orders": 3}) as kafka:
        run_the_program(kafka.bootstrap_servers)
        kafka.assert_produced("orders", key="ann", value={"id": 7}, within=5)

The broker is `logkernel.open` and `listen`, with a clock that the test moves and connections that are watched. Methods
may be called from any thread; those of the broker's own work are run there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from logkernel import embed
from logkernel.attrs_lite import frozen
from logkernel.config.listeners import ANY_HOST, address
from logkernel.config.sources import RawSetting, from_keywords
from logkernel.contracts import MetadataChange
from logkernel.embed import EmbeddedLog
from logkernel.errors import ConfigError, LogkernelError
from logkernel.plugins.transport.tcp import registry
from logkernel.storage.memory_disk import DiskSnapshot
from logkernel.testing.kafka.clock import LentClock
from logkernel.testing.kafka.disk import TestDisk
from logkernel.testing.kafka.faults import Faults
from logkernel.testing.kafka.folder import FolderSnapshot, restore_folder, save_folder
from logkernel.testing.kafka.requests import ClientRequest, RequestLog, Requests
from logkernel.testing.kafka.settling import settle
from logkernel.testing.kafka.view import KafkaView, Topics
from logkernel.testing.kafka.watch import BrokerWatch
from logkernel.testing.kafka.watched import KeptMetadata, WatchPlugin

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

T = TypeVar("T")

FOR_TESTS: Final = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
"""What differs from Kafka's defaults: nobody waits for members that never come, and little is opened."""
LISTEN: Final = "127.0.0.1:0"
LISTENER: Final = "PLAINTEXT"


@frozen
class KafkaSnapshot:
    """What `Kafka.save` saved; for the same `Kafka`."""

    files: DiskSnapshot | FolderSnapshot
    metadata: tuple[MetadataChange, ...]
    ahead_ms: int


def settings_of(given: Mapping[str, Any] | None, as_version: str | None) -> dict[str, RawSetting]:
    """Keyword → setting of a tested broker."""
    rows = [*from_keywords(FOR_TESTS, "tests"), *from_keywords(given or {}, "settings")]
    if as_version is not None:
        rows.append(RawSetting("logkernel.as.version", as_version, "as_version"))
    return by_keyword(rows)


def by_keyword(rows: Iterable[RawSetting]) -> dict[str, RawSetting]:
    return {row.name.replace(".", "_"): row for row in rows}


class Kafka(KafkaView):
    """A broker that listens on a free port of 127.0.0.1. Use it as a context manager, or call `close`."""

    def __init__(
        self,
        *,
        topics: Topics = (),
        settings: Mapping[str, Any] | None = None,
        plugins: Iterable[object] = (),
        path: str | Path | None = None,
        sockets: bool = True,
        listen: str = LISTEN,
        advertised: str | None = None,
        as_version: str | None = None,
        seed: int = 0,
        faults: str | Path | Iterable[Mapping[str, Any]] = (),
    ) -> None:
        """Start a broker in memory, or in the folder `path`.

        `topics` are names, or name → partitions, or name → settings of the topic with `partitions` among them.
        `settings` are the broker's by Kafka's names; `_` may stand for `.`. `plugins` are modules or objects with
        hooks, in addition to those that are installed. Without `sockets` only clients that are made here reach it.
        It listens at `listen` ("host:port", port 0 takes a free one), and tells clients to connect to `advertised`
        ("host:port", port 0 is the bound one), if that differs.
        `as_version` is a release of Kafka ("2.8" to "4.3"): clients are told of what it had, and newer requests are
        refused. `seed` decides what faults with a probability strike; `faults` is what `Faults.load` takes. Raises
        `ConfigError`, `PluginError`.
        """
        self._requests = RequestLog()
        self.faults = Faults(seed, [row.name for row in registry.ROWS], self._run)
        """What goes wrong with clients' requests; those of clients that are made here are spared."""
        self.clock = LentClock(self._settle)
        """Its `advance` moves the broker's time."""
        self._settings = settings_of(settings, as_version)
        self._path = path
        if advertised is None and listen.rpartition(":")[0].strip("[]") in ANY_HOST:
            advertised = "localhost:0"
        if advertised is not None:
            told = {"listeners": f"{LISTENER}://{listen}", "advertised.listeners": f"{LISTENER}://{advertised}"}
            self._settings |= by_keyword(from_keywords(told, "listen"))
        self._plugins = list(plugins)
        self._disk = TestDisk() if path is None else None
        self._metadata: list[MetadataChange] = []
        self._watch = BrokerWatch(self._broker, self.faults, self._requests, self.clock)
        self._log = self._open()
        try:
            self._listen = self._log.listen(listen) if sockets else ""
            self.create_topics(topics)
            self.faults.load(faults)
            self._told = self._told_address()
        except BaseException:
            self._log.close()
            raise

    def _open(self) -> EmbeddedLog:
        plugins = [*self._plugins, WatchPlugin(self._watch), KeptMetadata(self._metadata)]
        return embed.open(self._path, plugins=plugins, clock=self.clock, disk=self._disk, **self._settings)

    def _broker(self) -> Broker | None:
        return None if self._log.closed else self._log.broker

    # ------------------------------------------------------------ life

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the broker; connections break. A second call does nothing."""
        self._log.close()

    def stop(self) -> None:
        """Stop the broker cleanly; `start` goes on with what it has. Clients that were made here are closed."""
        self._log.close()

    def kill(self) -> None:
        """End the broker as kill -9 would; `start` recovers what it wrote. Clients that were made here are of no use
        any more."""
        self._log.abandon()
        if self._disk is not None:
            self._disk.forget_locks()

    def start(self) -> None:
        """Start a broker that was stopped or killed, on the same port. Raises `LogkernelError` while it runs."""
        if not self._log.closed:
            raise LogkernelError("this broker runs; stop or kill it first")
        self._log = self._open()
        if self._listen:
            self._log.listen(self._listen)

    def restart(self) -> None:
        """Stop the broker cleanly, and start it."""
        self.stop()
        self.start()

    def save(self) -> KafkaSnapshot:
        """Save all that the broker has: topics, records, groups, settings, and its time. The broker is restarted: its
        connections break, as they do with `restore`.

        In memory this costs little. A folder is copied beside itself, which takes as long as its bytes take, but
        nothing where the file system clones files (btrfs, XFS). Raises `OSError`.
        """
        self.stop()
        try:
            files = save_folder(self._path) if self._path is not None else self._own_disk("saved").snapshot()
            return KafkaSnapshot(files, tuple(self._metadata), self.clock.ahead_ms)
        finally:
            self.start()

    def restore(self, snapshot: KafkaSnapshot) -> None:
        """Have all that was saved, and nothing that came later; the same snapshot any number of times. Raises
        `ConfigError` for one of another kind of broker, `OSError`."""
        files = snapshot.files
        if isinstance(files, FolderSnapshot) is (self._path is None):
            raise ConfigError("this was saved by a broker of another kind; save() and restore() the same Kafka")
        if not self._log.closed:
            self.kill()
        if isinstance(files, FolderSnapshot):
            assert self._path is not None
            restore_folder(self._path, files)
        else:
            self._own_disk("restored").restore(files)
        self._metadata[:] = snapshot.metadata
        self.clock.go_on_from(snapshot.ahead_ms)
        self.start()

    def _own_disk(self, what: str) -> TestDisk:
        if self._disk is None:
            raise ConfigError(f"only a broker in memory can be {what}; leave out path")
        return self._disk

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Meanwhile the broker's disk has no room. Raises `ConfigError` for a broker in a folder."""
        self.fill_disk()
        try:
            yield
        finally:
            self.fill_disk(False)

    def fill_disk(self, full: bool = True) -> None:
        """Have no room on the broker's disk from now on, or room again. Raises as `full_disk`."""
        self._own_disk("without room").is_full = full

    @property
    def bootstrap_servers(self) -> str:
        """ "host:port", for clients of any kind. Raises `LogkernelError` without sockets."""
        if not self._listen:
            raise LogkernelError("this broker has no sockets; use its producer() and consumer(), or open it with them")
        return self._told

    @property
    def running(self) -> bool:
        """False after `stop`, `kill` and `close`."""
        return not self._log.closed

    @property
    def log(self) -> EmbeddedLog:
        """The open log inside. Raises `LogkernelError` while the broker does not run."""
        self._log.check_open("the broker does not run: start() it")
        return self._log

    def _told_address(self) -> str:
        """Where clients are told to connect to."""
        _, host, port, _ = self._log.broker.addresses.endpoint(LISTENER)
        return address(host, port)

    def _run(self, work: Callable[[], T]) -> T:
        """Do `work` on the broker's thread; on this one while there is no broker."""
        if self._log.closed:
            return work()
        done: T = self._log.host.run(work)
        return done

    # ------------------------------------------------------------ what clients asked

    @property
    def requests(self) -> Requests:
        """What clients asked, decoded, the oldest first; the newest 10,000 are kept."""
        return self._run(lambda: Requests(self._requests))

    def requests_since(self, number: int, most: int, most_bytes: int) -> tuple[list[tuple[int, ClientRequest]], int]:
        """Requests from `number` on, as `RequestLog.since`; and the number that the next one gets."""
        return self._run(lambda: (self._requests.since(number, most, most_bytes), self._requests.end))

    def clear_requests(self) -> None:
        """Forget what clients asked so far."""
        self._run(self._requests.clear)

    # ------------------------------------------------------------ time

    def _settle(self) -> None:
        """Have everything done that is due, and what follows from it; while there is no broker, `start` will."""
        if not self._log.closed:
            settle(lambda: [self._log.broker], self._run)
