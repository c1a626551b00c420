"""One broker of a cluster in this process: started, paused, stopped, killed. Everything here runs on the loop's thread.

| state | its session | what it hears | its files |
|---|---|---|---|
| running | alive | everything | open |
| paused | ends after the session timeout | all of it, when it goes on | open |
| stopped | said goodbye | nothing | closed cleanly |
| killed | ended | nothing | as a kill -9 leaves them |
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from logkernel.broker.build import build
from logkernel.broker.membership import ClusterAccess
from logkernel.broker.serve import Server
from logkernel.cluster.gate import Gate
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


class MembersNetwork(Protocol):
    """How the members reach one another: `network.ProcessNetwork`, or a simulation's."""

    def transport(self, node_id: int) -> PeerTransport: ...
    def join(self, node_id: int, door: BrokerDoor) -> None: ...
    def leave(self, node_id: int) -> None: ...
    def pause(self, node_id: int) -> None: ...
    def resume(self, node_id: int) -> None: ...


class Surroundings(NamedTuple):
    """What one life of a broker finds around it, where that is not the system's: a simulation's own."""

    kernel: Kernel | None = None
    clock: Clock | None = None
    randomness: Randomness | None = None
    workers: Workers | None = None


class Member:
    """A node id, and the broker that runs under it at times."""

    def __init__(
        self,
        node_id: int,
        store: SharedStore,
        network: MembersNetwork,
        overrides: Sequence[str],
        *,
        size: int,
        config: str | None = None,
        disk: Disk | None = None,
        listen: Sequence[tuple[str, str, int]] = (),
        session_timeout_s: float,
        over_sockets: bool = False,
        surroundings: Callable[[], Surroundings] = Surroundings,
    ) -> None:
        """`size` is how many brokers the cluster is to have. `disk` is where the broker's files lie if not on the
        operating system's; it outlives the broker. `surroundings` is asked at each start."""
        self.node_id = node_id
        self.state = "stopped"
        self.broker: Broker | None = None
        self.server: Server | None = None
        self._store = store
        self._network = network
        self._overrides = [*overrides, f"node.id={node_id}"]
        self._size = size
        self._config = config
        self.disk = disk
        """To be replaced only while the broker does not run."""
        self._surroundings = surroundings
        self._listen = list(listen)
        self._session_timeout_s = session_timeout_s
        self._session: StoreSession | None = None
        self._over_sockets = over_sockets
        self.gate: Gate | None = None
        self._expiry: asyncio.TimerHandle | None = None

    # ------------------------------------------------------------ life

    async def start(self) -> None:
        """Start the broker and have it announced. Raises what a start raises, and `LogkernelError` if it runs."""
        if self.state in ("running", "paused"):
            raise LogkernelError(f"broker {self.node_id} is {self.state}; kill or stop it first")
        transport = None if self._over_sockets else self._network.transport(self.node_id)
        access = ClusterAccess(self._new_session, transport, self._size)
        broker = build(
            self._config, self._overrides, in_memory=self.disk is not None, disk=self.disk, access=access,
            **self._surroundings()._asdict(),
        )  # fmt: skip
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
        self.gate, self.broker, self.server = gate, broker, server
        self._listen = [  # a broker that comes back is found where it was
            (listener.name, listener.host, listener.port) for listener in server.listeners
        ]
        self._network.join(self.node_id, gate)
        self.state = "running"
        server.join()

    def _new_session(self) -> StoreSession:
        self._session = self._store.session()
        return self._session

    async def stop(self) -> None:
        """Have its partitions led elsewhere, close it cleanly, say goodbye."""
        if self.state == "paused":
            self.resume()
        if self.state != "running":
            return
        assert self.server is not None
        await self.server.leave()
        await self.close()

    async def close(self) -> None:
        """Close it cleanly, whoever leads its partitions then."""
        if self.state != "running":
            return
        assert self.broker is not None
        assert self.server is not None
        assert self.gate is not None
        await self.server.close()
        self.gate.remove()  # clients in this process must not write to a broker that is closed
        self._network.leave(self.node_id)
        self.broker.close()
        self._end("stopped")

    async def kill(self) -> None:
        """End it as kill -9 would: nothing is flushed, nobody is told, its connections break."""
        if self.state not in ("running", "paused"):
            return
        assert self.broker is not None
        assert self.server is not None
        assert self.gate is not None
        assert self._session is not None
        self.gate.remove()
        self.gate = None  # who comes meanwhile finds nobody
        self._session.close()
        self._network.leave(self.node_id)
        if self.broker.membership is not None:
            self.broker.membership.abandon()
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
        """Stop the broker in its tracks, as SIGSTOP would. Its session ends after the session timeout."""
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
        """It goes on with what it believed, and hears what it missed."""
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
