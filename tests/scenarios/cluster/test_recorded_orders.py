"""Orders of a running Apache Kafka 3.9.2, recorded, are replayed to a broker of ours: it does what it was told.

`tests/golden/replication/orders.txt` has them: a controller, broker 1, spoke to a broker 2.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.broker.governance.access import ClusterAccess
from logkernel.broker.serve import Server, new_event_loop
from logkernel.cluster.store import SharedStore
from logkernel.contracts import RequestContext
from logkernel.kernel import Kernel
from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.channel import AsyncTcpChannel
from logkernel.requests.data import FetchRequest, ReplicaState
from logkernel.requests.replication import UpdateMetadataRequest

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "replication" / "orders.txt"
SETTINGS = (
    "node.id=2", "log.dirs=/memory", "listeners=BROKERS://127.0.0.1:0,CLIENTS://127.0.0.1:0",
    "listener.security.protocol.map=BROKERS:PLAINTEXT,CLIENTS:PLAINTEXT", "inter.broker.listener.name=BROKERS",
)  # fmt: skip
Row = tuple[str, int, bytes]


def chapters() -> list[list[Row]]:
    """(API, version, frame) of what was said in each chapter; the first one is about the broker's registration."""
    found: list[list[Row]] = []
    for line in GOLDEN.read_text().splitlines()[1:]:
        if line.startswith("#"):
            found.append([])
        else:
            _, name, version, request, _ = line.split()
            found[-1].append((name, int(version), bytes.fromhex(request)))
    return found


class Told:
    """A broker 2 whose controller is a session of nobody, and a connection to it."""

    def __init__(self, broker: Broker, ports: dict[str, int]) -> None:
        self.broker = broker
        self.ports = ports

    async def open(self, listener: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.ports[listener])

    async def tell(self, rows: list[Row]) -> list[Any]:
        """Send frames one after the other over a new connection, the first without any ApiVersions; the responses."""
        reader, writer = await self.open("BROKERS")
        responses = []
        for name, version, request in rows:
            writer.write(struct.pack(">i", len(request)) + request)
            size = struct.unpack(">i", await reader.readexactly(4))[0]
            response = await reader.readexactly(size)
            assert response[:4] == request[4:8]
            api = registry.load(registry.BY_REQUEST[f"{name}Request"].key)
            responses.append(api.decode_response(version)(memoryview(response)[5:]))
        writer.close()
        return responses

    @property
    def led(self) -> set[tuple[str, int]]:
        return set(map(tuple, self.broker.replicas.led))

    @property
    def followed(self) -> dict[tuple[str, int], int]:
        return {tuple(name): each.follower.leader for name, each in self.broker.replicas.followed.items()}


@asynccontextmanager
async def told_broker() -> AsyncIterator[Told]:
    def no_log() -> Any:
        raise AssertionError("a coordination in memory keeps no log")

    store = SharedStore(Kernel().coordination("memory", no_log))
    assert store.session().campaign(1) == 1
    broker = build(None, SETTINGS, in_memory=True, access=ClusterAccess(store.session))
    broker.start()
    server = Server(broker)
    await server.start(broker.addresses.configured_listeners())
    server.join()
    try:
        yield Told(broker, {listener.name: listener.port for listener in server.listeners})
    finally:
        await server.close()
        broker.close()


@pytest.fixture
def run() -> Callable[[Any], None]:
    def go(story: Any) -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(asyncio.wait_for(story(), 60))

    return go


def without_fetches(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row[0] != "Fetch"]


def test_what_kafka_ordered_is_done(run: Callable[[Any], None]) -> None:
    async def story() -> None:
        registers, leads, follows, grows, deletes, stops = chapters()
        async with told_broker() as told:
            image = told.broker.metadata.image
            (known,) = await told.tell(registers)
            assert known.error_code == 0
            assert sorted(image.nodes) == [1, 2]

            answers = await told.tell(without_fetches(leads))
            (topic,) = answers[0].topics
            assert {(row.partition_index, row.error_code) for row in topic.partition_errors} == {(0, 0), (1, 0)}
            assert told.led == {("led", 0), ("led", 1)}
            assert image.topics["led"].id == topic.topic_id
            (fetched, *_) = await told.tell([row for row in leads if row[0] == "Fetch"][:1])
            assert fetched.error_code == 0
            assert fetched.session_id > 0
            (rows,) = fetched.responses
            assert {(row.partition_index, row.error_code, row.high_watermark) for row in rows.partitions} == {
                (0, 0, 0), (1, 0, 0),
            }  # fmt: skip

            await told.tell(without_fetches(follows))
            assert told.followed == {("following", 0): 1}
            await told.tell(without_fetches(grows))
            assert told.led == {("led", 0), ("led", 1), ("following", 1)}
            assert len(image.topics["following"].partitions) == 2

            answers = await told.tell(deletes[:2])
            assert answers[1].error_code == 0
            assert {(row.partition_index, row.error_code) for row in answers[1].partition_errors} == {(0, 0), (1, 0)}
            assert "led" not in image.topics
            assert told.led == {("following", 1)}
            assert told.broker.logs.directories.logs.keys() >= {("led", 0), ("led", 1)}
            await told.tell(deletes[2:])
            assert {name.topic for name in told.broker.logs.directories.logs} == {"following"}

            await told.tell(without_fetches(stops))
            assert told.led == {("following", 0), ("following", 1)}
            assert told.followed == {}

    run(story)


def test_a_stranger_commands_nobody(run: Callable[[Any], None]) -> None:
    """Over the clients' listener an order is no known request, and a replica's fetch is refused."""

    async def story() -> None:
        async with told_broker() as told:
            for name, _, request in [row for rows in chapters() for row in rows if row[0] != "Fetch"]:
                reader, writer = await told.open("CLIENTS")
                writer.write(struct.pack(">i", len(request)) + request)
                assert await reader.read() == b"", f"{name} ends the connection"
                writer.close()
            assert told.led == set()
            assert told.broker.metadata.image.topics == {}
            channel = await AsyncTcpChannel.open("127.0.0.1", told.ports["CLIENTS"], {})
            fetched = await channel.call(FetchRequest(1, replica_state=ReplicaState(1, -1)))
            assert fetched.error_code == 31
            channel.close()

    run(story)


def test_orders_of_a_deposed_controller_are_not_obeyed(run: Callable[[Any], None]) -> None:
    async def story() -> None:
        registers, leads, *_ = chapters()
        async with told_broker() as told:
            await told.tell(registers)
            newer = UpdateMetadataRequest(controller_id=7, controller_epoch=2, broker_epoch=99)
            told.broker.governance.admit(newer, RequestContext())
            answers = await told.tell(without_fetches(leads))
            assert [answer.error_code for answer in answers] == [11, 11]
            assert told.led == set()

    run(story)
