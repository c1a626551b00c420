"""The control port of one broker: its life and its disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from werkzeug.routing import Map

from logkernel import __version__
from logkernel.testing.server.body import Fields
from logkernel.testing.server.control import Control, routes

if TYPE_CHECKING:
    from logkernel.testing.kafka.kafka import Kafka


class BrokerControl(Control):
    """See `Control`."""

    routes: ClassVar[Map] = routes(
        ("POST", "/broker/stop", "stop"),
        ("POST", "/broker/kill", "kill"),
        ("POST", "/broker/start", "start"),
        ("POST", "/broker/restart", "restart"),
        ("GET", "/disk", "disk"),
        ("PUT", "/disk", "set_disk"),
    )
    stopped = "the broker is stopped; POST /broker/start"
    elsewhere = (
        ("/brokers", "/network", "/controller"),
        "there is one broker here: POST /broker/kill and the like, or start the server with --brokers",
    )

    def __init__(self, kafka: Kafka) -> None:
        super().__init__(kafka)
        self._broker = kafka
        self._full = False

    @property
    def running(self) -> bool:
        return self._broker.running

    def health(self, given: Any) -> Any:
        Fields(given).end()
        return {
            "status": "running" if self._broker.running else "stopped",
            "bootstrap_servers": self._broker.bootstrap_servers,
            "version": __version__,
            "pid": os.getpid(),
        }

    def stop(self, given: Any) -> Any:
        return self._live(given, self._broker.stop)

    def kill(self, given: Any) -> Any:
        return self._live(given, self._broker.kill)

    def start(self, given: Any) -> Any:
        return self._live(given, self._broker.start)

    def restart(self, given: Any) -> Any:
        return self._live(given, self._broker.restart)

    def _live(self, given: Any, turn: Callable[[], None]) -> Any:
        Fields(given).end()
        with self._life:
            turn()
        return self.health({})

    def disk(self, given: Any) -> Any:
        Fields(given).end()
        return {"full": self._full}

    def set_disk(self, given: Any) -> Any:
        fields = Fields(given)
        full = fields.flag("full")
        fields.end()
        self._broker.fill_disk(full)
        self._full = full
        return {"full": full}
