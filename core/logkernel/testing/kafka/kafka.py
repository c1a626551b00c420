"""What a test of a program that talks to Kafka holds: a broker, and what happens in it.

    with Kafka(topics={"orders": 3}) as kafka:
        run_the_program(kafka.bootstrap_servers)
        kafka.assert_produced("orders", key="ann", value={"id": 7}, within=5)

The broker is `logkernel.open` and `listen`, with a clock that the test moves and connections that are watched. Methods
may be called from any thread; those of the broker's own work are run there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from pathlib import Path
from typing import Any, Final, Self, TypeVar

from logkernel.broker.build import build
from logkernel.config.loading import plugin_lists
from logkernel.config.values import render
from logkernel.embed import EmbeddedLog
from logkernel.errors import LogkernelError
from logkernel.kernel import Kernel
from logkernel.testing.kafka.clock import LentClock
from logkernel.testing.kafka.requests import ClientRequest, RequestLog, Requests
from logkernel.testing.kafka.view import KafkaView, Topics, wait_for
from logkernel.testing.kafka.watched import WatchPlugin

T = TypeVar("T")

FOR_TESTS: Final = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "share.coordinator.state.topic.num.partitions": 1,
}
"""What differs from Kafka's defaults: nobody waits for members that never come, and little is opened."""
SETTLES_S: Final = 30.0


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
        as_version: str | None = None,
    ) -> None:
        """Start a broker in memory, or in the folder `path`.

        `topics` are names, or name → partitions, or name → settings of the topic with `partitions` among them.
        `settings` are the broker's by Kafka's names; `_` may stand for `.`. `plugins` are modules or objects with
        hooks, in addition to those that are installed. Without `sockets` only clients that are made here reach it.
        `as_version` is a release of Kafka ("2.8" to "4.3"): clients are told of what it had, and newer requests are
        refused. Raises `ConfigError`, `PluginError`.
        """
        self._requests = RequestLog()
        self.clock = LentClock(self._settle)
        """Its `advance` moves the broker's time."""
        given = {name.replace("_", "."): value for name, value in (settings or {}).items()}
        self._overrides = [f"{name}={render(value)}" for name, value in {**FOR_TESTS, **given}.items()]
        if as_version is not None:
            self._overrides.append(f"logkernel.as.version={as_version}")
        self._path = path
        if path is not None:
            self._overrides.append(f"log.dirs={path}")
        self._plugins = list(plugins)
        self._log = self._open()
        try:
            self._address = self._log.listen() if sockets else ""
            self.create_topics(topics)
        except BaseException:
            self._log.close()
            raise

    def _open(self) -> EmbeddedLog:
        allow, block = plugin_lists(None, self._overrides)
        kernel = Kernel(allow=allow, block=block, plugins=[*self._plugins, WatchPlugin(self)])
        return EmbeddedLog(build(None, self._overrides, in_memory=self._path is None, kernel=kernel, clock=self.clock))

    # ------------------------------------------------------------ life

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the broker; connections break. A second call does nothing."""
        self._log.close()

    @property
    def bootstrap_servers(self) -> str:
        """ "host:port", for clients of any kind. Raises `LogkernelError` without sockets."""
        if not self._address:
            raise LogkernelError("this broker has no sockets; use its producer() and consumer(), or open it with them")
        return self._address

    @property
    def log(self) -> EmbeddedLog:
        """The open log inside."""
        return self._log

    def _run(self, work: Callable[[], T]) -> T:
        """Do `work` on the broker's thread."""
        done: T = self._log.host.run(work)
        return done

    # ------------------------------------------------------------ what clients asked

    @property
    def requests(self) -> Requests:
        """What clients asked, decoded, the oldest first; the newest 10,000 are kept."""
        return self._run(lambda: Requests(self._requests))

    def clear_requests(self) -> None:
        """Forget what clients asked so far."""
        self._run(self._requests.clear)

    def now_ms(self) -> int:
        """The broker's wall time, in ms since 1970."""
        return self.clock.wall_ms()

    def saw(self, request: ClientRequest, size: int) -> None:
        """See `watched.Watch`."""
        self._requests.add(request, size)

    # ------------------------------------------------------------ time

    def _settle(self) -> None:
        """Have everything done that is due, and what follows from it."""
        broker = self._log.broker
        if broker.runtime.is_driven:  # a loop has set its alarm by the time before
            heard: Future[None] = Future()
            broker.runtime.workers.call(lambda: heard.set_result(None))
            heard.result()

        def settled() -> bool:
            deadline_ms = broker.step()
            due = deadline_ms is not None and deadline_ms <= broker.runtime.clock.mono_ms()
            return not (due or broker.retention.busy or broker.cleaner.busy)

        wait_for(lambda: self._run(settled), SETTLES_S, lambda: "the broker is still busy with what fell due")
