"""Fixtures for every test: a real broker in a process of its own, and the outside tools that some tests need."""

from __future__ import annotations

import gc
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import IO

import pytest
import zookeepers
from attrs import define, field
from hypothesis import HealthCheck, settings
from module_files import load_module
from outside_tools import missing

# Hundreds of tests start programs: where these may not keep their compiled files, each compiles all that it imports.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")  # a test is never judged by how fast its machine is

pytest_plugins = ["parts"]

ROOT = Path(__file__).resolve().parent.parent
READY_PREFIX = "logkernel listening on "
START_TIMEOUT_S = 300.0
STOP_TIMEOUT_S = 300.0


def pytest_runtest_setup() -> None:
    """Whoever runs the tests in the background may ignore SIGINT, and the programs of a test would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests, so that no worker is left with one when the others are done."""
    items.sort(key=lambda item: item.get_closest_marker("longest") is None)


@define
class Broker:
    """A `logkernel serve` process. `bootstrap` keeps its port over `restart`, as a client needs it to."""

    data: Path
    stderr_path: Path
    arguments: tuple[str, ...] = ()
    listen: str = "127.0.0.1:0"
    bootstrap: str = ""
    addresses: list[str] = field(factory=list)
    """Of its listeners, in the order of `listen`."""
    ready_line: str = ""
    program: tuple[str, ...] = (sys.executable, "-m", "logkernel")
    process: subprocess.Popen[str] | None = field(default=None, repr=False)
    stderr: IO[bytes] | None = field(default=None, repr=False)

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap.rpartition(":")
        return host, int(port)

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def log(self) -> str:
        """What the broker wrote to stderr so far."""
        return self.stderr_path.read_text(errors="replace")

    def command(self) -> list[str]:
        return [*self.program, "serve", "--data", str(self.data), "--listen", self.listen, *self.arguments]

    def start(self) -> Broker:
        """Start, and wait for the ready line; raises AssertionError with the log if it does not come."""
        self.stderr = self.stderr_path.open("ab")
        self.process = subprocess.Popen(
            self.command(), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.stderr, text=True
        )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_TIMEOUT_S)
        self.ready_line = self.process.stdout.readline().rstrip("\n") if ready else ""
        if not self.ready_line.startswith(READY_PREFIX):
            self.end()
            raise AssertionError(f"no ready line but {self.ready_line!r}; stderr:\n{self.log()[-4000:]}")
        listeners = self.ready_line.removeprefix(READY_PREFIX).split()[0].split(",")
        self._bound([listener.rpartition("://")[2] for listener in listeners])
        return self

    def _bound(self, addresses: list[str]) -> None:
        """It listens there from now on. Of listeners with names, the first is the one of clients."""
        self.addresses = addresses
        if "://" in self.listen:
            names = [part.partition("://")[0] for part in self.listen.split(",")]
            pairs = zip(names, addresses, strict=True)
            self.bootstrap, self.listen = addresses[0], ",".join(f"{name}://{address}" for name, address in pairs)
        else:
            self.bootstrap = self.listen = ",".join(addresses)

    def terminate(self, signum: int = signal.SIGTERM) -> int:
        """End it politely and give its exit code."""
        assert self.process is not None
        self.process.send_signal(signum)
        return self.process.wait(STOP_TIMEOUT_S)

    def kill(self) -> None:
        """SIGKILL: what was not written to the kernel is gone."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def restart(self) -> Broker:
        """Start again on the same folder and port; ends the old process politely where it still runs."""
        if self.running:
            self.terminate()
        self.close_pipes()
        return self.start()

    def close_pipes(self) -> None:
        if self.process is not None and self.process.stdout is not None:
            self.process.stdout.close()
        if self.stderr is not None:
            self.stderr.close()

    def end(self) -> None:
        """Whatever state it is in, no process stays behind."""
        if self.running:
            try:
                self.terminate()
            except subprocess.TimeoutExpired:
                self.kill()
        self.close_pipes()


StartBroker = Callable[..., Broker]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts any number of brokers: `start_broker("--set", "num.partitions=3", data=folder)`; `program` is what takes
    the place of `python -m logkernel`, `listen` that of `--listen`."""
    started: list[Broker] = []

    def start(
        *arguments: str,
        data: Path | None = None,
        program: tuple[str, ...] | None = None,
        listen: str = "127.0.0.1:0",
    ) -> Broker:
        number = len(started)
        broker = Broker(data or tmp_path / f"data-{number}", tmp_path / f"stderr-{number}.log", arguments, listen)
        broker.program = program or broker.program
        started.append(broker)
        return broker.start()

    yield start
    for broker in reversed(started):
        broker.end()


