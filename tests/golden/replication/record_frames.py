"""Records what brokers of Apache Kafka 3.9.2 with ZooKeeper say to one another.

python tests/golden/replication/record_frames.py orders   what a controller orders of broker 2, and a follower fetches
                                                          there; it is a socket of this script that answers everything
                                                          with success
python tests/golden/replication/record_frames.py asked    what two brokers ask of one another, through proxies

`orders.txt` and `asked.txt` are such outputs. A line is a frame without its size: the broker that got
it, API, version, the request with its header in hex, the response in hex. Lines with # say what was done before.
"""

from __future__ import annotations

import asyncio
import json
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "bench"))

import apache_kafka
import server as bench_server
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from kazoo.client import KazooClient

NAMES = {
    1: "Fetch", 2: "ListOffsets", 4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata", 7: "ControlledShutdown",
    23: "OffsetForLeaderEpoch", 24: "AddPartitionsToTxn", 27: "WriteTxnMarkers", 56: "AlterPartition",
    67: "AllocateProducerIds",
}  # fmt: skip
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
WAIT_S = 60.0


class Record:
    """Lines, as many as are worth it of one kind."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._counts: dict[tuple[int, int, int], int] = {}
        self.lines: list[str] = []
        self.seen: dict[int, int] = {}
        """API → how many came."""

    def say(self, what: str) -> None:
        self.lines.append(f"# {what}")
        self._counts.clear()

    def note(self, target: int, request: bytes, response: bytes) -> None:
        key, version = struct.unpack_from(">hh", request)
        kind = (target, key, len(request) if key == 1 else 0)
        self._counts[kind] = self._counts.get(kind, 0) + 1
        self.seen[key] = self.seen.get(key, 0) + 1
        if key in NAMES and self._counts[kind] <= self._most:
            self.lines.append(f"{target} {NAMES[key]} {version} {request.hex()} {response.hex()}")


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

    def listen(self, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any], port: int) -> None:
        work = asyncio.start_server(serve, "127.0.0.1", port)
        asyncio.run_coroutine_threadsafe(work, self.loop).result()


def success(record: Record, node: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
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
                record.note(node, request, response)
                writer.write(framed(response))
        except asyncio.IncompleteReadError:
            pass
        writer.close()

    return serve


def proxy(record: Record, node: int, port: int) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]:
    """Hands everything on to a broker's port, and notes what brokers said."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        waiting: dict[int, bytes] = {}
        try:
            back, forth = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return

        async def there() -> None:
            while True:
                request = await frame(reader)
                waiting[struct.unpack_from(">i", request, 4)[0]] = request
                forth.write(framed(request))

        async def here() -> None:
            while True:
                response = await frame(back)
                request = waiting.pop(struct.unpack_from(">i", response)[0], None)
                if request is not None and is_brokers(request):
                    record.note(node, request, response)
                writer.write(framed(response))

        both = [asyncio.ensure_future(there()), asyncio.ensure_future(here())]
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for each in both:
            each.cancel()
        writer.close()
        forth.close()

    return serve


def is_brokers(request: bytes) -> bool:
    """Not a client's: only those call themselves by a name of this script."""
    size = struct.unpack_from(">h", request, 8)[0]
    return request[10 : 10 + max(size, 0)] != b"client" and struct.unpack_from(">h", request)[0] in NAMES


