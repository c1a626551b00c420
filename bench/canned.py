"""A producer that costs next to nothing: it encodes its requests once, and sends them again and again.

So what a broker does is not hidden behind its client. One thread, one connection a broker, `IN_FLIGHT` requests under
way on each, a batch of about `BATCH_BYTES` a request, acks=all, no idempotence.
"""

from __future__ import annotations

import selectors
import socket
import struct
import time
from dataclasses import dataclass, field

import clients
from confluent_kafka.admin import AdminClient

from logkernel.record.encode import encode_batch
from logkernel.vocabulary import Record

BATCH_BYTES = 100_000
IN_FLIGHT = 5
ANSWER_ROOM = 1 << 16
NO_ERROR = 0
READ_WRITE = selectors.EVENT_READ | selectors.EVENT_WRITE


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()


def _request(topic: str, partition: int, batch: bytes) -> bytes:
    """Produce v7 of one batch."""
    head = struct.pack(">hhi", 0, 7, 0) + _text("canned")
    body = struct.pack(">hhi", -1, -1, 30_000) + struct.pack(">i", 1) + _text(topic)
    body += struct.pack(">iii", 1, partition, len(batch)) + batch
    return struct.pack(">i", len(head) + len(body)) + head + body


@dataclass
class _Link:
    """To one broker."""

    sock: socket.socket
    requests: list[bytes] = field(default_factory=list)
    """One for each of its partitions."""
    left: list[int] = field(default_factory=list)
    """How often each is still to be sent."""
    turn: int = 0
    under_way: int = 0
    output: memoryview = field(default_factory=lambda: memoryview(b""))
    input: bytearray = field(default_factory=bytearray)

    @property
    def done(self) -> bool:
        return not self.under_way and not any(self.left)

    def send(self) -> None:
        while True:
            if not self.output:
                if self.under_way == IN_FLIGHT or not any(self.left):
                    return
                while not self.left[self.turn]:
                    self.turn = (self.turn + 1) % len(self.requests)
                self.left[self.turn] -= 1
                self.under_way += 1
                self.output = memoryview(self.requests[self.turn])
                self.turn = (self.turn + 1) % len(self.requests)
            try:
                self.output = self.output[self.sock.send(self.output) :]
            except BlockingIOError:
                return

    def receive(self) -> None:
        data = self.sock.recv(ANSWER_ROOM)
        if not data:
            raise ConnectionError("the broker closed the connection")
        self.input += data
        while len(self.input) >= 4 and len(self.input) >= 4 + (size := struct.unpack_from(">i", self.input)[0]):
            topic_bytes = struct.unpack_from(">h", self.input, 12)[0]
            error = struct.unpack_from(">h", self.input, 14 + topic_bytes + 8)[0]
            if error != NO_ERROR:
                raise RuntimeError(f"a record was refused with {error}")
            del self.input[: 4 + size]
            self.under_way -= 1


def _links(bootstrap: str, topic: str) -> dict[int, tuple[_Link, list[int]]]:
    """Node → its connection, and the partitions that it leads."""
    found = AdminClient({"bootstrap.servers": bootstrap}).list_topics(topic, timeout=30)
    links: dict[int, tuple[_Link, list[int]]] = {}
    for number, partition in found.topics[topic].partitions.items():
        if partition.leader not in links:
            broker = found.brokers[partition.leader]
            sock = socket.create_connection((broker.host, broker.port), 10)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setblocking(False)
            links[partition.leader] = _Link(sock), []
        links[partition.leader][1].append(number)
    return links


def produce(bootstrap: str, topic: str, partitions: int, size: int, count: int) -> float:
    """Seconds until `count` records, or a few more, are acknowledged."""
    values = clients.payloads(size)
    records = max(1, BATCH_BYTES // size)
    now_ms = int(time.time() * 1000)
    batch = encode_batch(
        [Record(key=None, value=values[number % len(values)], timestamp_ms=now_ms) for number in range(records)]
    )
    times = -(-count // records // partitions)
    links = []
    for link, numbers in _links(bootstrap, topic).values():
        link.requests = [_request(topic, number, batch) for number in numbers]
        link.left = [times] * len(numbers)
        links.append(link)
    begun = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        for link in links:
            selector.register(link.sock, READ_WRITE, link)
        while not all(link.done for link in links):
            for key, events in selector.select():
                link = key.data
                if events & selectors.EVENT_READ:
                    link.receive()
                link.send()
                wanted = READ_WRITE if link.output else selectors.EVENT_READ
                if wanted != key.events:
                    selector.modify(link.sock, wanted, link)
    seconds = time.perf_counter() - begun
    for link in links:
        link.sock.close()
    return seconds
