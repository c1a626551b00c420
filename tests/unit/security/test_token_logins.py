"""From settings to where a client's tokens come from, and to what a listener validates them by."""

from __future__ import annotations

import gc
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from authorities import ca_pem, certified, settings
from identity_provider import jwks, serving, signed

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.sasl.oauthbearer import OAuthBearerServer, client_first_of
from logkernel.security.settings import ClientSecurity
from logkernel.security.tls_contexts import server_context
from logkernel.security.tokens.listener_keys import validator_of
from logkernel.security.tokens.verdict import TokenRefused
from logkernel.vocabulary import Principal

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required"
URL = "sasl.oauthbearer.token.endpoint.url"
HANDLER = "sasl.login.callback.handler.class"
ANSWER = (200, json.dumps({"access_token": "t0ken", "expires_in": 300}).encode())


def first_message(**given: Any) -> tuple[str, dict[str, str]]:
    """The token and the extensions that a client with these settings sends; names have _ for a dot."""
    named = {name.replace("_", "."): value for name, value in given.items()}
    security = ClientSecurity.of({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", **named})
    assert security is not None
    message = security.mechanism("localhost").respond(b"")
    _, token, extensions = client_first_of(message or b"")
    return token, extensions


def test_an_endpoint_by_the_options_of_kafkas_login_module() -> None:
    with serving(ANSWER) as provider:
        jaas = f'{MODULE} clientId="me" clientSecret="s3cret" scope="read" extension_logicalCluster="lkc-1";'
        security = {"sasl_jaas_config": jaas, "sasl_oauthbearer_token_endpoint_url": provider.url()}
        assert first_message(**security) == ("t0ken", {"logicalCluster": "lkc-1"})
        assert first_message(**security)[0] == "t0ken"
    assert len(provider.requests) == 1, "clients with the same settings share their token"
    assert provider.requests[0][3] == b"grant_type=client_credentials&scope=read"


@pytest.mark.parametrize(
    "handler",
    [
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler",
        "OAuthBearerLoginCallbackHandler",
        None,
    ],
)
def test_an_endpoint_by_kafkas_or_librdkafkas_settings(handler: str | None) -> None:
    others = {"sasl_login_callback_handler_class": handler} if handler else {}
    with serving(ANSWER) as provider:
        token, extensions = first_message(
            sasl_oauthbearer_token_endpoint_url=provider.url(),
            sasl_oauthbearer_client_id="me",
            sasl_oauthbearer_client_secret="s3cret",
            sasl_oauthbearer_extensions="a=1, b=two",
            **others,
        )
    assert (token, extensions) == ("t0ken", {"a": "1", "b": "two"})


def test_options_of_the_login_module_protect_the_way_to_the_endpoint(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text(ca_pem())
    trust = f'ssl.truststore.type=PEM ssl.truststore.location="{tmp_path}/ca.pem"'
    with serving(ANSWER, context=server_context(settings(certified("127.0.0.1")))) as provider:
        given = {"sasl_oauthbearer_token_endpoint_url": provider.url(), "sasl_login_retry_backoff_max_ms": "0"}
        login = f'{MODULE} clientId="me" clientSecret="s3cret"'
        assert first_message(**given, sasl_jaas_config=f"{login} {trust};")[0] == "t0ken"
        with pytest.raises(SaslAuthenticationFailed, match="certificate verify failed"):
            first_message(**given, sasl_jaas_config=f"{login};")


@pytest.mark.parametrize("by", ["location", "pem"])
def test_librdkafkas_settings_say_whom_to_trust_at_the_endpoint(by: str, tmp_path: Path) -> None:
    """https.ca.location and https.ca.pem."""

    def trusting(authority: str) -> dict[str, str]:
        (tmp_path / f"{authority}.pem").write_text(ca_pem(authority))
        return {f"https_ca_{by}": str(tmp_path / f"{authority}.pem") if by == "location" else ca_pem(authority)}

    with serving(ANSWER, context=server_context(settings(certified("127.0.0.1")))) as provider:
        given = {
            "sasl_oauthbearer_token_endpoint_url": provider.url(),
            "sasl_login_retry_backoff_max_ms": "0",
            "sasl_oauthbearer_client_id": "me",
            "sasl_oauthbearer_client_secret": "s3cret",
        }
        assert first_message(**given, **trusting("ours"))[0] == "t0ken"
        for others in (trusting("theirs"), {"https_ca_location": "probe"}):
            with pytest.raises(SaslAuthenticationFailed, match="certificate verify failed"):
                first_message(**given, **others)


KAFKAS = "org.apache.kafka.common.security.oauthbearer"
ENDPOINT = {
    "sasl_oauthbearer_token_endpoint_url": "https://idp.example/",
    "sasl_oauthbearer_client_id": "me",
    "sasl_oauthbearer_client_secret": "s3cret",
}
JWKS = "sasl.oauthbearer.jwks.endpoint.url"


@pytest.mark.parametrize(
    ("trusts", "name", "taken"),
    [("ours", "127.0.0.1", True), ("theirs", "127.0.0.1", False), (None, "127.0.0.1", False), ("ours", "idp", False)],
    ids=["right", "another CA", "the system's CAs", "another name"],
)
def test_options_of_a_listeners_login_module_protect_the_way_to_its_keys(
    trusts: str | None, name: str, taken: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """They were not looked at: keys behind a private CA could not be had."""
    options = {}
    if trusts is not None:
        (tmp_path / "ca.pem").write_text(ca_pem(trusts))
        options = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(tmp_path / "ca.pem")}
    with serving((200, jwks("rsa-1")), context=server_context(settings(certified(name)))) as provider:
        validate = validator_of({JWKS: provider.url("/keys")}, options)
        if taken:
            assert validate(signed()).name == "alice"
        else:
            with pytest.raises(TokenRefused, match="a key that is not in the JWKS"):
                validate(signed())
            assert "certificate verify failed" in caplog.text


def test_a_client_certificate_may_be_shown_to_the_endpoint_of_keys(tmp_path: Path) -> None:
    key, chain = certified("me")
    (tmp_path / "me.pem").write_text(key + chain)
    (tmp_path / "ca.pem").write_text(ca_pem())
    trust = {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(tmp_path / "ca.pem")}
    mine = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(tmp_path / "me.pem")}
    asks = server_context(settings(certified("127.0.0.1"), trusts="ours", ssl_client_auth="required"))
    with serving((200, jwks("rsa-1")), context=asks) as provider:
        assert validator_of({JWKS: provider.url()}, trust | mine)(signed()).name == "alice"
        with pytest.raises(TokenRefused, match="a key that is not in the JWKS"):
            validator_of({JWKS: provider.url()}, trust)(signed())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ssl.truststore.location": "/nowhere.pem", "ssl.truststore.type": "PEM"}, "/nowhere.pem"),
        ({"ssl.engine.factory.class": "com.acme.Engine"}, "an option ssl.… of sasl.jaas.config is unknown"),
        ({"ssl.enabled.protocols": "SSLv2"}, "ssl.enabled.protocols"),
    ],
)
def test_a_way_to_keys_that_cannot_be_is_refused_at_the_start(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        validator_of({JWKS: "https://127.0.0.1/keys"}, options)


def test_unsecured_tokens_by_options() -> None:
    jaas = f'{MODULE} unsecuredLoginStringClaim_sub="alice" unsecuredLoginExtension_traceId="7";'
    token, extensions = first_message(sasl_jaas_config=jaas)
    assert extensions == {"traceId": "7"}
    handler = (
        "org.apache.kafka.common.security.oauthbearer.internals.unsecured.OAuthBearerUnsecuredValidatorCallbackHandler"
    )
    validate = validator_of({"sasl.server.callback.handler.class": handler}, {})
    assert validate(token).name == "alice"


def test_a_token_may_be_in_a_file_and_from_a_function(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from.a.file\n")
    assert first_message(sasl_oauthbearer_token_endpoint_url=(tmp_path / "token").as_uri())[0] == "from.a.file"
    assert first_message(sasl_login_callback_handler_class=lambda: "from.a.function")[0] == "from.a.function"


@pytest.mark.parametrize("function", [lambda: None, lambda: b"x", lambda: 1 / 0])
def test_a_function_that_fails_fails_the_login(function: Callable[[], object]) -> None:
    with pytest.raises(SaslAuthenticationFailed, match=r"the function of sasl\.login\.callback\.handler\.class"):
        first_message(sasl_login_callback_handler_class=function)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, "token.endpoint.url is not set"),
        ({"sasl_login_callback_handler_class": "com.example.Handler"}, "'Handler' is unknown"),
        ({"sasl_login_callback_handler_class": "os.system"}, "'system' is unknown"),
        ({"sasl_oauthbearer_token_endpoint_url": "https://idp.example/"}, "clientId and clientSecret"),
        ({"sasl_oauthbearer_token_endpoint_url": "gopher://idp.example/"}, "give a URL"),
        (
            {**ENDPOINT, "https_ca_pem": "x", "https_ca_location": "y"},
            "https.ca.location and https.ca.pem are both set",
        ),
        (
            {
                **ENDPOINT,
                "https_ca_location": "y",
                "sasl_jaas_config": f"{MODULE} ssl.truststore.location=z ssl.truststore.type=PEM;",
            },
            "https.ca.location and options ssl.truststore",
        ),
        ({**ENDPOINT, "https_ca_location": "/nowhere"}, "/nowhere"),
        ({"sasl_jaas_config": f"{MODULE} unsecuredLoginLifetimeSeconds=7;"}, "no principal"),
        ({"sasl_login_callback_handler_class": lambda: "t", "sasl_oauthbearer_extensions": "a"}, "without a value"),
        ({"sasl_login_callback_handler_class": lambda: "t", "sasl_oauthbearer_extensions": "auth=a"}, "SASL extension"),
    ],
)
def test_a_login_without_source_of_tokens_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match="; ") as refused:
        first_message(**given)
    assert text in str(refused.value)


