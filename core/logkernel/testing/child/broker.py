"""`BrokerProcess`: a tested broker in a process of its own.

Its data are in a folder, so that they outlive a process that is killed: one of the test's, or a temporary one. What the
test knows of it besides (faults, requests, how far its time is ahead) is kept here, and fetched before it ends.
"""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import tempfile
import threading
from types import ModuleType
from typing import Final

from logkernel.config.sources import from_keywords
from logkernel.errors import ConfigError, LogkernelError
from logkernel.testing.child.clock import ClockOverControl
from logkernel.testing.child.control import ControlClient, raised
from logkernel.testing.child.faults import FaultsOverControl
from logkernel.testing.child.forked import Forked
from logkernel.testing.child.log import LogOverControl
from logkernel.testing.child.requests import RequestsOverControl
from logkernel.testing.kafka.apis import APIS
from logkernel.testing.kafka.broker import NOT_SAVED, OTHER_KIND, RUNS, BrokerOptions, KafkaBroker, KafkaSnapshot
from logkernel.testing.kafka.folder import FolderSnapshot, restore_folder, save_folder
from logkernel.testing.kafka.requests import ClientRequest, KeptRequests

STARTS_S: Final = 60.0
DIES_S: Final = 0.5
"""How long a process takes, at most, to die of a signal that a test has sent it."""
LAST_WORDS_S: Final = 2.0
"""How long a broker that is to end may take to say what clients asked of it."""
LOG_BYTES: Final = 100_000
"""Of its log, for the report of a test that fails."""
CHUNK_BYTES: Final = 65_536


log = logging.getLogger("logkernel.testing")


