"""Hostile authentications at a broker of ours, in any number, and what they cost it.

    python tests/hostile_logins.py --count 1000000

starts a broker, and prints its memory before and after. Each attempt is a connection of its own: wrong passwords and
tokens, logins that end in the middle, other protocols, frames and tokens that are too large, requests before the login.
The tests take a smaller number."""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import itertools
import os
import random
import ssl
import struct
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path

from attrs import frozen

AT_ONCE = 100
ENDS_S = 180
"""How long an attempt may wait for the broker to answer or to leave, before the run fails."""
HANDSHAKE, AUTHENTICATE, METADATA = 17, 36, 3
MAX_RECEIVE_BYTES = 524_288
"""`sasl.server.max.receive.size` by default."""

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def request(api: int, version: int, body: bytes) -> bytes:
    """A request, with the header of version 1 and the client id "h"."""
    return framed(struct.pack(">hhih", api, version, 1, 1) + b"h" + body)


def handshake(mechanism: str) -> bytes:
    return request(HANDSHAKE, 1, struct.pack(">h", len(mechanism)) + mechanism.encode())


def authenticate(token: bytes) -> bytes:
    return request(AUTHENTICATE, 1, struct.pack(">i", len(token)) + token)


async def answer(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def log_in(streams: Streams, mechanism: str, *tokens: bytes) -> None:
    """Send each token behind the answer to the one before; the last one is refused."""
    reader, writer = streams
    writer.write(handshake(mechanism))
    assert (await answer(reader))[4:6] == b"\0\0", "the mechanism is there"
    for token in tokens:
        writer.write(authenticate(token))
        error = (await answer(reader))[4:6]
    assert error != b"\0\0", "nobody was let in"


async def send(streams: Streams, data: bytes, *, leave: bool = False) -> None:
    """Send it, and wait until the broker ends the connection, or leave at once."""
    reader, writer = streams
    writer.write(data)
    while not leave and await reader.read(65_536):
        pass


async def wrong_password(streams: Streams, draw: random.Random) -> None:
    await log_in(streams, "PLAIN", b"\0alice\0" + draw.randbytes(draw.randrange(1, 40)).hex().encode())


async def wrong_proof(streams: Streams, draw: random.Random) -> None:
    reader, writer = streams
    writer.write(handshake("SCRAM-SHA-256"))
    await answer(reader)
    writer.write(authenticate(b"n,,n=alice,r=hostile"))
    first = (await answer(reader)).partition(b"r=")[2].partition(b"\0")[0]
    nonce = first.partition(b",")[0]
    proof = base64.b64encode(draw.randbytes(32))
    writer.write(authenticate(b"c=biws,r=" + nonce + b",p=" + proof))
    assert (await answer(reader))[4:6] != b"\0\0"


async def unknown_user(streams: Streams, draw: random.Random) -> None:
    reader, writer = streams
    writer.write(handshake("SCRAM-SHA-512"))
    await answer(reader)
    writer.write(authenticate(b"n,,n=" + draw.randbytes(8).hex().encode() + b",r=hostile"))
    await reader.read(65_536)


async def wrong_token(streams: Streams, draw: random.Random) -> None:
    token = b".".join(base64.urlsafe_b64encode(draw.randbytes(60)) for _ in range(3))
    await log_in(streams, "OAUTHBEARER", b"n,,\x01auth=Bearer " + token + b"\x01\x01", b"\x01")


async def large_token(streams: Streams, draw: random.Random) -> None:
    size = MAX_RECEIVE_BYTES // 2
    await log_in(streams, "OAUTHBEARER", b"n,,\x01auth=Bearer " + b"A" * size + b"\x01\x01", b"\x01")


async def oversized_token(streams: Streams, draw: random.Random) -> None:
    await send(streams, handshake("PLAIN") + struct.pack(">i", MAX_RECEIVE_BYTES + 1) + draw.randbytes(2_000))


async def truncated_token(streams: Streams, draw: random.Random) -> None:
    await send(streams, handshake("PLAIN") + authenticate(b"\0alice\0" + bytes(400))[: draw.randrange(400)], leave=True)


async def half_a_login(streams: Streams, draw: random.Random) -> None:
    await send(streams, handshake("SCRAM-SHA-256") + authenticate(b"n,,n=alice,r=hostile"), leave=True)


async def unknown_mechanism(streams: Streams, draw: random.Random) -> None:
    await send(streams, handshake("X" * draw.randrange(1, 300)))


async def request_before_login(streams: Streams, draw: random.Random) -> None:
    await send(streams, request(METADATA, 1, struct.pack(">i", -1)))


async def other_protocol(streams: Streams, draw: random.Random) -> None:
    await send(
        streams, draw.choice((b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"SSH-2.0-x\r\n", b"\x16\x03\x01\x02\x00\x01"))
    )


async def noise(streams: Streams, draw: random.Random) -> None:
    await send(streams, b"\xff" + draw.randbytes(draw.randrange(4, 200)))


async def silence(streams: Streams, draw: random.Random) -> None:
    """Connect and leave."""


Attempt = Callable[[Streams, random.Random], Awaitable[None]]
ATTEMPTS: tuple[Attempt, ...] = (
    wrong_password, wrong_proof, unknown_user, wrong_token, oversized_token, truncated_token, half_a_login,
    unknown_mechanism, request_before_login, other_protocol, noise, silence,
)  # fmt: skip
RARE: tuple[Attempt, ...] = (large_token,)
"""One of these in a hundred: they are large."""


@frozen
class Target:
    """Listeners of SASL_PLAINTEXT and SASL_SSL, as (host, port)."""

    plain: tuple[str, int]
    tls: tuple[str, int]
    context: ssl.SSLContext

    async def connect(self, draw: random.Random) -> Streams:
        """To one of them; nineteen in twenty to the plain one."""
        if draw.random() < 0.95:
            return await asyncio.open_connection(*self.plain)
        return await asyncio.open_connection(*self.tls, ssl=self.context, server_hostname=self.tls[0])

    async def half_tls(self, draw: random.Random) -> None:
        """The beginning of a ClientHello, or none at all."""
        _, writer = await asyncio.open_connection(*self.tls)
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + draw.randbytes(64)
        writer.write(draw.choice((hello, hello[:5], b"GET / HTTP/1.1\r\n\r\n", draw.randbytes(100))))
        await _left(writer)


async def _left(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        await writer.wait_closed()


async def _attempt(target: Target, draw: random.Random) -> str:
    """One attempt; its kind. A connection that the broker ends is what is wanted."""
    if draw.random() < 0.05:
        await target.half_tls(draw)
        return "half_tls"
    kind = draw.choice(RARE if draw.random() < 0.01 else ATTEMPTS)
    try:
        streams = await target.connect(draw)
        try:
            await kind(streams, draw)
        finally:
            await _left(streams[1])
    except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError):
        pass
    return kind.__name__


async def attack(target: Target, count: int, seed: int = 0) -> Counter[str]:
    """Make `count` attempts, some at once. Return how many there were of each kind. Raises AssertionError where an
    attempt is let in, and TimeoutError where the broker leaves one alone."""
    seen: Counter[str] = Counter()
    numbers = itertools.count()

    async def attacker(own: int) -> None:
        draw = random.Random(seed * AT_ONCE + own)
        while next(numbers) < count:
            seen[await asyncio.wait_for(_attempt(target, draw), ENDS_S)] += 1

    async with asyncio.TaskGroup() as group:
        for own in range(AT_ONCE):
            group.create_task(attacker(own))
    return seen


def resident_mb(pid: int) -> float:
    """Memory of a process that is in RAM, in MiB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / (1 << 20)


def open_files(pid: int) -> int:
    return len(os.listdir(f"/proc/{pid}/fd"))


def main() -> None:
    parser = argparse.ArgumentParser(description="Attack a broker that this program starts.")
    parser.add_argument("--count", type=int, default=1_000_000, help="number of attempts")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    import secure_brokers
    from conftest import Broker

    with tempfile.TemporaryDirectory() as name:
        folder = secure_brokers.write_files(Path(name), "127.0.0.1")

        def start(*words: str, listen: str) -> Broker:
            return Broker(folder / "data", folder / "stderr.log", words, listen).start()

        broker = secure_brokers.start(start, folder, "SASL_PLAINTEXT", "SASL_SSL")
        try:
            target = target_of(broker.addresses, folder)
            asyncio.run(attack(target, min(2_000, arguments.count), arguments.seed + 1))
            before = resident_mb(broker.pid), open_files(broker.pid)
            seen = asyncio.run(attack(target, arguments.count, arguments.seed))
            after = resident_mb(broker.pid), open_files(broker.pid)
        finally:
            broker.end()
    for kind, number in sorted(seen.items()):
        print(f"{kind:22} {number:9}")
    print(f"memory {before[0]:.1f} MiB → {after[0]:.1f} MiB, open files {before[1]} → {after[1]}")


def target_of(addresses: list[str], files: Path) -> Target:
    """Of a broker with listeners of SASL_PLAINTEXT and SASL_SSL, in this order."""
    plain, tls = (one.rpartition(":") for one in addresses)
    context = ssl.create_default_context(cafile=str(files / "ca.pem"))
    return Target((plain[0], int(plain[2])), (tls[0], int(tls[2])), context)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parent))
    main()
