"""Apache Kafka 3.9 with ZooKeeper, and a broker of nobody in its cluster: registered by kazoo, a socket in this process
that says to everything that it was done, and keeps what it was told."""

from __future__ import annotations

import asyncio
import json
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))

import apache_kafka
from kazoo.client import KazooClient
from zookeepers import SESSION_S, START_S

Note = Callable[[int, bytes, bytes], None]
"""(the broker that was asked, request, response), both without their size."""
SUCCESS = {
    1: bytes(11) + b"\x01\x00",
    4: b"\x00\x00\x00\x01\x00",
    5: b"\x00\x00\x00\x01\x00",
    6: b"\x00\x00\x00\x00",
    23: bytes(5) + b"\x01\x00",
}
"""API → header and body of an empty response, behind the correlation id."""
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "2",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "1",
    "controlled.shutdown.retry.backoff.ms": "200",
    "replica.fetch.backoff.ms": "200",
}
WAIT_S = 180.0


async def frame(reader: asyncio.StreamReader) -> bytes:
    size = struct.unpack(">i", await reader.readexactly(4))[0]
    return await reader.readexactly(size)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


class Loop:
    """An event loop in a thread, for sockets that answer while the script waits."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        threading.Thread(target=self.loop.run_forever, daemon=True).start()

    def listen(self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any], port: int) -> int:
        """The port; 0 takes a free one."""
        work = asyncio.start_server(serve, "127.0.0.1", port)
        bound: int = asyncio.run_coroutine_threadsafe(work, self.loop).result().sockets[0].getsockname()[1]
        return bound


def success(note: Note, node: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    """A broker that does nothing and says that it did."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await frame(reader)
                key = struct.unpack_from(">h", request)[0]
                if key not in SUCCESS:
                    break
                response = request[4:8] + SUCCESS[key]
                if key == 1:
                    await asyncio.sleep(0.2)
                note(node, request, response)
                writer.write(framed(response))
        except asyncio.IncompleteReadError:
            pass
        writer.close()

    return serve


def until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not ready():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what} did not happen in {WAIT_S:.0f} s")
        time.sleep(0.05)


@contextmanager
def zookeeper(folder: Path) -> Iterator[tuple[Any, KazooClient]]:
    apache_kafka.fetch(apache_kafka.jars_of(apache_kafka.OLDER), apache_kafka.artifacts_of(apache_kafka.OLDER))
    keeper = apache_kafka.ZooKeeperServer(folder / "zookeeper")
    keeper.prepare()
    keeper.start()
    client = KazooClient(keeper.bootstrap, SESSION_S)
    client.start(START_S)
    try:
        yield keeper, client
    finally:
        client.stop()
        keeper.stop()


def member(folder: Path, node: int, keeper: Any, **settings: str) -> Any:
    named = {name.replace("_", "."): value for name, value in settings.items()}
    made = apache_kafka.KafkaMember(folder / f"broker-{node}", node, keeper.bootstrap, {**SETTINGS, **named})
    made.prepare()
    return made


def register(client: KazooClient, node: int, port: int) -> int:
    """Announce a broker; returns its broker epoch."""
    value = {
        "version": 5, "host": "127.0.0.1", "port": port, "endpoints": [f"PLAINTEXT://127.0.0.1:{port}"], "jmx_port": -1,
        "timestamp": "0", "listener_security_protocol_map": {"PLAINTEXT": "PLAINTEXT"}, "features": {},
    }  # fmt: skip
    _, stat = client.create(f"/brokers/ids/{node}", json.dumps(value).encode(), ephemeral=True, include_data=True)
    return int(stat.czxid)