class BrokerProcess(KafkaBroker):
    """See the module, and `Kafka` for what it is given."""

    look_again_s = 0.01
    faults: FaultsOverControl
    clock: ClockOverControl

    def __init__(self, options: BrokerOptions) -> None:
        """It runs. Raises `ConfigError`, `PluginError`, `CannotListen`."""
        if not options.sockets:
            raise ConfigError("a broker in a process of its own is reached by sockets; leave out process, or sockets")
        modules, security = [_module(each) for each in options.plugins], options.security
        self._scratch = tempfile.TemporaryDirectory(prefix="logkernel-test-", ignore_cleanup_errors=True)
        self._data = os.path.join(self._scratch.name, "data") if options.path is None else os.path.abspath(options.path)
        self._stderr = os.path.join(self._scratch.name, "stderr")
        self._options = {
            "settings": from_keywords(options.settings, "settings"), "plugins": modules,
            "path": self._data, "advertised": options.advertised, "as_version": options.as_version,
            "seed": options.seed, "security_protocol": security.protocol, "users": security.users,
            "security_folder": security.folder,
        }  # fmt: skip
        self._listen, self._address = options.listen, ""
        self._control = ControlClient(lambda: self._ended(DIES_S))
        self._log = LogOverControl(self._control, security)
        self._requests = RequestsOverControl(self._control)
        self.faults = FaultsOverControl(options.seed, APIS, self._control)
        self.clock = ClockOverControl(self._control, options.ahead_ms)
        self._process: Forked | None = None
        self._stdin = -1
        self._full = False
        self._lock = threading.RLock()
        try:
            self.start()
        except BaseException:
            self._scratch.cleanup()
            raise

    # ------------------------------------------------------------ life

    @property
    def running(self) -> bool:
        return self._process is not None and not self._process.ended()

    def _ended(self, within_s: float) -> str:
        """How its process ended by itself, if it does within that time; "" otherwise."""
        process = self._process
        return "" if process is None else process.ended(within_s)

    def start(self) -> None:
        with self._lock:
            if self._process is not None:
                how = self._ended(DIES_S)
                if not how:
                    raise LogkernelError(RUNS)
                log.warning("%s; another one is started", how)
                self._end(signal.SIGKILL)
            self._fork()
            try:
                said = json.loads(self._said())
                if "error" in said:
                    raise raised(said["error"], said["message"])
            except BaseException:
                self._end(signal.SIGKILL)
                raise
            self._address = said["bootstrap_servers"]
            self._listen = said["listen"]
            self._log.reach(self._address)
            self._control.reach(said["control"])
            self._requests.begin_again()
            self.faults.begin_again()
            if self._full:
                self.fill_disk(True)

    def _fork(self) -> None:
        options = {**self._options, "listen": self._listen, "ahead_ms": self.clock.ahead_ms}
        theirs, self._stdin = os.pipe()
        self._stdout, out = os.pipe()
        log = os.open(self._stderr, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            self._process = Forked(options, [theirs, out, log])
        except BaseException:
            os.close(self._stdin)
            os.close(self._stdout)
            raise
        finally:
            for descriptor in (theirs, out, log):
                os.close(descriptor)

    def _said(self) -> bytes:
        """Its first line."""
        found = b""
        try:
            while not found.endswith(b"\n"):
                ready, _, _ = select.select([self._stdout], [], [], STARTS_S)
                part = os.read(self._stdout, CHUNK_BYTES) if ready else b""
                if not part:
                    raise LogkernelError(f"the broker's process did not start; see its log:\n{self.process_log}")
                found += part
        finally:
            os.close(self._stdout)
        return found

    def close(self) -> None:
        self._log.close_clients()
        with self._lock:
            self._end(signal.SIGTERM)
            self._scratch.cleanup()

    def stop(self) -> None:
        self._log.close_clients()
        self._finish(signal.SIGTERM)

    def kill(self) -> None:
        self._finish(signal.SIGKILL)
        self._log.close_clients()

    def _finish(self, how: signal.Signals) -> None:
        """End it, and keep what the test may ask of it later."""
        with self._lock:
            try:
                with self._control.in_a_hurry(LAST_WORDS_S):
                    self.faults.note()
                    self._requests.fetch()
            except LogkernelError:  # it has ended by itself, or was stopped by a signal
                log.warning("%s, without its last words", self._ended(0) or "the broker was stopped by a signal")
            self._end(how)

    def _end(self, how: signal.Signals) -> None:
        """It is gone when this returns, and its port is free."""
        self._control.lose()
        process, self._process = self._process, None
        if process is not None:
            process.end(how)
            os.close(self._stdin)

    def save(self) -> KafkaSnapshot:
        if self._process is None:
            raise LogkernelError(NOT_SAVED)
        self._control.call("GET", "health")  # raises where it has died
        self.stop()
        try:
            return KafkaSnapshot(save_folder(self._data), (), self.clock.ahead_ms)
        finally:
            self.start()

    def restore(self, snapshot: KafkaSnapshot) -> None:
        if not isinstance(snapshot.files, FolderSnapshot):
            raise ConfigError(OTHER_KIND)
        if self._process is not None:
            self.kill()
        self._requests.clear()
        restore_folder(self._data, snapshot.files)
        self.clock.ahead_ms = snapshot.ahead_ms
        self.start()

    def fill_disk(self, full: bool) -> None:
        if self._control.reaches:
            self._control.call("PUT", "disk", body={"full": full})
        self._full = full

    # ------------------------------------------------------------ what it is asked

    @property
    def address(self) -> str:
        return self._address

    @property
    def pid(self) -> int:
        process = self._process
        return process.pid if process is not None and not process.ended() else -1

    @property
    def listens(self) -> str:
        return self._listen

    @property
    def log(self) -> LogOverControl:
        return self._log

    @property
    def process_log(self) -> str:
        try:
            with open(self._stderr, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - LOG_BYTES))
                return file.read().decode(errors="replace")
        except FileNotFoundError:  # it was closed
            return ""

    def requests(self) -> KeptRequests:
        return self._requests.all()

    def requests_since(self, number: int, most: int, most_bytes: int) -> tuple[list[tuple[int, ClientRequest]], int]:
        return self._requests.since(number, most, most_bytes)


def _module(plugin: object) -> str:
    """The name by which the other process imports it. Raises `ConfigError`."""
    if isinstance(plugin, ModuleType):
        return plugin.__name__
    raise ConfigError(
        f"plugin {plugin!r} is an object of this process, and the broker is in another one; pass a module, or leave out"
        " process"
    )
