"""A broker with secure listeners, its certificates, and the logins of outside clients there."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from authorities import authority, ca_pem
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from secure_clients import Login

import logkernel
from logkernel.client.admin.access import ScramUpsertion
from logkernel.security.tokens.unsecured import new_token

PASSWORD = 's3cret,=ü "q"'
PLAIN_USERS = (
    r'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="s3cret,=ü \"q\"" user_bob=b;'
)
UNSECURED = "org.apache.kafka.common.security.oauthbearer.OAuthBearerUnsecuredValidatorCallbackHandler"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
MUTUAL = {"ssl.client.auth": "required", "ssl.principal.mapping.rules": "RULE:^.*CN=([a-z]+).*$/$1/"}
"""Settings of a listener that asks for certificates."""


def write_files(folder: Path, *hosts: str) -> Path:
    """ca.pem, others.pem (another authority's), and for each host, and for the client, NAME.pem with key and
    certificate, NAME.key and NAME.crt; stranger.* are signed by the other authority."""
    (folder / "ca.pem").write_text(ca_pem())
    (folder / "others.pem").write_text(ca_pem("others"))
    signers = dict.fromkeys((*hosts, "client"), "ours") | {"stranger": "others"}
    for name, signer in signers.items():
        issued = authority(signer).issue_cert(name, common_name=name)
        key, certificate = issued.private_key_pem.bytes(), issued.cert_chain_pems[0].bytes()
        (folder / f"{name}.pem").write_bytes(pkcs8(key) + certificate)
        (folder / f"{name}.key").write_bytes(key)
        (folder / f"{name}.crt").write_bytes(certificate)
    return folder


def pkcs8(key: bytes) -> bytes:
    """As Java wants it."""
    return load_pem_private_key(key, None).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def start(start_broker: Callable[..., Any], files: Path, *protocols: str, **others: str) -> Any:
    """A broker with a listener of each protocol, in this order in `bootstrap`, and alice in it; `files` has the
    certificate of 127.0.0.1."""
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(files / "127.0.0.1.pem"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(files / "ca.pem"),
        "connection.failed.authentication.delay.ms": "1",
    }
    asking = [protocol for protocol in protocols if protocol.startswith("SASL")]
    for protocol in asking:
        name = protocol.lower()
        settings["sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
        settings[f"listener.name.{name}.plain.sasl.jaas.config"] = PLAIN_USERS
        settings[f"listener.name.{name}.oauthbearer.sasl.server.callback.handler.class"] = UNSECURED
    words = [word for name, value in (settings | others).items() for word in ("--set", f"{name}={value}")]
    broker = start_broker(*words, listen=",".join(f"{protocol}://127.0.0.1:0" for protocol in protocols))
    for protocol, address in zip(protocols, broker.addresses, strict=True):
        if protocol == (asking or [""])[0]:
            add_users(address, protocol, files)
    return broker


def add_users(bootstrap: str, protocol: str, files: Path) -> None:
    """Alice's keys of SCRAM."""
    ours = {
        "security.protocol": protocol,
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
    if protocol == "SASL_SSL":
        ours["ssl.ca.location"] = str(files / "ca.pem")
    with logkernel.connect(bootstrap, **ours) as log, log.admin() as admin:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            admin.alter_user_scram_credentials(ScramUpsertion("alice", PASSWORD, mechanism, 8192))


def token(now_s: float | None = None) -> str:
    """Alice's, for an hour from `now_s` on."""
    return new_token({"unsecuredLoginStringClaim_sub": "alice"}, now_s or time.time()).token


def login(protocol: str, mechanism: str, files: Path) -> Login:
    """Alice's."""
    by_token = mechanism == "OAUTHBEARER"
    return Login(
        protocol,
        mechanism,
        user="alice",
        password="" if by_token else PASSWORD,
        token=token() if by_token else "",
        ca=str(files / "ca.pem") if protocol.endswith("SSL") else "",
    )


def with_certificate(files: Path, name: str = "client") -> Login:
    """Mutual TLS."""
    return Login("SSL", ca=str(files / "ca.pem")).by(
        own=str(files / f"{name}.pem"), key=str(files / f"{name}.key"), certificate=str(files / f"{name}.crt")
    )
