"""TLS over memory: two sessions, or one and a liar."""

from __future__ import annotations

import ssl
import subprocess
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import attrs
import pytest
from authorities import authority, certified, exchange, pair, read_all, settings
from cryptography.x509.oid import ExtendedKeyUsageOID
from hypothesis import given
from hypothesis import strategies as st
from issued_certificates import BOTH, issued

from logkernel.errors import SslAuthenticationException
from logkernel.security.tls import MAX_HANDSHAKE_BYTES, MAX_HELD_BYTES, MAX_UNREAD_BYTES, TlsSession
from logkernel.security.tls_contexts import client_context, server_context

TRUSTING = settings(trusts="ours")


def listener(**others: object) -> ssl.SSLContext:
    return server_context(settings(certified(), **others))


def connected(**others: object) -> tuple[TlsSession, TlsSession]:
    client, server = pair(settings(trusts="ours", **others), settings(certified()))
    exchange(client, server)
    return client, server


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_bytes_go_both_ways(version: str) -> None:
    client, server = connected(ssl_enabled_protocols=(version,))
    assert (client.is_established, server.is_established) == (True, True)
    assert client.version == server.version == version
    assert client.cipher == server.cipher != None  # noqa: E711
    client.write(b"request")
    exchange(client, server)
    assert read_all(server) == b"request"
    server.write(memoryview(bytearray(b"response")))
    exchange(client, server)
    assert read_all(client) == b"response"
    assert read_all(client) == b""


@pytest.mark.parametrize("size", [16_384, 16_385, 262_144, 1_000_003])
def test_large_writes_arrive_whole_whatever_the_room(size: int) -> None:
    client, server = connected()
    data = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    received = bytearray()
    room = memoryview(bytearray(10_007))
    for start in range(0, size, 262_144):
        client.write(data[start : start + 262_144])
        server.receive(client.take())
        while count := server.read_into(room):
            received += room[:count]
    assert received == data


def test_what_is_written_before_the_handshake_arrives_after_it() -> None:
    client, server = pair(TRUSTING, settings(certified()))
    client.write(b"early ")
    client.write(bytearray(b"words"))
    exchange(client, server)
    assert read_all(server) == b"early words"


def test_a_handshake_byte_by_byte_ends_well() -> None:
    client, server = pair(TRUSTING, settings(certified()))
    client.write(b"hello")
    received = b""
    for _ in range(10):
        for sender, receiver in ((client, server), (server, client)):
            for byte in sender.take():
                receiver.receive(bytes([byte]))
                received += read_all(receiver, 8)
    assert received == b"hello"


@pytest.mark.parametrize("size", [0, 1, MAX_HELD_BYTES])
def test_what_waits_for_a_handshake_is_bounded(size: int) -> None:
    client, _ = pair(TRUSTING, settings(certified()))
    client.write(bytes(size))
    with pytest.raises(BufferError, match="TLS handshake"):
        client.write(bytes(MAX_HELD_BYTES - size + 1))


def test_what_waits_to_be_read_is_bounded() -> None:
    client, server = connected()
    for _ in range(3):
        client.write(bytes(300_000))
    server.receive(client.take())
    client.write(bytes(300_000))
    with pytest.raises(BufferError, match="read_into"):
        server.receive(client.take())
    assert MAX_UNREAD_BYTES < 1_200_000


def test_what_a_peer_may_send_for_a_handshake_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("logkernel.security.tls.MAX_HANDSHAKE_BYTES", 200)
    client, server = pair(TRUSTING, settings(certified()))
    server.receive(client.take())
    flight = server.take()
    client.receive(flight[:201])
    with pytest.raises(SslAuthenticationException, match="localhost sent 201 bytes without ending its TLS handshake"):
        client.receive(flight[201:])


@pytest.mark.parametrize(
    "record",
    [
        b"\x16\x03\x01\x40\x00" + b"\x01\x00\xff\xff" + bytes(0x4000 - 4),
        b"\x15\x03\x01\x00\x02\x01\x5a",
        b"\x14\x03\x03\x00\x01\x01",
    ],
    ids=["endless hello", "warnings", "changes of cipher"],
)
def test_a_handshake_without_end_is_ended(record: bytes) -> None:
    server = TlsSession(SHARED, server_side=True)
    with pytest.raises(SslAuthenticationException):
        repeat(server, record)


