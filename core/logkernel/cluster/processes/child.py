"""A broker that lives no longer than the process that started it.

The parent holds the other end of the standard input, which ends with the parent. Linux kills the broker then even if it
is stopped (PR_SET_PDEATHSIG). It ends as by `kill -9`, so that its folder and its port are free
at once for who is started next, and its next start recovers.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence
from typing import Final

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.broker.governance.access import ClusterAccess
from logkernel.cluster.folder import broker_folder, coordination_folder
from logkernel.cluster.processes.session import SocketSession
from logkernel.config.sources import RawSetting

PR_SET_PDEATHSIG: Final = 1
ALONE: Final = b"."
"""What the parent writes to a broker when all others have ended."""
CLIENTS: Final = "PLAINTEXT"
BROKERS: Final = "PLAINTEXT-BROKERS"
"""Names of the listeners for clients and for other brokers. By its name the second one speaks plain text, whatever the
operator's listener.security.protocol.map has."""


def live_with_parent(alone: Callable[[], object]) -> None:
    """Die with the process at the other end of the standard input. Signals of a terminal are the parent's to take.

    `alone` is called, on a thread of its own, when the parent says that all other brokers have ended.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):  # a C library without it
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_watch, args=(alone,), name="logkernel-parent", daemon=True).start()


def _watch(alone: Callable[[], object]) -> None:
    while os.read(0, 1):
        alone()
    os.kill(os.getpid(), signal.SIGKILL)


def build_child(
    path: str,
    node: int,
    size: int,
    listen: str,
    config: str | None,
    overrides: Sequence[str | RawSetting],
    loop: asyncio.AbstractEventLoop,
) -> Broker:
    """Broker `node` of the cluster of `size` brokers in folder `path`, for clients at `listen` ("host:port"); `loop`
    will run it.

    Other brokers reach it over a listener of their own, which no client is told of: only there it takes orders. Raises
    `ConfigError`, `PluginError`.
    """

    def new_session() -> SocketSession:
        timeout_ms = int(broker.runtime.config.get("broker.session.timeout.ms"))
        return SocketSession(coordination_folder(path), timeout_ms, soon=loop.call_soon_threadsafe)

    own = [
        f"log.dirs={broker_folder(path, node)}",
        f"node.id={node}",
        f"listeners={CLIENTS}://{listen},{BROKERS}://127.0.0.1:0",
        f"inter.broker.listener.name={BROKERS}",
        "advertised.listeners=",
    ]
    broker = build(config, [*overrides, *own], access=ClusterAccess(new_session, size=size))
    return broker