def test_a_listener_validates_by_its_settings() -> None:
    with serving((200, jwks("rsa-1"))) as provider:
        validate = validator_of(
            {
                "sasl.oauthbearer.jwks.endpoint.url": provider.url("/jwks"),
                "sasl.oauthbearer.expected.audience": "kafka, others",
                "sasl.oauthbearer.expected.issuer": "https://idp.example/",
                "sasl.oauthbearer.clock.skew.seconds": "0",
                "sasl.server.callback.handler.class": f"{KAFKAS}.OAuthBearerValidatorCallbackHandler",
                "sasl.oauthbearer.sub.claim.name": "client",
            },
            {},
        )
    server = OAuthBearerServer(validate)
    server.evaluate(f"n,,\x01auth=Bearer {signed(client='bob')}\x01\x01".encode())
    assert server.principal == Principal("User", "bob")
    for wrong in (
        signed(client="bob", aud="elsewhere"),
        signed(client="bob", iss="x"),
        signed(client="bob", exp=int(time.time()) - 2),
    ):
        with pytest.raises(TokenRefused):
            validate(wrong)


def test_the_thread_of_a_listener_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(jwks("rsa-1"))
    validate = validator_of({"sasl.oauthbearer.jwks.endpoint.url": file.as_uri()}, {})
    threads = [thread for thread in threading.enumerate() if thread.name == "jwks"]
    assert threads
    del validate
    gc.collect()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize(
    ("given", "options", "text"),
    [
        ({}, {}, "has no keys"),
        ({"sasl.server.callback.handler.class": "com.example.Handler"}, {}, "'Handler' is unknown"),
        ({"sasl.oauthbearer.jwks.endpoint.url": "jar:file:///x"}, {}, "give a URL"),
        (
            {"sasl.server.callback.handler.class": "x.OAuthBearerUnsecuredValidatorCallbackHandler"},
            {"unsecuredValidatorAllowableClockSkewMs": "-1"},
            "give ms",
        ),
    ],
)
def test_a_listener_without_keys_is_refused(given: dict[str, str], options: dict[str, str], text: str) -> None:
    with pytest.raises(ConfigError, match="; ") as refused:
        validator_of(given, options)
    assert text in str(refused.value)