def until(ready: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not ready():
        if time.monotonic() > deadline:
            raise SystemExit(f"{what} did not happen in {WAIT_S:.0f} s")
        time.sleep(0.05)


def done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(WAIT_S)


@contextmanager
def zookeeper(folder: Path) -> Iterator[tuple[Any, KazooClient]]:
    apache_kafka.fetch(apache_kafka.jars_of(apache_kafka.OLDER), apache_kafka.artifacts_of(apache_kafka.OLDER))
    keeper = apache_kafka.ZooKeeperServer(folder / "zookeeper")
    keeper.prepare()
    keeper.start()
    client = KazooClient(keeper.bootstrap)
    client.start()
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


def orders(folder: Path) -> Record:
    """A Kafka broker is the controller; broker 2 is ours."""
    record, loop, port = Record(100), Loop(), bench_server.free_port()
    with zookeeper(folder) as (keeper, client):
        kafka = member(folder, 1, keeper)
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "client.id": "client"})
        try:
            loop.listen(success(record, 2), port)
            record.say(f"broker 2 registers, broker epoch {register(client, 2, port)}")
            until(lambda: record.seen.get(6, 0) > 0, "an UpdateMetadata")
            record.say("topic led is created: [2,1], [2,1]; broker 2 leads, and broker 1 follows it")
            done(admin.create_topics([NewTopic("led", 2, replica_assignment=[[2, 1], [2, 1]])]))
            until(lambda: record.seen.get(4, 0) > 0 and record.seen.get(1, 0) > 2, "a LeaderAndIsr and a Fetch")
            before = record.seen[4]
            record.say("topic following is created: [1,2]; broker 2 follows")
            done(admin.create_topics([NewTopic("following", 1, replica_assignment=[[1, 2]])]))
            until(lambda: record.seen[4] > before, "a LeaderAndIsr")
            before = record.seen[4]
            record.say("topic following gets a partition: [2,1]")
            done(admin.create_partitions([NewPartitions("following", 2, replica_assignment=[[2, 1]])]))
            until(lambda: record.seen[4] > before, "a LeaderAndIsr")
            record.say("topic led is deleted")
            done(admin.delete_topics(["led"]))
            until(lambda: record.seen.get(5, 0) >= 2, "two StopReplica")
            record.say("broker 1, the controller, stops")
        finally:
            kafka.stop()
    return record


def asked(folder: Path) -> Record:
    """Two Kafka brokers behind proxies."""
    record, loop = Record(3), Loop()
    with zookeeper(folder) as (keeper, client):
        doors = {node: bench_server.free_port() for node in (1, 2)}
        kafkas = {
            node: member(folder, node, keeper, advertised_listeners=f"PLAINTEXT://127.0.0.1:{doors[node]}")
            for node in (1, 2)
        }
        for node, port in doors.items():
            loop.listen(proxy(record, node, kafkas[node].port), port)
        try:
            record.say("brokers 1 and 2 start; 1 is the controller")
            kafkas[1].start()
            kafkas[2].start()
            until(lambda: len(client.get_children("/brokers/ids")) == 2, "both brokers")
            servers = ",".join(f"127.0.0.1:{port}" for port in doors.values())
            admin = AdminClient({"bootstrap.servers": servers, "client.id": "client"})
            record.say("topic t is created: [1,2], [2,1]; a transaction writes to both partitions")
            done(admin.create_topics([NewTopic("t", 2, replica_assignment=[[1, 2], [2, 1]])]))
            producer = Producer({"bootstrap.servers": servers, "client.id": "client", "transactional.id": "x"})
            producer.init_transactions(WAIT_S)
            producer.begin_transaction()
            for partition in (0, 1):
                producer.produce("t", b"value", partition=partition)
            producer.commit_transaction(WAIT_S)
            until(lambda: {24, 27, 67} <= record.seen.keys(), "verification, markers and producer ids")
            record.say("broker 2 stops, and starts again")
            kafkas[2].stop()
            kafkas[2].start()
            until(lambda: 56 in record.seen, "an AlterPartition")
        finally:
            for kafka in reversed(kafkas.values()):
                kafka.stop()
    return record


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        made = {"orders": orders, "asked": asked}[sys.argv[1]](Path(scratch))
    print(f"# Apache Kafka {apache_kafka.OLDER}, by record_frames.py {sys.argv[1]}")
    print("\n".join(made.lines))


if __name__ == "__main__":
    main()
