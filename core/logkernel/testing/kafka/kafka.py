"""What a test of a program that talks to Kafka holds: a broker, and what happens in it.

    with Kafka(topics={"orders": 3}) as kafka:
        run_the_program(kafka.bootstrap_servers)
        kafka.assert_produced("orders", key="ann", value={"id": 7}, within=5)

The broker is in this process, or in another one. Methods may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self, cast

from logkernel.errors import LogkernelError
from logkernel.testing.kafka.broker import BrokerOptions, KafkaBroker, KafkaSnapshot, no_snapshot
from logkernel.testing.kafka.here import BrokerHere, LogHere
from logkernel.testing.kafka.requests import ClientRequest, KeptRequests
from logkernel.testing.kafka.security import ListenerSecurity, Users
from logkernel.testing.kafka.view import KafkaView, Topics

LISTEN: Final = "127.0.0.1:0"


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
        ahead_ms: int = 0,
        process: bool = False,
        security_protocol: str = "PLAINTEXT",
        users: Users = (),
        security_folder: str | None = None,
    ) -> None:
        """Start a broker in memory, or in the folder `path`.

        `topics` are names, or name → partitions, or name → settings of the topic with `partitions` among them.
        `settings` are the broker's by Kafka's names; `_` may stand for `.`. `plugins` are modules or objects with
        hooks, in addition to those that are installed. Without `sockets` only clients that are made here reach it.
        It listens at `listen` ("host:port", port 0 takes a free one), and tells clients to connect to `advertised`
        ("host:port", port 0 is the bound one), if that differs. `as_version` is a release of Kafka ("2.8" to "4.3"):
        clients are told of what it had, and newer requests are refused. `seed` decides what faults with a probability
        strike; `faults` is what `Faults.load` takes. Its time is ahead of the system's by `ahead_ms`.

        With `process` it runs in a process of its own, which `kill` kills. There `plugins` are modules, `log` has only
        what views use, and `producer()`, `consumer()` and `admin()` use sockets as any client does.

        Clients connect by `security_protocol` (SSL, SASL_PLAINTEXT, SASL_SSL), and log in as one of `users`, names or
        name → password; `client_settings` says what they set. Keys and certificates are made in `security_folder`,
        where they are not there yet; by default in a folder that goes with the broker.

        Raises `ConfigError`, `PluginError`, `CannotListen`.
        """
        hosts = [each.rpartition(":")[0].strip("[]") for each in (listen, advertised) if each]
        self.security = ListenerSecurity(security_protocol, users, hosts, security_folder)
        try:
            options = BrokerOptions(
                settings=settings or {}, plugins=list(plugins), path=path, sockets=sockets, listen=listen,
                advertised=advertised, as_version=as_version, seed=seed, ahead_ms=ahead_ms, security=self.security,
            )  # fmt: skip
            self._broker = _in_process(options) if process else BrokerHere(options)
        except BaseException:
            self.security.close()
            raise
        self.clock, self.faults = self._broker.clock, self._broker.faults
        self.look_again_s = self._broker.look_again_s
        try:
            self.create_topics(topics)
            self.faults.load(faults)
        except BaseException:
            self.close()
            raise

    # ------------------------------------------------------------ life

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the broker; connections break. A second call does nothing."""
        self._broker.close()
        self.security.close()

    def stop(self) -> None:
        """Stop the broker cleanly; `start` goes on with what it has. Clients that were made here are closed."""
        self._broker.stop()

    def kill(self) -> None:
        """End the broker as kill -9 would; `start` recovers what it wrote. Clients that were made here are of no use
        any more."""
        self._broker.kill()

    def start(self) -> None:
        """Start a broker that was stopped or killed, or whose process has died, on the same port. Raises
        `LogkernelError` while it runs."""
        self._broker.start()

    def restart(self) -> None:
        """Stop the broker cleanly, and start it."""
        self.stop()
        self.start()

    @property
    def running(self) -> bool:
        """False after `stop`, `kill` and `close`, and when its process has died."""
        return self._broker.running

    def save(self) -> KafkaSnapshot:
        """Save all that the broker has: topics, records, groups, settings, and its time. The broker is restarted: its
        connections break, as they do with `restore`.

        In memory this costs little. A folder is copied beside itself, which takes as long as its bytes take, but
        nothing where the file system clones files (btrfs, XFS). Raises `LogkernelError` for a broker that does not run,
        `OSError`.
        """
        return self._broker.save()

    def restore(self, snapshot: KafkaSnapshot) -> None:
        """Have all that was saved, and nothing that came later; the same snapshot any number of times. A broker that
        was stopped or killed is started; `requests` begin anew, and faults stay. Raises `ConfigError` for a snapshot of
        another kind of broker, `OSError`."""
        if not isinstance(snapshot, KafkaSnapshot):
            raise no_snapshot(snapshot, "Kafka")
        self._broker.restore(snapshot)

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Meanwhile the broker's disk has no room."""
        self.fill_disk()
        try:
            yield
        finally:
            self.fill_disk(False)

    def fill_disk(self, full: bool = True) -> None:
        """Have no room on the broker's disk from now on, or room again."""
        self._broker.fill_disk(full)

    # ------------------------------------------------------------ KafkaView

    @property
    def bootstrap_servers(self) -> str:
        """ "host:port", for clients of any kind. Raises `LogkernelError` without sockets."""
        if not self._broker.address:
            raise LogkernelError("this broker has no sockets; use its producer() and consumer(), or open it with them")
        return self._broker.address

    @property
    def pid(self) -> int:
        """The id of the broker's process, -1 while there is none."""
        return self._broker.pid

    @property
    def listens(self) -> str:
        """Where it listens, "" without sockets."""
        return self._broker.listens

    @property
    def log(self) -> LogHere:
        """The open log inside; of another process, the part of it that views use. Raises `LogkernelError` while the
        broker does not run."""
        return cast("LogHere", self._broker.log)

    @property
    def process_log(self) -> str:
        """What the broker's process wrote to stderr, "" where it is this process."""
        return self._broker.process_log

    @property
    def requests(self) -> KeptRequests:
        """What clients asked, decoded, the oldest first; the newest 10,000 are kept."""
        return self._broker.requests()

    def requests_since(self, number: int, most: int, most_bytes: int) -> tuple[list[tuple[int, ClientRequest]], int]:
        """Requests from `number` on, as `RequestLog.since`; and the number that the next one gets."""
        return self._broker.requests_since(number, most, most_bytes)


def _in_process(options: BrokerOptions) -> KafkaBroker:
    from logkernel.testing.child.broker import BrokerProcess

    return BrokerProcess(options)
