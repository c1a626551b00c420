"""Where a client's tokens for OAUTHBEARER come from, as its settings say."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from typing import Any

import pytest
from identity_provider import serving

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.settings import ClientSecurity
from logkernel.security.tokens import client_login

SECRET = "hunter2-planted"
URL = "sasl.oauthbearer.token.endpoint.url"
HANDLER = "sasl.login.callback.handler.class"
MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
GOOD = (200, json.dumps({"access_token": "t0ken", "expires_in": 300}).encode())
BY_SETTINGS = {
    "sasl.oauthbearer.client.credentials.client.id": "me",
    "sasl.oauthbearer.client.credentials.client.secret": SECRET,
    "sasl.oauthbearer.scope": "kafka",
}
BY_LIBRDKAFKA = {
    "sasl.oauthbearer.client.id": "me",
    "sasl.oauthbearer.client.secret": SECRET,
    "sasl.oauthbearer.scope": "kafka",
}


def first(**given: Any) -> bytes:
    """The client's first message."""
    settings = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER", **given}
    security = ClientSecurity.of(settings)
    assert security is not None
    return security.mechanism("broker").respond(b"") or b""


@pytest.mark.parametrize(
    "given",
    [
        BY_SETTINGS,
        BY_LIBRDKAFKA,
        {"sasl.jaas.config": f'{MODULE} clientId="me" clientSecret="{SECRET}" scope="kafka";'},
    ],
)
def test_a_token_comes_from_the_endpoint(given: dict[str, Any]) -> None:
    with serving(GOOD) as provider:
        assert first(**{URL: provider.url(), **given}) == b"n,,\x01auth=Bearer t0ken\x01\x01"
        (request,) = provider.requests
    assert b"scope=kafka" in request[3]


def test_connections_share_a_token_and_clients_with_the_same_settings_too() -> None:
    with serving(GOOD) as provider:
        for _ in range(3):
            first(**{URL: provider.url(), **BY_SETTINGS})
        assert len(provider.requests) == 1


@pytest.mark.parametrize(
    ("function", "token"), [(lambda: "a.b.c", b"a.b.c"), (lambda: ("x-1", 60.0), b"x-1")], ids=["token", "pair"]
)
def test_a_function_may_give_the_token(function: Callable[[], Any], token: bytes) -> None:
    assert first(**{HANDLER: function}) == b"n,,\x01auth=Bearer " + token + b"\x01\x01"


def provider_of(options: dict[str, str]) -> str:
    return f"token-for-{options['region']}"


def test_an_installed_provider_gives_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    known = EntryPoints([EntryPoint("msk-iam", f"{__name__}:provider_of", client_login.PROVIDERS)])
    monkeypatch.setattr(client_login, "entry_points", lambda **wanted: known.select(**wanted))
    found = first(**{HANDLER: "msk-iam", "sasl.jaas.config": f'{MODULE} region="eu-1";'})
    assert found == b"n,,\x01auth=Bearer token-for-eu-1\x01\x01"


@pytest.mark.parametrize("handler", ["com.attacker.Handler", "os:system", "os.path.join"])
def test_no_handler_is_loaded_that_is_not_installed_as_one(handler: str) -> None:
    with pytest.raises(ConfigError, match="is unknown; use OAuthBearerLoginCallbackHandler"):
        first(**{HANDLER: handler})


@pytest.mark.parametrize("url", ["ldap://attacker/x", "http://", "http://u:p@host/token", "jar:file:///x"])
def test_cve_2025_27817_only_http_and_files_are_asked_for_tokens(url: str) -> None:
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.token\.endpoint\.url"):
        first(**{URL: url, **BY_SETTINGS})


def test_cve_2025_27817_a_file_that_has_no_token_is_neither_sent_nor_shown(tmp_path: Path) -> None:
    file = tmp_path / "passwd"
    file.write_text(f"root:{SECRET}:0:0:root:/root:/bin/sh\n")
    with pytest.raises(SaslAuthenticationFailed) as refused:
        first(**{URL: file.as_uri()})
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("lifetime", ["x", b"60", True])
def test_a_lifetime_that_is_no_number_is_said(lifetime: Any) -> None:
    with pytest.raises(SaslAuthenticationFailed, match="as the token's lifetime; return seconds"):
        first(**{HANDLER: lambda: ("token", lifetime)})
