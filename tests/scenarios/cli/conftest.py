"""Every command against a broker in this process, as a user types it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import logkernel

sys.path.insert(0, str(Path(__file__).parent))

from shells import Shell


@pytest.fixture
def shell(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    settings = {"group_initial_rebalance_delay_ms": 0, "transaction_partition_verification_enable": False}
    with logkernel.open(**settings) as log:
        address = log.listen()
        monkeypatch.setenv("LOGKERNEL_BOOTSTRAP", address)
        yield Shell(log, address, capfdbinary, monkeypatch)
