"""Noise at the port: the broker hangs up or answers an error, logs no traceback, and serves the others all along."""

from __future__ import annotations

import contextlib
import random
import socket
import struct
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.interop
SEED = 20240611
MEMORY_ROOM_KIB = 64 * 1024
PATIENT_S = 60


def api_versions(correlation: int = 1) -> bytes:
    body = struct.pack(">hhih", 18, 0, correlation, 5) + b"noise"
    return struct.pack(">i", len(body)) + body


def still_serves(address: tuple[str, int]) -> None:
    """A newcomer gets an ordered answer to each of two pipelined requests."""
    with socket.create_connection(address, PATIENT_S) as link:
        link.sendall(api_versions(7) + api_versions(8))
        for correlation in (7, 8):
            size = struct.unpack(">i", link.recv(4, socket.MSG_WAITALL))[0]
            body = link.recv(size, socket.MSG_WAITALL)
            assert struct.unpack(">ih", body[:6]) == (correlation, 0)


def throw(address: tuple[str, int], data: bytes) -> bytes:
    """Send `data`, close our half, and read whatever comes until the broker hangs up."""
    with socket.create_connection(address, PATIENT_S) as link:
        answer = b""
        with contextlib.suppress(ConnectionError, BrokenPipeError):
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
            while chunk := link.recv(65536):
                answer += chunk
        return answer


def resident_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))


