"""A tested broker in this process: an embedded log that listens, with a clock that the test moves and connections that
are watched. Work of the broker's own is done on its thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from logkernel.broker.build import build
from logkernel.config.listeners import ANY_HOST, address
from logkernel.config.sources import RawSetting, from_keywords
from logkernel.contracts import MetadataChange
from logkernel.embed import EmbeddedLog
from logkernel.errors import ConfigError, LogkernelError
from logkernel.testing.kafka.apis import APIS
from logkernel.testing.kafka.broker import (
    NOT_RUNNING,
    NOT_SAVED,
    OTHER_KIND,
    RUNS,
    BrokerOptions,
    GroupsByAdmin,
    KafkaBroker,
    KafkaSnapshot,
)
from logkernel.testing.kafka.clock import LentClock
from logkernel.testing.kafka.disk import FolderDisk, TestDisk
from logkernel.testing.kafka.due_work import do_due_work
from logkernel.testing.kafka.faults import Faults
from logkernel.testing.kafka.folder import FolderSnapshot, restore_folder, save_folder
from logkernel.testing.kafka.requests import ClientRequest, KeptRequests, RequestLog
from logkernel.testing.kafka.security import ListenerSecurity
from logkernel.testing.kafka.waiting import LOOK_AGAIN_S
from logkernel.testing.kafka.watch import BrokerWatch
from logkernel.testing.kafka.watched import KeptMetadata, WatchPlugin
from logkernel.vocabulary import PLAINTEXT

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

T = TypeVar("T")

FOR_TESTS: Final = {
    "group.initial.rebalance.delay.ms": 0,
    "group.streams.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
"""What differs from Kafka's defaults: nobody waits for members that never come, and little is opened."""


def settings_of(given: Mapping[str, Any], as_version: str | None, security: ListenerSecurity) -> dict[str, RawSetting]:
    """Name → setting of a tested broker."""
    rows = [
        *from_keywords(FOR_TESTS, "tests"), *from_keywords(security.settings(), "security_protocol"),
        *from_keywords(given, "settings"),
    ]  # fmt: skip
    if as_version is not None:
        rows.append(RawSetting("logkernel.as.version", as_version, "as_version"))
    return by_name(rows)


def by_name(rows: Iterable[RawSetting]) -> dict[str, RawSetting]:
    return {row.name: row for row in rows}


def _listener(options: BrokerOptions) -> dict[str, RawSetting]:
    """Its listener and its address for clients, where the broker has to know them before it listens."""
    listen, advertised, name = options.listen, options.advertised, options.security.protocol
    if advertised is None and listen.rpartition(":")[0].strip("[]") in ANY_HOST:
        advertised = "localhost:0"
    if advertised is not None:
        told = {"listeners": f"{name}://{listen}", "advertised.listeners": f"{name}://{advertised}"}
    elif name != PLAINTEXT:  # or the broker says of its users that nobody asks for their passwords
        told = {"listeners": f"{name}://{listen}"}
    else:
        return {}
    return by_name(from_keywords(told, "listen"))


class LogHere(GroupsByAdmin, EmbeddedLog):
    """An embedded log that a view can ask of groups, too."""


