"""What a client's channel withholds, tells, and how its socket is tuned."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.channel import _tune
from logkernel.plugins.transport.tcp.client import ClientConnection
from logkernel.requests.api_versions import ApiVersionsResponse, FinalizedFeatureKey
from logkernel.requests.data import ProduceRequest
from logkernel.requests.transactions import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTransaction,
    EndTxnRequest,
    TxnOffsetCommitRequest,
)

V2 = frozenset({"transactions_v2"})


def connection() -> ClientConnection:
    made = ClientConnection("me")
    made._versions = {row.key: (row.min_version, row.max_version) for row in registry.ROWS}
    return made


@pytest.mark.parametrize(
    ("request_", "withheld", "version"),
    [
        (ProduceRequest(), frozenset(), 13),
        (ProduceRequest(), V2, 11),
        (EndTxnRequest(), frozenset(), 5),
        (EndTxnRequest(), V2, 4),
        (TxnOffsetCommitRequest(), V2, 4),
        (AddPartitionsToTxnRequest(), frozenset(), 3),
        (AddPartitionsToTxnRequest([AddPartitionsToTxnTransaction()]), frozenset(), 5),
    ],
)
def test_the_version_that_is_taken(request_: Any, withheld: frozenset[str], version: int) -> None:
    api = registry.load(registry.BY_REQUEST[type(request_).__name__].key)
    assert connection().version_for(api, request_, withheld) == version


def test_the_finalized_features() -> None:
    made = connection()
    made.peer = ApiVersionsResponse(finalized_features=[FinalizedFeatureKey("transaction.version", 2, 0)])
    assert made.features == {"transaction.version": 2}


def test_buffers_are_as_asked_for() -> None:
    with socket.socket() as plain, socket.socket() as tuned:
        _tune(plain, {"send.buffer.bytes": -1, "receive.buffer.bytes": -1})
        _tune(tuned, {"send.buffer.bytes": 9000, "receive.buffer.bytes": 8000})
        for option, asked in ((socket.SO_SNDBUF, 9000), (socket.SO_RCVBUF, 8000)):
            assert tuned.getsockopt(socket.SOL_SOCKET, option) in (asked, 2 * asked)  # Linux doubles it
            assert plain.getsockopt(socket.SOL_SOCKET, option) not in (asked, 2 * asked)
        assert tuned.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
