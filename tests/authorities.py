"""Certificates for tests, by trustme."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from logkernel.security.tls import TlsSession, TlsSettings
from logkernel.security.tls_contexts import client_context, server_context


class Certified(NamedTuple):
    key: str
    chain: str


@cache
def authority(name: str) -> trustme.CA:
    return trustme.CA(organization_name=name)


def ca_pem(name: str = "ours") -> str:
    return authority(name).cert_pem.bytes().decode()


def certified(host: str = "localhost", by: str = "ours", name: str | None = None) -> Certified:
    """`name` is whom the certificate is about: its CN."""
    return _certified(host, by, name)


@cache
def _certified(host: str, by: str, name: str | None) -> Certified:
    issued = authority(by).issue_cert(host, common_name=name)
    chain = "".join(pem.bytes().decode() for pem in issued.cert_chain_pems)
    return Certified(issued.private_key_pem.bytes().decode(), chain)


def pkcs8(pem: str) -> str:
    """A private key as Java reads it."""
    key = load_pem_private_key(pem.encode(), None)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def settings(certificate: Certified | None = None, trusts: str | None = None, **others: object) -> TlsSettings:
    """With PEM in the settings."""
    given: dict[str, object] = {"ssl_keystore_type": "PEM", "ssl_truststore_type": "PEM"}
    if certificate is not None:
        given |= {"ssl_keystore_key": certificate.key, "ssl_keystore_certificate_chain": certificate.chain}
    if trusts is not None:
        given["ssl_truststore_certificates"] = ca_pem(trusts)
    return TlsSettings(**(given | others))  # type: ignore[arg-type]


def pair(client: TlsSettings, server: TlsSettings, host: str | None = "localhost") -> tuple[TlsSession, TlsSession]:
    return (
        TlsSession(client_context(client), server_side=False, server_hostname=host),
        TlsSession(server_context(server), server_side=True, peer="the client at 10.0.0.7:5"),
    )


def exchange(one: TlsSession, other: TlsSession) -> None:
    """Carry what both have to send, until neither has any."""
    while True:
        there, back = one.take(), other.take()
        if not there and not back:
            return
        if there:
            other.receive(there)
        if back:
            one.receive(back)


def read_all(session: TlsSession, size: int = 1 << 20) -> bytes:
    room = bytearray(size)
    return bytes(room[: session.read_into(memoryview(room))])
