"""A broker under hostile authentications by the thousand: it lets nobody in, keeps nothing of them, and serves on."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import secure_brokers
from hostile_logins import ATTEMPTS, RARE, attack, open_files, resident_mb, target_of
from secure_clients import confluent

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="a process's memory and files are read from /proc"),
]
COUNT = int(os.environ.get("LOGKERNEL_HOSTILE_LOGINS", "12000"))
WARM = 2_000
"""Attempts before memory is measured: what the broker loads for them, it keeps."""
MORE_MB = 8
"""Less than a KiB for each of 10,000 attempts."""
MORE_FILES = 50
"""Connections of the last attempts may not have ended yet."""


@pytest.mark.timeout(3_600)
def test_hostile_logins_leave_a_broker_serving_and_small(start_broker: Callable[..., Any], tmp_path: Path) -> None:
    files = secure_brokers.write_files(tmp_path, "127.0.0.1")
    broker = secure_brokers.start(start_broker, files, "SASL_PLAINTEXT", "SASL_SSL")
    target = target_of(broker.addresses, files)
    asyncio.run(attack(target, WARM, seed=1))
    memory_mb, files_open = resident_mb(broker.pid), open_files(broker.pid)
    seen = asyncio.run(attack(target, COUNT - WARM))
    assert set(seen) == {kind.__name__ for kind in (*ATTEMPTS, *RARE)} | {"half_tls"}
    assert sum(seen.values()) == COUNT - WARM
    assert resident_mb(broker.pid) < memory_mb + MORE_MB
    assert open_files(broker.pid) < files_open + MORE_FILES
    alice = secure_brokers.login("SASL_SSL", "SCRAM-SHA-256", files)
    assert confluent(broker.addresses[1], alice, "t") == [b"one", b"two"]
