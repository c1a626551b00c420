"""What TLS and SASL cost a broker, ours beside Apache Kafka's: python bench/secured.py

Both brokers have the same listeners, key and users. Prints CPU seconds of the broker for each GB of record values over
PLAINTEXT and over TLS, SCRAM logins for each CPU second of the broker, and how long a record waits for its
acknowledgement while another client logs in without a pause.
"""

from __future__ import annotations

import argparse
import functools
import hashlib
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import clients
import process
from apache_kafka import KafkaServer
from confluent_kafka.admin import AdminClient, ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion
from ours import LogkernelServer
from server import Server, free_port
from table import Table

from logkernel.security.development import obtain

GB = 1e9
USER, PASSWORD, MECHANISM = "bench", "bench-password", "SCRAM-SHA-256"
PROTOCOLS = {"PLAINTEXT": "PLAINTEXT", "TLS": "SSL", "SCRAM": "SASL_PLAINTEXT"}
LOGINS = 2000
WARM_ROUNDS = 3
"""Before what counts: a JVM compiles what is hot."""


def secured(make: type[Server], folder: Path) -> Secured:
    """A broker that is prepared, with a port for each of `PROTOCOLS`."""
    folder.mkdir(parents=True)
    made = obtain(folder)
    server = make(folder)
    ports = {"PLAINTEXT": server.port, "TLS": free_port(), "SCRAM": free_port()}
    given = [f"{name}://127.0.0.1:{port}" for name, port in ports.items()]
    own = {"CONTROLLER": server.controller_port} if isinstance(server, KafkaServer) else {}
    protocols = [f"{name}:{protocol}" for name, protocol in {**PROTOCOLS, **dict.fromkeys(own, "PLAINTEXT")}.items()]
    server.settings.update(
        {
            "listeners": ",".join([*given, *(f"{name}://127.0.0.1:{port}" for name, port in own.items())]),
            "advertised.listeners": ",".join(given),
            "listener.security.protocol.map": ",".join(protocols),
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(made.broker),
            "listener.name.scram.sasl.enabled.mechanisms": MECHANISM,
        }
    )
    if isinstance(server, KafkaServer):
        server.settings["listener.name.scram.scram-sha-256.sasl.jaas.config"] = (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        )
    server.prepare()
    return Secured(server, ports, {"security.protocol": "ssl", "ssl.ca.location": str(made.ca)})


class Secured:
    """A broker with three listeners, and what a client over TLS sets."""

    def __init__(self, server: Server, ports: dict[str, int], tls: dict[str, Any]) -> None:
        self.server, self.ports = server, ports
        self.by_protocol: dict[str, dict[str, Any]] = {"PLAINTEXT": {}, "TLS": tls}

    def address(self, listener: str) -> str:
        return f"127.0.0.1:{self.ports[listener]}"

    def start(self) -> None:
        self.server.start()
        upsert = UserScramCredentialUpsertion(
            USER, ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096), PASSWORD.encode()
        )
        admin = AdminClient({"bootstrap.servers": self.address("PLAINTEXT")})
        for found in admin.alter_user_scram_credentials([upsert]).values():
            found.result(60)
        clients.create_topic(self.address("PLAINTEXT"), "t", 1)
        clients.create_topic(self.address("PLAINTEXT"), "latency", 1)

    def spent(self, act: Callable[[], Any]) -> float:
        """CPU seconds of the broker while `act` runs."""
        before = process.cpu_s(self.server.pid)
        act()
        return process.cpu_s(self.server.pid) - before


def log_in(port: int, count: int) -> None:
    """Connect and log in so many times, or without an end for 0. The key is derived once: it is the client's cost."""
    from logkernel.plugins.transport.tcp.channel import TcpChannel

    hashlib.pbkdf2_hmac = functools.cache(hashlib.pbkdf2_hmac)
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": MECHANISM,
        "sasl.username": USER,
        "sasl.password": PASSWORD,
    }
    print("ready", flush=True)
    done = 0
    while not count or done < count:
        TcpChannel("127.0.0.1", port, settings).close()
        done += 1


def logging_in(broker: Secured, count: int) -> subprocess.Popen[bytes]:
    """A client process that logs in; it has begun."""
    command = [sys.executable, __file__, "--log-in", str(broker.ports["SCRAM"]), "--count", str(count)]
    client = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert client.stdout is not None
    client.stdout.readline()
    return client


def measured(broker: Secured, megabytes: int) -> dict[str, float]:
    found: dict[str, float] = {}
    count = megabytes * 1000
    for listener, settings in broker.by_protocol.items():
        address = broker.address(listener)
        for act, call in (("produce", clients.produce), ("consume", clients.consume)):
            last = (1000, count, settings) if act == "produce" else (count, settings)
            spent = broker.spent(functools.partial(call, address, "t", 1, *last))
            found[f"{act} 1000 B, {listener}, broker CPU"] = spent / (count * 1000 / GB)
    spent = broker.spent(lambda: logging_in(broker, LOGINS).wait())
    found["SCRAM logins for a CPU second"] = LOGINS / spent
    found["latency acks=all, p99"] = latency_ms(broker)
    client = logging_in(broker, 0)
    found["latency acks=all, p99, beside logins"] = latency_ms(broker)
    client.kill()
    client.wait()
    return found


def latency_ms(broker: Secured) -> float:
    """The 99th percentile of 300 records a second."""
    found = clients.paced_latencies_ms(broker.address("PLAINTEXT"), "latency", 1, rate=300, count=3000, size=100)
    return statistics.quantiles(found, n=100)[98]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each measure; the median counts (default 5)")
    parser.add_argument("--mb", type=int, default=300, help="megabytes of record values a run (default 300)")
    parser.add_argument("--log-in", type=int, metavar="PORT", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=0, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.log_in:
        log_in(options.log_in, options.count)
        return
    table = Table(["logkernel", "kafka"])
    with tempfile.TemporaryDirectory(prefix="logkernel-bench-") as folder:
        brokers = {
            "logkernel": secured(LogkernelServer, Path(folder) / "logkernel"),
            "kafka": secured(KafkaServer, Path(folder) / "kafka"),
        }
        try:
            for broker in brokers.values():
                broker.start()
                for _ in range(WARM_ROUNDS):
                    measured(broker, options.mb)
            for run in range(options.runs):
                for name, broker in brokers.items():
                    samples = measured(broker, options.mb)
                    table.add(name, samples)
                    print(f"# {run + 1}/{options.runs} {name}: {samples}", file=sys.stderr, flush=True)
        finally:
            for broker in brokers.values():
                broker.server.stop()
    print(table.text())


if __name__ == "__main__":
    main()
