"""Records what Apache Kafka tells clients that authenticate out of turn:

    python tests/golden/sasl/record.py > kafka-4.3.1.txt

One KRaft node with two listeners of SASL_PLAINTEXT, as `sasl_cases.py` wants them.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "bench"), str(HERE)]

import apache_kafka  # noqa: E402
from sasl_cases import FAILURE_DELAY_MS, MECHANISMS, SESSION_MS, USERS, table  # noqa: E402
from server import free_port  # noqa: E402

import logkernel  # noqa: E402
from logkernel.client.admin.access import ScramUpsertion  # noqa: E402

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required"
LATE_S = FAILURE_DELAY_MS / 1000 * 0.7


class KafkaPeer:
    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.settimeout(15)
        self._sent_s = 0.0

    def send(self, frames: bytes) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendall(frames)
        self._sent_s = time.monotonic()

    def receive(self) -> tuple[bytes, bool] | None:
        try:
            head = self._socket.recv(4, socket.MSG_WAITALL)
            if len(head) < 4:
                return None
            body = self._socket.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
        except ConnectionError:
            return None
        return body, time.monotonic() - self._sent_s > LATE_S

    def passes(self, ms: int) -> None:
        time.sleep(ms / 1000)

    def is_open(self) -> bool:
        """Whether the broker says nothing for longer than it waits with the end of those that fail."""
        self._socket.settimeout(FAILURE_DELAY_MS / 1000 + 0.5)
        try:
            return self._socket.recv(1) != b""
        except TimeoutError:
            return True
        except ConnectionError:
            return False
        finally:
            self._socket.close()


def settings(ports: dict[str, int]) -> dict[str, str]:
    users = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
    found = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,ONCE:SASL_PLAINTEXT,"
        "AGAIN:SASL_PLAINTEXT",
        "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
        "advertised.listeners": ",".join(
            f"{name}://127.0.0.1:{port}" for name, port in ports.items() if name != "CONTROLLER"
        ),
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join(MECHANISMS),
        "connection.failed.authentication.delay.ms": str(FAILURE_DELAY_MS),
    }
    for name in ("once", "again"):
        found[f"listener.name.{name}.plain.sasl.jaas.config"] = f"{PLAIN} {users};"
        found[f"listener.name.{name}.scram-sha-256.sasl.jaas.config"] = f"{SCRAM};"
    for mechanism in MECHANISMS:
        found[f"listener.name.again.{mechanism.lower()}.connections.max.reauth.ms"] = str(SESSION_MS)
    return found


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch:
        server = apache_kafka.KafkaServer(Path(scratch))
        ports = {"PLAINTEXT": server.port, "CONTROLLER": server.controller_port, "ONCE": free_port()}
        ports["AGAIN"] = free_port()
        server.settings = settings(ports)
        server.prepare()
        server.start()
        try:
            with logkernel.connect(f"127.0.0.1:{server.port}") as log, log.admin() as admin:
                admin.alter_user_scram_credentials(ScramUpsertion("ann", USERS["ann"], MECHANISMS[1], 4096))
            for line in table(lambda listener: KafkaPeer(ports[listener.upper()])):
                print(line, flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
