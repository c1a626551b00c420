"""A scanner finds nothing at a TLS listener of ours that it does not find at Apache Kafka's, each by its defaults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from authorities import authority
from secure_brokers import pkcs8
from tls_scans import allows_more, scan
from trustme import KeyType

pytestmark = pytest.mark.interop
KAFKAS = Path(__file__).with_name("kafka-4.3.1-tls-scan.json")
"""Of a listener with a key of this kind, by `record_tls_scan.py`."""


@pytest.mark.timeout(600)
def test_a_scanner_finds_no_more_than_at_kafka(start_broker: Callable[..., Any], tmp_path: Path) -> None:
    kafkas = json.loads(KAFKAS.read_text())
    for kind in kafkas:
        issued = authority("ours").issue_cert("localhost", key_type=KeyType[kind])
        keystore = tmp_path / f"{kind}.pem"
        keystore.write_bytes(pkcs8(issued.private_key_pem.bytes()) + issued.cert_chain_pems[0].bytes())
    words = [f"listener.security.protocol.map={','.join(f'{kind}:SSL' for kind in kafkas)}", "ssl.keystore.type=PEM"]
    words += [f"listener.name.{kind.lower()}.ssl.keystore.location={tmp_path / kind}.pem" for kind in kafkas]
    listen = ",".join(f"{kind}://localhost:0" for kind in kafkas)
    broker = start_broker(*(word for each in words for word in ("--set", each)), listen=listen)
    at = dict(zip(kafkas, broker.addresses, strict=True))
    ours = scan(*at.values())
    for kind, address in at.items():
        assert ours[address]["suites"]["tls_1_3"], "the scanner got in"
        assert ours[address]["suites"]["tls_1_2"]
        assert not allows_more(ours[address], kafkas[kind]), kind