class BrokerHere(KafkaBroker):
    """See the module, and `Kafka` for what it is given."""

    look_again_s = LOOK_AGAIN_S
    process_log = ""
    clock: LentClock
    faults: Faults

    def __init__(self, options: BrokerOptions) -> None:
        """It runs. Raises `ConfigError`, `PluginError`, `CannotListen`."""
        self._requests = RequestLog()
        self.faults = Faults(options.seed, APIS, self._run)
        self.clock = LentClock(self._do_due_work)
        self.clock.go_on_from(options.ahead_ms)
        self._security = options.security
        self._settings = settings_of(options.settings, options.as_version, options.security)
        self._path = "" if options.path is None else options.path
        if options.path is not None:
            self._settings["log.dirs"] = RawSetting("log.dirs", str(options.path), "path")
        self._settings |= _listener(options)
        self._plugins = list(options.plugins)
        self._memory = TestDisk() if options.path is None else None
        self._disk = FolderDisk() if self._memory is None else self._memory
        self._metadata: list[MetadataChange] = []
        self._watch = BrokerWatch(self._running_broker, self.faults, self._requests, self.clock)
        self._log = self._open()
        self._listen = self._address = ""
        if options.sockets:
            self._begin_listening(options.listen)
            self._log.host.run(lambda: options.security.add_users(self._log.broker)())

    def _open(self) -> LogHere:
        return LogHere(
            build(
                None, list(self._settings.values()), in_memory=self._memory is not None,
                plugins=[*self._plugins, WatchPlugin(self._watch), KeptMetadata(self._metadata)],
                clock=self.clock, disk=self._disk,
            )
        )  # fmt: skip

    def _running_broker(self) -> Broker | None:
        return self._log.broker if self.running else None

    def _begin_listening(self, listen: str) -> None:
        try:
            self._listen = self._log.listen(listen, name=self._security.protocol)
        except BaseException:
            self._log.close()
            raise
        _, host, port, _ = self._log.broker.addresses.endpoint(self._security.protocol)
        self._address = address(host, port)

    # ------------------------------------------------------------ life

    @property
    def running(self) -> bool:
        return not self._log.closed

    def close(self) -> None:
        self._log.close()

    def stop(self) -> None:
        self._log.close()

    def kill(self) -> None:
        self._log.abandon()
        if self._memory is not None:
            self._memory.forget_locks()

    def start(self) -> None:
        if self.running:
            raise LogkernelError(RUNS)
        self._log = self._open()
        if self._listen:
            self._begin_listening(self._listen)

    def save(self) -> KafkaSnapshot:
        if not self.running:
            raise LogkernelError(NOT_SAVED)
        self.stop()
        try:
            files = save_folder(self._path) if self._memory is None else self._memory.snapshot()
            return KafkaSnapshot(files, tuple(self._metadata), self.clock.ahead_ms)
        finally:
            self.start()

    def restore(self, snapshot: KafkaSnapshot) -> None:
        files = snapshot.files
        if isinstance(files, FolderSnapshot) is not (self._memory is None):
            raise ConfigError(OTHER_KIND)
        if self.running:
            self.kill()
        if isinstance(files, FolderSnapshot):
            restore_folder(self._path, files)
        elif self._memory is not None:
            self._memory.restore(files)
        self._requests.clear()
        self._metadata[:] = snapshot.metadata
        self.clock.go_on_from(snapshot.ahead_ms)
        self.start()

    def fill_disk(self, full: bool) -> None:
        self._disk.is_full = full

    @property
    def address(self) -> str:
        return self._address

    @property
    def pid(self) -> int:
        return os.getpid()

    @property
    def listens(self) -> str:
        return self._listen

    @property
    def log(self) -> LogHere:
        self._log.check_open(NOT_RUNNING)
        return self._log

    def _run(self, work: Callable[[], T]) -> T:
        """Do `work` on the broker's thread; on this one while there is no broker."""
        if self._log.closed:
            return work()
        done: T = self._log.host.run(work)
        return done

    # ------------------------------------------------------------ what clients asked

    def requests(self) -> KeptRequests:
        return self._run(lambda: KeptRequests(self._requests, self._clear_requests))

    def requests_since(self, number: int, most: int, most_bytes: int) -> tuple[list[tuple[int, ClientRequest]], int]:
        return self._run(lambda: (self._requests.since(number, most, most_bytes), self._requests.end))

    def _clear_requests(self) -> None:
        self._run(self._requests.clear)

    # ------------------------------------------------------------ time

    def _do_due_work(self) -> None:
        """Have everything done that is due, and what follows from it; while there is no broker, `start` will."""
        if self.running:
            do_due_work(lambda: [self._log.broker], self._run)
