"""Secrets are planted in everything that takes one, and looked for in all that it says, right or wrong."""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from authorities import certified
from identity_provider import serving

from logkernel.errors import LogkernelError
from logkernel.security.sasl.oauthbearer import OAuthBearerClient, OAuthBearerServer
from logkernel.security.sasl.plain import PlainClient, PlainServer
from logkernel.security.sasl.scram import ScramClient, ScramCredential, ScramServer, ScramToken
from logkernel.security.stores import identity
from logkernel.security.tls import TlsSettings
from logkernel.security.tls_contexts import server_context
from logkernel.security.tokens.http import Endpoint
from logkernel.security.tokens.jwks import JwksValidator
from logkernel.security.tokens.oidc import ClientCredentials
from logkernel.security.tokens.source import Fetched, TokenSource
from logkernel.security.tokens.unsecured import UnsecuredValidator
from logkernel.vocabulary import Principal

SECRET = "pl4nted"
Said = list[object]


def plain(said: Said, folder: Path) -> None:
    client, server = PlainClient("alice", SECRET), PlainServer(lambda user, password: False)
    said += [client, server]
    server.evaluate(client.respond(b"") or b"")


def scram(said: Said, folder: Path) -> None:
    credential = ScramCredential.of(SECRET, "SCRAM-SHA-256", 4096, SECRET.encode())
    token = ScramToken(credential, Principal("User", "owner"), 1)
    client, server = ScramClient("SCRAM-SHA-256", "alice", SECRET), ScramServer("SCRAM-SHA-256", lambda user: None)
    said += [credential, token, client, server]
    server.evaluate(client.respond(server.evaluate(client.respond(b"") or b"")) or b"")


def scram_by_an_impostor(said: Said, folder: Path) -> None:
    client = ScramClient("SCRAM-SHA-512", "alice", SECRET, nonce="n")
    client.respond(b"")
    client.respond(b"r=nx,s=AAAA,i=4096")
    client.respond(b"v=AAAA")


def token_refused_by_a_broker(said: Said, folder: Path) -> None:
    client = OAuthBearerClient(lambda: SECRET, {"cluster": "c"})
    server = OAuthBearerServer(JwksValidator(dict))
    said += [client, server]
    client.respond(server.evaluate(client.respond(b"") or b""))
    client.respond(b"")


def token_that_is_none(said: Said, folder: Path) -> None:
    OAuthBearerClient(lambda: f"{SECRET} ").respond(b"")


def unsecured_token(said: Said, folder: Path) -> None:
    UnsecuredValidator()(f"{SECRET}.{SECRET}.{SECRET}")


def endpoint(said: Said, folder: Path) -> None:
    with serving((401, json.dumps({"error": SECRET}).encode())) as provider:
        client = ClientCredentials(Endpoint(provider.url()), "id", SECRET)
        source = TokenSource(client.fetch)
        said += [client, source, Fetched(SECRET, 1)]
        source()


def keystore(said: Said, folder: Path) -> None:
    (folder / "store.p12").write_bytes(b"\x30" + SECRET.encode())
    given = TlsSettings(
        ssl_keystore_location=str(folder / "store.p12"), ssl_keystore_password=SECRET, ssl_key_password=SECRET
    )
    said.append(given)
    identity(given)


def pem_key(said: Said, folder: Path) -> None:
    given = TlsSettings(
        ssl_keystore_type="PEM",
        ssl_keystore_key=f"-----BEGIN PRIVATE KEY-----\n{SECRET}\n-----END PRIVATE KEY-----",
        ssl_keystore_certificate_chain=certified().chain,
        ssl_key_password=SECRET,
    )
    said += [given, identity(given)]
    server_context(given)


@pytest.mark.parametrize(
    "act",
    [
        plain,
        scram,
        scram_by_an_impostor,
        token_refused_by_a_broker,
        token_that_is_none,
        unsecured_token,
        endpoint,
        keystore,
        pem_key,
    ],
)
def test_no_secret_is_said(act: Callable[[Said, Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said: Said = []
    with pytest.raises(LogkernelError) as failed:
        act(said, tmp_path)
    lines = [line for line in traceback.format_exception(failed.value) if not line.startswith("  File")]
    text = "\n".join([repr(said), repr(failed.value), *map(str, said), *lines, caplog.text])
    assert "; " in str(failed.value)
    assert SECRET not in text
