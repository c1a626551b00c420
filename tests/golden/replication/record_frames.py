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
import struct
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(TESTS), str(TESTS.parent / "bench")]

import apache_kafka  # noqa: E402
from confluent_kafka import Producer  # noqa: E402
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic  # noqa: E402
from kafka_with_zookeeper import WAIT_S, Loop, frame, framed, member, register, success, until, zookeeper  # noqa: E402
from server import free_port  # noqa: E402

NAMES = {
    1: "Fetch", 2: "ListOffsets", 4: "LeaderAndIsr", 5: "StopReplica", 6: "UpdateMetadata", 7: "ControlledShutdown",
    23: "OffsetForLeaderEpoch", 24: "AddPartitionsToTxn", 27: "WriteTxnMarkers", 56: "AlterPartition",
    67: "AllocateProducerIds",
}  # fmt: skip


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


def done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(WAIT_S)


def orders(folder: Path) -> Record:
    """A Kafka broker is the controller; broker 2 is ours."""
    record, loop, port = Record(100), Loop(), free_port()
    with zookeeper(folder) as (keeper, client):
        kafka = member(folder, 1, keeper)
        kafka.start()
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap, "client.id": "client"})
        try:
            loop.listen(success(record.note, 2), port)
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
        doors = {node: free_port() for node in (1, 2)}
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
