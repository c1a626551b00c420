"""Prints what a running Apache Kafka answers to cases, for the `record.py` beside them; bench/ has to be importable."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import apache_kafka

from logkernel.plugins.transport.tcp.channel import TcpChannel

SETTLES_S = 1.0
"""What one part of a broker tells, another may not have heard of yet."""
Table = Callable[[Callable[[Any], Any], Callable[[Callable[[], bool]], None]], Iterable[str]]
"""Takes what asks for one answer, and what repeats a step until it is done; gives the lines of the cases."""


def retried(step: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not step():
        assert time.monotonic() < deadline_s
        time.sleep(0.2)
    time.sleep(SETTLES_S)


def record(*tables: Table) -> None:
    """Each of them, by one Kafka."""
    with tempfile.TemporaryDirectory() as scratch:
        server = apache_kafka.KafkaServer(Path(scratch))
        server.prepare()
        server.start()
        try:
            with TcpChannel("127.0.0.1", server.port, {}) as channel:
                for table in tables:
                    for line in table(channel.call, retried):
                        print(line)
        finally:
            server.stop()
