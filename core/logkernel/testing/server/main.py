"""The life of a test server: a broker, its control port, one line that says where they are, and an end."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from logkernel import __version__
from logkernel.testing.http_server import HttpServer
from logkernel.testing.kafka.kafka import Kafka
from logkernel.testing.server.answers import unread
from logkernel.testing.server.lifeline import Lifeline
from logkernel.testing.server.one_broker import BrokerControl

if TYPE_CHECKING:
    from logkernel.testing.kafka.cluster import KafkaCluster
    from logkernel.testing.server.control import Control

MAX_BODY_BYTES: Final = 64 << 20
"""Records of a produce call."""


def run(
    options: Mapping[str, Any],
    *,
    brokers: int | None = None,
    control: tuple[str, int] = ("127.0.0.1", 0),
    stay: bool = False,
    ready: Callable[[str], None],
) -> None:
    """Run a `Kafka(**options)`, or a `KafkaCluster(brokers, **options)`, until SIGTERM or SIGINT comes, or the process
    that started this one ends, unless it is to `stay` then. `ready` gets the line, without its end. Raises what `Kafka`
    does, and `CannotListen`.

    A call that is being answered then ends with the process; a broker in a folder is closed cleanly.
    """
    lifeline = Lifeline()

    def end(number: int, frame: FrameType | None) -> None:
        if not lifeline.end():  # the second signal
            os._exit(1)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    if not stay:
        lifeline.hold()
    kafka, app = _one(options) if brokers is None else _several(brokers, options)
    with kafka:
        server = HttpServer(app, *control, max_body_bytes=MAX_BODY_BYTES, refused=unread)
        where: dict[str, Any] = {
            "bootstrap_servers": kafka.bootstrap_servers, "control": server.url, "listen": kafka.listens,
        }  # fmt: skip
        if kafka.security.protocol != "PLAINTEXT":
            where["client"] = kafka.client_settings()
        ready(json.dumps({**where, "pid": os.getpid(), "version": __version__}))
        lifeline.wait()
        threading.Thread(target=server.close, daemon=True).start()


def _one(options: Mapping[str, Any]) -> tuple[Kafka, Control]:
    kafka = Kafka(**options)
    return kafka, BrokerControl(kafka)


def _several(brokers: int, options: Mapping[str, Any]) -> tuple[KafkaCluster, Control]:
    from logkernel.testing.kafka.cluster import KafkaCluster
    from logkernel.testing.server.several_brokers import ClusterControl

    kafka = KafkaCluster(brokers, **options)
    return kafka, ClusterControl(kafka)
