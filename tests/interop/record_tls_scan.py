"""Write kafka-4.3.1-tls-scan.json: what sslyze finds at TLS listeners of Apache Kafka with its defaults, one with a key
of RSA and one of ECDSA. `python tests/interop/record_tls_scan.py`, with a JDK and Maven."""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1] / "bench")]

import apache_kafka  # noqa: E402
from authorities import authority  # noqa: E402
from secure_brokers import pkcs8  # noqa: E402
from server import free_port  # noqa: E402
from tls_scans import scan  # noqa: E402
from trustme import KeyType  # noqa: E402

KINDS = ("ECDSA", "RSA")


def record(folder: Path) -> None:
    server = apache_kafka.KafkaServer(folder / "kafka")
    at = {kind: f"localhost:{free_port()}" for kind in KINDS}
    listeners = ",".join(f"{kind}://{address}" for kind, address in at.items())
    server.settings |= {
        "listeners": f"PLAINTEXT://{server.bootstrap},CONTROLLER://127.0.0.1:{server.controller_port},{listeners}",
        "advertised.listeners": f"PLAINTEXT://{server.bootstrap},{listeners}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,ECDSA:SSL,RSA:SSL",
    }
    for kind in KINDS:
        issued = authority("ours").issue_cert("localhost", key_type=KeyType[kind])
        keystore = folder / f"{kind}.pem"
        keystore.write_bytes(pkcs8(issued.private_key_pem.bytes()) + issued.cert_chain_pems[0].bytes())
        name = f"listener.name.{kind.lower()}.ssl.keystore"
        server.settings |= {f"{name}.type": "PEM", f"{name}.location": str(keystore)}
    server.prepare()
    server.start()
    try:
        found = scan(*at.values())
    finally:
        server.stop()
    text = json.dumps({kind: found[address] for kind, address in at.items()}, indent=1)
    (HERE / "kafka-4.3.1-tls-scan.json").write_text(f"{text}\n")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        record(Path(name))
