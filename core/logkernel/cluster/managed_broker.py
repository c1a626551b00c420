"""One broker of a cluster in this process: started, paused, stopped, killed. Everything here runs on the loop's thread.

| state | its session | requests to it | its files |
|---|---|---|---|
| running | alive | are answered | open |
| paused | ends after the session timeout | wait until it resumes | open |
| stopped | closed | fail | closed cleanly |
| killed | closed | fail | as kill -9 leaves them |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from logkernel.broker.build import build
from logkernel.broker.governance.access import ClusterAccess
from logkernel.broker.serve import Server
from logkernel.cluster.gate import Gate
from logkernel.config.sources import RawSetting
from logkernel.errors import LogkernelError
from logkernel.storage.disk import Disk

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker
    from logkernel.broker.runtime import Randomness
    from logkernel.broker.timers import Clock
    from logkernel.broker.workers import Workers
    from logkernel.cluster.store import SharedStore, StoreSession
    from logkernel.contracts import BrokerDoor, PeerTransport
    from logkernel.kernel import Kernel


class InterBrokerNetwork(Protocol):
    """How the brokers of a cluster reach one another: `network.ProcessNetwork`, or a simulation's network."""

    def transport(self, node_id: int) -> PeerTransport: ...
    def join(self, node_id: int, door: BrokerDoor) -> None: ...
    def leave(self, node_id: int) -> None: ...
    def pause(self, node_id: int) -> None: ...
    def resume(self, node_id: int) -> None: ...


class Environment(NamedTuple):
    """What a broker gets at a start in place of the system's: None for the system's own."""

    kernel: Kernel | None = None
    clock: Clock | None = None
    randomness: Randomness | None = None
    workers: Workers | None = None
    plugins: Sequence[object] = ()
    """Beside those that are installed, where there is no `kernel`."""


class ManagedBroker:
    """A node id of a cluster, with its broker while that runs. It is started, paused, stopped and killed."""

    def __init__(
        self,
        node_id: int,
        store: SharedStore,
        network: InterBrokerNetwork,
        overrides: Sequence[str | RawSetting],
        *,
        size: int,
        config: str | None = None,
        disk: Disk | None = None,
        listen: Sequence[tuple[str, str, int]] = (),
        session_timeout_s: float,
        over_sockets: bool = False,
        environment: Callable[[], Environment] = Environment,
    ) -> None:
        """`size` is the planned number of brokers. `disk` holds the broker's files, None for the operating system's; it
        outlives the broker. `environment` is called at each start."""
        self.node_id = node_id
        self.state = "stopped"
        self.broker: Broker | None = None
        """Also while it starts, when clients may find it already."""
        self.server: Server | None = None
        self.store = store
        """To be replaced only while the broker does not run, as is `disk`."""
        self._network = network
        self._overrides = [*overrides, f"node.id={node_id}"]
        self._size = size
        self._config = config
        self.disk = disk
        """To be replaced only while the broker does not run."""
        self._environment = environment
        self._listen = list(listen)
        self._session_timeout_s = session_timeout_s
        self._session: StoreSession | None = None
        self._over_sockets = over_sockets
        self.gate: Gate | None = None
        self._expiry: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        """Start the broker and register it. Raises `LogkernelError` if it is running or paused, or whatever its start
        raises."""
        if self.state in ("running", "paused"):
            raise LogkernelError(f"broker {self.node_id} is {self.state}; kill or stop it first")
        transport = None if self._over_sockets else self._network.transport(self.node_id)
        access = ClusterAccess(self._new_session, transport, self._size)
        broker = build(
            self._config, self._overrides, in_memory=self.disk is not None, disk=self.disk, access=access,
            **self._environment()._asdict(),
        )  # fmt: skip
        self.broker = broker
        try:
            broker.start()
            gate = Gate(broker)
            server = Server(broker, gate)
            listeners = self._listen
            await server.start(listeners, "tcp" if listeners else "memory")
        except BaseException:
            broker.abandon()
            self._end("stopped")
            raise
        self.gate, self.server = gate, server
        self._listen = [  # a broker that comes back is found where it was
            (listener.name, listener.host, listener.port) for listener in server.listeners
        ]
        self._network.join(self.node_id, gate)
        self.state = "running"
        server.join()

    def _new_session(self) -> StoreSession:
        self._session = self.store.session()
        return self._session

    async def stop(self) -> None:
        """Stop the broker with a controlled shutdown: other brokers take over its partitions, then it closes."""
        if self.state == "paused":
            self.resume()
        if self.state != "running":
            return
        server = self.server
        assert server is not None
        await server.leave()
        if self.server is server:  # else it was killed meanwhile, and may have been started again
            await self.close()

    async def close(self) -> None:
        """Close the broker cleanly, without a controlled shutdown."""
        if self.state != "running":
            return
        broker, server, gate = self.broker, self.server, self.gate
        assert broker is not None
        assert server is not None
        assert gate is not None
        await server.close()
        if self.server is not server:
            return  # it was killed meanwhile
        gate.remove()  # clients in this process must not write to a broker that is closed
        self._network.leave(self.node_id)
        broker.close()
        self._end("stopped")

    async def kill(self) -> None:
        """End the broker as kill -9 would: nothing is flushed, its session ends, its connections break."""
        if self.state not in ("running", "paused"):
            return
        assert self.broker is not None
        assert self.server is not None
        assert self.gate is not None
        assert self._session is not None
        self.gate.remove()
        self.gate = None  # requests from now on find no broker
        self._session.close()
        self._network.leave(self.node_id)
        self.broker.governance.abandon()
        await self.server.kill()
        self.broker.abandon()
        self._end("killed")

    def _end(self, state: str) -> None:
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        if self._session is not None:
            self._session.close()
        self.broker = self.server = self.gate = self._session = None
        self.state = state

    # ------------------------------------------------------------ pauses

    def pause(self) -> None:
        """Pause the broker as SIGSTOP would. Its session ends after the session timeout."""
        if self.state != "running":
            raise LogkernelError(f"broker {self.node_id} is {self.state}; only one that runs can be paused")
        if self._over_sockets:
            raise LogkernelError(
                f"cannot pause broker {self.node_id}: it is connected by sockets; open the cluster without over_sockets"
            )
        assert self.gate is not None
        assert self.server is not None
        assert self._session is not None
        self.state = "paused"
        self.gate.shut()
        self.server.pause()
        self._network.pause(self.node_id)
        self._expiry = asyncio.get_running_loop().call_later(self._session_timeout_s, self._session.expire)

    def resume(self) -> None:
        """Resume a paused broker: it keeps its state, and gets what was sent to it meanwhile."""
        if self.state != "paused":
            raise LogkernelError(f"broker {self.node_id} is {self.state}, not paused")
        assert self.gate is not None
        assert self.server is not None
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self.state = "running"
        self.gate.open()
        self._network.resume(self.node_id)
        self.server.resume()
