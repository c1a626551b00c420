"""Clients whose token endpoint takes connections and says nothing: they are told which, and what limits the wait."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from secure_brokers import start, write_files

import logkernel
from logkernel import aio
from logkernel.errors import SaslAuthenticationFailed

LIMIT_MS = 60_000


@pytest.fixture
def endpoint() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        yield f"http://127.0.0.1:{silent.getsockname()[1]}/token"


def listed(address: str, settings: dict[str, Any]) -> None:
    with logkernel.connect(address, **settings) as log, log.admin(default_api_timeout_ms=LIMIT_MS) as admin:
        admin.list_topics()


def listed_on_a_loop(address: str, settings: dict[str, Any]) -> None:
    async def run() -> None:
        async with aio.connect(address, **settings) as log, log.admin(default_api_timeout_ms=LIMIT_MS) as admin:
            await admin.list_topics()

    asyncio.run(run())


@pytest.mark.timeout(LIMIT_MS / 1000 - 10)
@pytest.mark.parametrize("call", [listed, listed_on_a_loop])
@pytest.mark.parametrize("setup_ms", [10_000, 200], ids=["in time", "after the connection was given up"])
def test_a_token_endpoint_that_hangs_is_named(
    start_broker: Callable[..., Any], tmp_path: Path, endpoint: str, call: Callable[..., None], setup_ms: int
) -> None:
    broker = start(start_broker, write_files(tmp_path, "127.0.0.1"), "SASL_PLAINTEXT")
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": endpoint,
        "sasl.oauthbearer.client.credentials.client.id": "id",
        "sasl.oauthbearer.client.credentials.client.secret": f"{call.__name__}-{setup_ms}",
        "sasl.login.read.timeout.ms": 1_000,
        "sasl.login.retry.backoff.max.ms": 0,
        "socket.connection.setup.timeout.ms": setup_ms,
    }
    with pytest.raises(SaslAuthenticationFailed) as raised:
        call(broker.bootstrap, settings)
    text = str(raised.value)
    assert f"no token for OAUTHBEARER: {endpoint} did not answer within 1000 ms" in text
    assert text.endswith("or raise sasl.login.read.timeout.ms")
