"""The built-in transports keep the contract, on each kind of event loop."""

from __future__ import annotations

import asyncio

import pytest

from logkernel.testing.contracts import TransportContract


class TestMemory(TransportContract):
    name = "memory"


class TestTcp(TransportContract):
    name = "tcp"


class TestTcpOnUvloop(TransportContract):
    name = "tcp"

    @staticmethod
    def new_loop() -> asyncio.AbstractEventLoop:
        loop: asyncio.AbstractEventLoop = pytest.importorskip("uvloop").new_event_loop()
        return loop