FOREIGN = {
    "tls": bytes.fromhex("16030100c8010000c40303") + b"\x5a" * 190,
    "http": b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "negative size": struct.pack(">i", -5) + b"hello",
    "zero size": struct.pack(">i", 0),
    "oversized": struct.pack(">i", 2**31 - 1) + b"x" * 100,
    "cut off": api_versions()[:-3],
    "header alone": struct.pack(">ihhi", 8, 0, 9, 1),
    "unknown api": struct.pack(">ihhih", 10, 9999, 0, 1, 0),
    "unknown version": struct.pack(">ihhih", 10, 3, 999, 1, 0),
    "random": random.Random(SEED).randbytes(4096),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_foreign_talk_is_hung_up_on(kind: str, start_broker: Any) -> None:
    broker = start_broker()
    throw(broker.address, FOREIGN[kind])
    still_serves(broker.address)
    assert broker.running
    assert "Traceback" not in broker.log()


@pytest.mark.parametrize("kind", ["tls", "http"])
def test_the_log_names_the_wrong_protocol(kind: str, start_broker: Any) -> None:
    broker = start_broker()
    throw(broker.address, FOREIGN[kind])
    still_serves(broker.address)
    assert broker.terminate() == 0
    assert kind.upper() in broker.log().upper()


def test_an_unknown_version_of_api_versions_is_answered_in_its_first_form(broker_session: Any) -> None:
    with socket.create_connection(broker_session.address, PATIENT_S) as link:
        body = struct.pack(">hhih", 18, 99, 3, 0) + b"\x00" + b"\x01\x01\x00"
        link.sendall(struct.pack(">i", len(body)) + body)
        size = struct.unpack(">i", link.recv(4, socket.MSG_WAITALL))[0]
        answer = link.recv(size, socket.MSG_WAITALL)
    correlation, error, count = struct.unpack(">ihi", answer[:10])
    assert (correlation, error) == (3, 35)
    listed = [struct.unpack_from(">hhh", answer, 10 + 6 * index) for index in range(count)]
    assert 18 in {key for key, _, _ in listed}  # so that the client can ask again


def requests_of_a_real_client(broker: Any, topic: str) -> list[bytes]:
    """The frames that librdkafka sends while it produces: recorded by a proxy of one connection each."""
    import selectors
    import threading

    from confluent_kafka import Producer

    frames: list[bytes] = []
    done = threading.Event()
    door = socket.create_server(("127.0.0.1", 0))

    def pump() -> None:
        picker = selectors.DefaultSelector()
        picker.register(door, selectors.EVENT_READ, None)
        pending: dict[socket.socket, bytearray] = {}
        while not done.is_set():
            for key, _ in picker.select(0.1):
                if key.fileobj is door:
                    near, _ = door.accept()
                    far = socket.create_connection(broker.address)
                    pending[near] = bytearray()
                    picker.register(near, selectors.EVENT_READ, (near, far))
                    picker.register(far, selectors.EVENT_READ, (near, far))
                    continue
                near, far = key.data
                source = key.fileobj
                with contextlib.suppress(OSError):
                    data = source.recv(65536)  # type: ignore[union-attr]
                    if data:
                        (far if source is near else near).sendall(data)
                        if source is near:
                            take(pending[near], data, frames)
                        continue
                for end in (near, far):
                    with contextlib.suppress(KeyError, ValueError):
                        picker.unregister(end)
                    end.close()
        for key in list(picker.get_map().values()):
            key.fileobj.close()  # type: ignore[union-attr]
        picker.close()

    thread = threading.Thread(target=pump)
    thread.start()
    try:
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{door.getsockname()[1]}", "compression.type": "lz4"})
        for number in range(50):
            producer.produce(topic, b"value %d" % number, b"key")
        assert producer.flush(PATIENT_S) == 0
    finally:
        done.set()
        thread.join()
    return frames


def take(buffer: bytearray, data: bytes, frames: list[bytes]) -> None:
    """Cut whole frames off the front of `buffer + data`."""
    buffer += data
    while len(buffer) >= 4:
        size = 4 + struct.unpack_from(">i", buffer)[0]
        if len(buffer) < size:
            return
        frames.append(bytes(buffer[:size]))
        del buffer[:size]


def test_flipped_bits_and_cut_frames(start_broker: Any, topic: str, make_topic: Any, clients: Any, sample: Any) -> None:
    """Valid requests with one to eight flipped bits or a lost end, all behind a right length field."""
    broker = start_broker()
    make_topic(broker.bootstrap, topic)
    # One of each kind, so that the chance does not depend on how often a client asks.
    frames = list({frame[4:8]: frame for frame in [*requests_of_a_real_client(broker, topic), api_versions()]}.values())
    assert len(frames) >= 3
    # One that ends within a field is certain, and first: the log counts what comes after a host's first twenty.
    cut = api_versions()[4:13]
    throw(broker.address, struct.pack(">i", len(cut)) + cut)
    assert "it ends within a field" in broker.log()
    chance = random.Random(SEED)
    before_kib = resident_kib(broker.pid)
    for _ in range(400):
        body = bytearray(chance.choice(frames)[4:])
        for _ in range(chance.randint(1, 8)):
            body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
        if chance.random() < 0.3:
            del body[chance.randrange(1, len(body)) :]
        throw(broker.address, struct.pack(">i", len(body)) + body)
    still_serves(broker.address)
    assert resident_kib(broker.pid) - before_kib < MEMORY_ROOM_KIB
    assert "Traceback" not in broker.log()
    assert "unpack" not in broker.log(), "words of the interpreter, not of the protocol"
    make_topic(broker.bootstrap, f"{topic}-after")
    clients["confluent-kafka"].produce(broker.bootstrap, f"{topic}-after", sample)
    assert len(clients["aiokafka"].consume(broker.bootstrap, f"{topic}-after", len(sample))) == len(sample)


def test_sizes_that_are_promised_but_never_sent_take_no_memory(start_broker: Any) -> None:
    broker = start_broker()
    still_serves(broker.address)
    before_kib = resident_kib(broker.pid)
    links = [socket.create_connection(broker.address, PATIENT_S) for _ in range(50)]
    for link in links:
        link.sendall(struct.pack(">i", 50_000_000) + b"\x00\x00\x00\x09")
    still_serves(broker.address)
    assert resident_kib(broker.pid) - before_kib < MEMORY_ROOM_KIB
    for link in links:
        link.close()
