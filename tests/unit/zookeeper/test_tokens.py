"""Delegation tokens as Kafka 3.9 writes them into ZooKeeper."""

from __future__ import annotations

import json
from typing import Any

import pytest

from logkernel.contracts import MetadataChange
from logkernel.errors import CorruptMessage, InvalidRequest
from logkernel.plugins.transport.zookeeper import tokens

KAFKAS = (
    b'{"owner":"User%3Aann","tokenId":"xJnG8ZqzRfm8ymPzIoXK0g","renewers":["User%3Abob"],"version":3,'
    b'"maxTimestamp":1795692000000,"tokenRequester":"User%3Aann%20b","expiryTimestamp":1795691000000,'
    b'"issueTimestamp":1795690000000}'
)
"""Of a broker of Kafka 3.9.2; its id and times were replaced."""
ID = "xJnG8ZqzRfm8ymPzIoXK0g"
VALUE = {
    "owner": "User:ann", "requester": "User:ann b", "renewers": ["User:bob"],
    "issued_ms": 1795690000000, "max_ms": 1795692000000, "expires_ms": 1795691000000,
}  # fmt: skip


def changed(**fields: Any) -> bytes:
    """The node with other fields; None takes one away."""
    node = {**json.loads(KAFKAS), **fields}
    return json.dumps({name: value for name, value in node.items() if value is not None}).encode()


def test_a_token_is_read_and_written_as_kafka_does() -> None:
    fact = MetadataChange("token", ID, VALUE)
    assert tokens.fact(ID, KAFKAS) == fact
    assert json.loads(tokens.data(fact)) == json.loads(KAFKAS)
    assert tokens.path(ID) == f"/delegation_token/tokens/{ID}"
    assert tokens.changed(ID.encode(), "n") == ID


@pytest.mark.parametrize("version", [1, 2])
def test_before_version_3_the_owner_had_asked(version: int) -> None:
    fact = tokens.fact(ID, changed(version=version, tokenRequester=None))
    assert fact.value == {**VALUE, "requester": "User:ann"}


@pytest.mark.parametrize(
    "content",
    [
        None, b"", b"[]", changed(version=4), changed(version="3"), changed(owner="ann"), changed(owner="User%3A"),
        changed(owner=1), changed(owner="%zz"), changed(tokenRequester=None), changed(renewers="User%3Aann"),
        changed(renewers=[1]), changed(renewers=["User%3Ax"] * 10_001), changed(maxTimestamp=None),
        changed(expiryTimestamp=-1), changed(issueTimestamp=2**63), changed(issueTimestamp=1.5),
    ],
)  # fmt: skip
def test_a_node_that_is_none_of_kafkas_is_refused(content: bytes | None) -> None:
    with pytest.raises(CorruptMessage, match="/delegation_token/tokens/"):
        tokens.fact(ID, content)


@pytest.mark.parametrize("content", [None, b"", b"a/b", b"\xff"])
def test_a_note_that_names_no_token_is_refused(content: bytes | None) -> None:
    with pytest.raises(CorruptMessage, match="/n "):
        tokens.changed(content, "/n")


@pytest.mark.parametrize("token_id", ["", "a/b", "a b", "\0"])
def test_what_cannot_be_a_node_is_refused(token_id: str) -> None:
    with pytest.raises(InvalidRequest):
        tokens.path(token_id)