def repeat(server: TlsSession, record: bytes) -> None:
    for _ in range(2 * MAX_HANDSHAKE_BYTES // len(record)):
        server.receive(record)


@pytest.mark.parametrize("client_first", [True, False])
def test_a_shut_down_session_is_closed_on_the_other_side(client_first: bool) -> None:
    client, server = connected()
    one, other = (client, server) if client_first else (server, client)
    one.write(b"last words")
    one.shut_down()
    one.shut_down()
    exchange(one, other)
    assert not other.closed
    assert read_all(other) == b"last words"
    read_all(other)
    assert other.closed
    assert read_all(other) == b""
    other.shut_down()


def test_the_certificate_of_each_side_is_seen() -> None:
    client, server = pair(
        settings(certified("client-7"), trusts="ours"),
        settings(certified(), trusts="ours", ssl_client_auth="required"),
    )
    assert client.peer_certificate is None
    exchange(client, server)
    assert client.peer_certificate == ssl.PEM_cert_to_DER_cert(certified().chain)
    assert server.peer_certificate == ssl.PEM_cert_to_DER_cert(certified("client-7").chain)


@pytest.mark.parametrize("auth", ["none", "requested"])
def test_a_client_without_certificate_is_let_in_where_none_is_required(auth: str) -> None:
    client, server = pair(TRUSTING, settings(certified(), trusts="ours", ssl_client_auth=auth))
    exchange(client, server)
    assert server.is_established
    assert server.peer_certificate is None


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_client_without_certificate_is_refused_where_one_is_required(version: str) -> None:
    client, server = pair(
        settings(trusts="ours", ssl_enabled_protocols=(version,)),
        settings(certified(), trusts="ours", ssl_client_auth="required"),
    )
    with pytest.raises(SslAuthenticationException, match=r"10\.0\.0\.7:5 showed no certificate.*ssl.keystore.location"):
        exchange(client, server)
    with pytest.raises(SslAuthenticationException, match="localhost refused TLS"):
        _tell(server, client)


@pytest.mark.parametrize("auth", ["required", "requested"])
def test_a_certificate_of_another_ca_is_refused(auth: str) -> None:
    client, server = pair(
        settings(certified("client-7", by="another"), trusts="ours"),
        settings(certified(), trusts="ours", ssl_client_auth=auth),
    )
    with pytest.raises(SslAuthenticationException, match=r"the client at 10\.0\.0\.7:5 is not trusted: .*issuer"):
        exchange(client, server)
    with pytest.raises(SslAuthenticationException, match=r"refused TLS .*unknown ca.*trust"):
        _tell(server, client)


def _tell(failed: TlsSession, other: TlsSession) -> None:
    """Bring the alert of a failed session to the other."""
    other.receive(failed.take())
    read_all(other)


def test_a_broker_of_another_ca_is_refused() -> None:
    client, server = pair(settings(trusts="another"), settings(certified()))
    with pytest.raises(
        SslAuthenticationException, match=r"localhost is not trusted: .*; put the CA of the broker into ssl"
    ):
        exchange(client, server)
    with pytest.raises(SslAuthenticationException, match=r"10\.0\.0\.7:5 refused TLS"):
        _tell(client, server)


def test_the_system_does_not_know_our_ca() -> None:
    client, server = pair(settings(), settings(certified()))
    with pytest.raises(SslAuthenticationException, match="not trusted"):
        exchange(client, server)


@pytest.mark.parametrize(
    ("host", "in_certificate"), [("127.0.0.1", "localhost"), ("other.example", "localhost"), ("10.0.0.1", "127.0.0.1")]
)
def test_a_certificate_for_another_host_is_refused(host: str, in_certificate: str) -> None:
    client, server = pair(TRUSTING, settings(certified(in_certificate)), host)
    with pytest.raises(
        SslAuthenticationException, match=rf"{host} is not trusted: .*ssl.endpoint.identification.algorithm"
    ):
        exchange(client, server)


@pytest.mark.parametrize(
    ("host", "in_certificate"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("kafka-1.example.com", "*.example.com")]
)
def test_a_host_in_the_certificate_is_accepted(host: str, in_certificate: str) -> None:
    client, server = pair(TRUSTING, settings(certified(in_certificate)), host)
    exchange(client, server)
    assert client.is_established


@pytest.mark.parametrize("host", ["other.example", "127.0.0.1", None])
def test_host_names_can_be_turned_off_but_not_trust(host: str | None) -> None:
    client, server = pair(
        settings(trusts="ours", ssl_endpoint_identification_algorithm=""), settings(certified()), host
    )
    exchange(client, server)
    assert client.is_established
    client, server = pair(
        settings(trusts="another", ssl_endpoint_identification_algorithm=""), settings(certified()), host
    )
    with pytest.raises(SslAuthenticationException):
        exchange(client, server)


def expired() -> dict[str, object]:
    """Settings of a side whose certificate was valid until yesterday."""
    old = authority("ours").issue_cert("localhost", not_after=datetime.now(UTC) - timedelta(days=1))
    return {
        "ssl_keystore_key": old.private_key_pem.bytes().decode(),
        "ssl_keystore_certificate_chain": old.cert_chain_pems[0].bytes().decode(),
    }


def test_an_expired_certificate_is_refused() -> None:
    client, server = pair(TRUSTING, settings(**expired()))
    with pytest.raises(SslAuthenticationException, match="expired; renew it"):
        exchange(client, server)


@pytest.mark.parametrize("wrong", ["client", "server"])
def test_a_certificate_that_is_not_for_this_use_is_told_of_with_what_it_lacks(wrong: str) -> None:
    """The remedy was to trust its authority, which both sides do."""
    lacks = {"client": "clientAuth", "server": "serverAuth"}[wrong]
    usages = {"client": ExtendedKeyUsageOID.SERVER_AUTH, "server": ExtendedKeyUsageOID.CLIENT_AUTH}
    own = {side: issued("broker", usages=(usages[side],) if side == wrong else BOTH) for side in usages}
    client, server = pair(
        settings(own["client"], "ours"), settings(own["server"], "ours", ssl_client_auth="required"), "127.0.0.1"
    )
    said = f"whose extended key usage has {lacks}"
    with pytest.raises(SslAuthenticationException, match=f"certificate purpose; issue one {said}"):
        exchange(client, server)
    speaker, other = (server, client) if wrong == "client" else (client, server)
    with pytest.raises(SslAuthenticationException, match=f"unsupported certificate.; use a certificate {said}"):
        _tell(speaker, other)


def test_a_client_whose_certificate_has_expired_is_told_to_renew_it() -> None:
    """It was told to have the broker trust its authority, which the broker does."""
    client, server = pair(
        settings(trusts="ours", **expired()), settings(certified(), trusts="ours", ssl_client_auth="required")
    )
    with pytest.raises(SslAuthenticationException, match="expired"):
        exchange(client, server)
    with pytest.raises(SslAuthenticationException, match=r"certificate expired\); renew your certificate"):
        _tell(server, client)


def test_a_leaf_in_the_truststore_is_trusted_by_itself() -> None:
    """As Java does, where OpenSSL wants a root."""
    client, server = pair(settings(ssl_truststore_certificates=certified().chain), settings(certified()))
    exchange(client, server)
    assert client.is_established


def test_versions_that_do_not_meet_are_refused() -> None:
    client, server = pair(
        settings(trusts="ours", ssl_enabled_protocols=("TLSv1.2",)),
        settings(certified(), ssl_enabled_protocols=("TLSv1.3",)),
    )
    with pytest.raises(SslAuthenticationException, match=r"ssl\.enabled\.protocols"):
        exchange(client, server)
    with pytest.raises(SslAuthenticationException, match=r"refused TLS .*protocol version"):
        _tell(server, client)


@pytest.mark.parametrize(
    "plain",
    [
        bytes.fromhex("0000001b0012000300000001") + b"\x00\x08rdkafka\x00" + bytes(8),
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\x00\x00\x00\x0a" + bytes(10),
        b"SSH-2.0-OpenSSH_9.6\r\n",
    ],
)
@pytest.mark.parametrize("server_side", [True, False])
def test_plain_text_is_named(plain: bytes, server_side: bool) -> None:
    context = listener() if server_side else client_context(TRUSTING)
    session = TlsSession(
        context, server_side=server_side, server_hostname=None if server_side else "localhost", peer="10.1.1.1:9092"
    )
    with pytest.raises(SslAuthenticationException, match=r"10\.1\.1\.1:9092 does not speak TLS; .*security.protocol"):
        session.receive(plain)


def test_a_changed_record_is_refused() -> None:
    client, server = connected()
    client.write(b"a message")
    record = bytearray(client.take())
    record[-1] ^= 1
    server.receive(record)
    with pytest.raises(SslAuthenticationException, match="TLS with the client at"):
        read_all(server)


def test_a_client_cannot_renegotiate() -> None:
    assert listener().options & ssl.OP_NO_RENEGOTIATION


def test_a_client_shows_its_certificate_at_each_connection() -> None:
    """A session that is resumed would not be checked against a truststore that changed in between."""
    server_side = listener(ssl_client_auth="none")
    assert server_side.num_tickets == 0
    assert server_side.options & ssl.OP_NO_TICKET


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=5))
def test_any_bytes_fail_as_tls_does(pieces: list[bytes]) -> None:
    server = TlsSession(SHARED, server_side=True)
    with suppress(SslAuthenticationException):
        for piece in pieces:
            server.receive(piece)
    assert not server.is_established


SHARED = listener()


def test_secrets_are_not_shown() -> None:
    fields = [
        field.name for field in attrs.fields(type(TRUSTING)) if "password" in field.name or field.name.endswith("_key")
    ]
    assert len(fields) == 4
    planted = attrs.evolve(TRUSTING, **dict.fromkeys(fields, "pl4nted"), ssl_keystore_certificate_chain="pl4nted")
    assert "pl4nted" not in repr(planted)


def test_settings_do_not_import_ssl() -> None:
    program = (
        "import sys, logkernel.security.tls, logkernel.security.tls_contexts as c; assert 'ssl' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