def starting(folders: pytest.TempPathFactory) -> Iterator[StartBroker]:
    """As `start_broker`, for several tests."""
    started: list[Broker] = []

    def start(*arguments: str, data: Path | None = None, listen: str = "127.0.0.1:0") -> Broker:
        folder = folders.mktemp("broker")
        started.append(Broker(data or folder / "data", folder / "stderr.log", arguments, listen))
        return started[-1].start()

    yield start
    for broker in reversed(started):
        broker.end()


@pytest.fixture(scope="module")
def start_module_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartBroker]:
    """As `start_broker`, for all tests of a module."""
    yield from starting(tmp_path_factory)


@pytest.fixture(scope="session")
def start_session_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartBroker]:
    """As `start_broker`, for all tests."""
    yield from starting(tmp_path_factory)


@pytest.fixture
def broker(start_broker: StartBroker) -> Broker:
    """A fresh broker for one test."""
    return start_broker()


@pytest.fixture(scope="session")
def broker_session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for many tests, which leave it be; LOGKERNEL_TEST_BOOTSTRAP puts a foreign one in its place."""
    folder = tmp_path_factory.mktemp("broker")
    shared = Broker(folder / "data", folder / "stderr.log")
    foreign = os.environ.get("LOGKERNEL_TEST_BOOTSTRAP")
    if foreign:
        shared.stderr_path.touch()
        shared.bootstrap = foreign
        yield shared
        return
    shared.start()
    yield shared
    shared.end()


FAILED = pytest.StashKey[bool]()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A failure shows what its brokers logged. The folder of a test that passed is removed when all of its fixtures
    have ended: pytest's own policy would remove it under a broker whose fixture is older than the folder."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    arguments = getattr(item, "funcargs", {})
    if not report.failed:
        if report.when == "teardown" and "tmp_path" in arguments and not item.stash.get(FAILED, False):
            shutil.rmtree(arguments["tmp_path"], ignore_errors=True)
        return
    item.stash[FAILED] = True
    for name, value in arguments.items():
        if isinstance(value, Broker) and value.stderr_path.exists():
            report.sections.append((f"log of {name}", value.log()[-6000:]))


@pytest.fixture(scope="session")
def kcat() -> str:
    """Path of the C program kcat."""
    path = shutil.which("kcat") or shutil.which("kafkacat")
    if path is None:
        missing("kcat is not installed (Debian: apt-get install kcat)")
    assert path is not None
    return path


def bench_module() -> ModuleType:
    """`bench/apache_kafka.py`; skips without a JDK or Maven."""
    for tool in ("java", "javac", "mvn"):
        if shutil.which(tool) is None:
            missing(f"{tool} is not installed")
    return load_module(ROOT / "bench" / "apache_kafka.py")


@pytest.fixture(scope="session")
def kafka_clients_jars() -> Path:
    """The folder of the Java client's jars: a tenth of what `apache_kafka` fetches."""
    module = bench_module()
    if module.JARS.is_dir():
        return Path(module.JARS)
    artifact = ("org.apache.kafka", "kafka-clients", module.VERSION)
    try:
        return Path(module.fetch(module.CACHE / f"kafka-clients-{module.VERSION}", (artifact,)))
    except subprocess.CalledProcessError as error:
        missing(f"the jars of Kafka's client cannot be fetched: {error}")


@pytest.fixture(scope="session")
def apache_kafka(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """`bench/apache_kafka.py`, with Kafka's jars fetched and its JVMs quick to start; skips without a JDK or Maven."""
    module = bench_module()
    try:
        module.fetch()
    except subprocess.CalledProcessError as error:
        missing(f"Kafka's jars cannot be fetched: {error}")
    module.KafkaServer.brief = True
    folder = tmp_path_factory.mktemp("archive")
    broker = Broker(folder / "data", folder / "stderr.log")
    try:
        module.archive_tools(lambda: broker.start().bootstrap)
    finally:
        broker.end()
    return module


@pytest.fixture(scope="module")
def patient_zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zookeepers.ZooKeeper]:
    """A ZooKeeper for the tests of a module, each in a chroot of its own; skips where none can be started. A session
    lasts as long as it asks for, so that a machine that stalls does not end it."""
    why = zookeepers.absent()
    if why is not None:
        missing(why)
    with zookeepers.zookeeper(tmp_path_factory.mktemp("zookeeper"), (zookeepers.LONG_SESSIONS,)) as started:
        yield started


@pytest.fixture
def young_heap() -> Iterator[None]:
    """The garbage collector sees only what the test makes: a collection takes microseconds, not a third of a second."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()


def eventually(holds: Callable[[], bool], timeout_s: float = 120.0, what: str = "condition") -> None:
    """Poll until `holds()`, where nothing can be waited on; fails with `what` after `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not holds():
        if time.monotonic() > deadline:
            pytest.fail(f"{what}: not so after {timeout_s} s")
        time.sleep(0.02)


@pytest.fixture(scope="session", name="eventually")
def eventually_fixture() -> Callable[..., None]:
    return eventually
