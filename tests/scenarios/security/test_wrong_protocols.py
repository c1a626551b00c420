"""Clients of each `security.protocol` at listeners of each other one: each is told what to set, and in time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import cycle, permutations
from pathlib import Path
from typing import Any

import pytest
from secure_brokers import PASSWORD, start, write_files

import logkernel
from logkernel import aio
from logkernel.errors import LogkernelError, RequestTimedOut

PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
NO_TLS = "use the port of one with TLS, or set security.protocol to "
NO_SASL = "has no SASL; use the port of one that has it, or set security.protocol to "
WANTED = {
    ("PLAINTEXT", "SSL"): "set security.protocol to SSL, or SASL_SSL",
    ("PLAINTEXT", "SASL_PLAINTEXT"): "set security.protocol to SASL_PLAINTEXT, and sasl.mechanism",
    ("PLAINTEXT", "SASL_SSL"): "set security.protocol to SSL, or SASL_SSL",
    ("SSL", "PLAINTEXT"): f"{NO_TLS}PLAINTEXT",
    ("SSL", "SASL_PLAINTEXT"): f"{NO_TLS}PLAINTEXT",
    ("SSL", "SASL_SSL"): "set security.protocol to SASL_SSL, and sasl.mechanism",
    ("SASL_PLAINTEXT", "PLAINTEXT"): f"{NO_SASL}PLAINTEXT",
    ("SASL_PLAINTEXT", "SSL"): "set security.protocol to SASL_SSL",
    ("SASL_PLAINTEXT", "SASL_SSL"): "set security.protocol to SASL_SSL",
    ("SASL_SSL", "PLAINTEXT"): f"{NO_TLS}SASL_PLAINTEXT",
    ("SASL_SSL", "SSL"): f"{NO_SASL}SSL",
    ("SASL_SSL", "SASL_PLAINTEXT"): f"{NO_TLS}SASL_PLAINTEXT",
}  # fmt: skip
"""(the client's, the listener's) → what the client is told."""
LIMITS_MS = (600, 6_000, 60_000)
"""Of a call; the next one where a slow machine has not had an answer of the broker in time."""


def settings(protocol: str, files: Path) -> dict[str, str]:
    found = {"security.protocol": protocol}
    if protocol.endswith("SSL"):
        found["ssl.ca.location"] = str(files / "ca.pem")
    if protocol.startswith("SASL"):
        found |= {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": PASSWORD}
    return found


def listed(address: str, given: dict[str, str], limit_ms: int) -> None:
    with logkernel.connect(address, **given) as log, log.admin(default_api_timeout_ms=limit_ms) as admin:
        admin.list_topics()


def sent(address: str, given: dict[str, str], limit_ms: int) -> None:
    with logkernel.connect(address, **given) as log, log.producer(max_block_ms=limit_ms) as producer:
        producer.send("topic", b"record")


def sent_on_a_loop(address: str, given: dict[str, str], limit_ms: int) -> None:
    async def send() -> None:
        async with aio.connect(address, **given) as log, log.producer(max_block_ms=limit_ms) as producer:
            await producer.send("topic", b"record")

    asyncio.run(send())


def committed(address: str, given: dict[str, str], limit_ms: int) -> None:
    with (
        logkernel.connect(address, **given) as log,
        log.consumer(group="group", default_api_timeout_ms=limit_ms) as consumer,
    ):
        consumer.committed([("topic", 0)])


def test_a_client_is_told_what_to_set(
    start_broker: Callable[..., Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    files = write_files(tmp_path, "127.0.0.1")
    broker = start(start_broker, files, *PROTOCOLS)
    addresses = dict(zip(PROTOCOLS, broker.addresses, strict=True))
    others = cycle((sent, sent_on_a_loop, committed))
    for ours, theirs in permutations(PROTOCOLS, 2):
        wanted = WANTED[ours, theirs]
        for call in (listed, next(others)):
            is_fatal = "has no SASL" in wanted
            for limit_ms in LIMITS_MS:
                caplog.clear()
                with pytest.raises(LogkernelError) as raised:
                    call(addresses[theirs], settings(ours, files), limit_ms)
                text = str(raised.value)
                warned = [row.getMessage() for row in caplog.records if "no broker has answered" in row.getMessage()]
                if wanted in text and (is_fatal or warned):
                    break
            assert wanted in text, (ours, theirs, call.__name__)
            assert addresses[theirs] in text, (ours, theirs, call.__name__)
            assert isinstance(raised.value, RequestTimedOut) != is_fatal, (ours, theirs, call.__name__)
            assert len(warned) == (not is_fatal), (ours, theirs, call.__name__)
            assert all(wanted in line for line in warned)
    for protocol in PROTOCOLS:
        listed(addresses[protocol], settings(protocol, files), LIMITS_MS[-1])
