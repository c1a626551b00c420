"""Assertions in the place of a client's secret: what is sent to a token endpoint, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, padding, utils
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from identity_provider import Provider, private_key, serving

from logkernel.errors import ConfigError, SaslAuthenticationFailed
from logkernel.security.sasl.oauthbearer import client_first_of
from logkernel.security.settings import ClientSecurity

ANSWER = (200, json.dumps({"access_token": "t0ken", "expires_in": 300}).encode())
BEARER = "org.apache.kafka.common.security.oauthbearer.JwtBearerJwtRetriever"
ASSERTION = "sasl.oauthbearer.assertion"


@pytest.fixture
def key_file(tmp_path: Path) -> str:
    return pem_file(tmp_path, "rsa-assertion")


def pem_file(folder: Path, kid: str, passphrase: str = "") -> str:
    encryption = BestAvailableEncryption(passphrase.encode()) if passphrase else NoEncryption()
    path = folder / f"{kid}.pem"
    path.write_bytes(private_key(kid).private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return str(path)


def token(provider: Provider | None, **given: Any) -> str:
    """What a client with these settings sends as its token; names have _ for a dot."""
    named = {name.replace("_", "."): value for name, value in given.items()}
    url = {"sasl.oauthbearer.token.endpoint.url": provider.url()} if provider else {}
    security = ClientSecurity.of({"security.protocol": "SASL_SSL", "sasl.mechanism": "OAUTHBEARER", **url, **named})
    assert security is not None
    return client_first_of(security.mechanism("localhost").respond(b"") or b"")[1]


def form_of(provider: Provider) -> dict[str, str]:
    ((method, _, headers, body),) = provider.requests
    assert method == "POST"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert "Authorization" not in headers, "the assertion says who the client is"
    return dict(parse_qsl(body.decode(), strict_parsing=True))


def parts_of(assertion: str) -> tuple[dict[str, Any], dict[str, Any], bytes, bytes]:
    """Header, claims, what is signed, and the signature."""
    header, payload, signature = assertion.split(".")
    decode = jwt.utils.base64url_decode
    return json.loads(decode(header)), json.loads(decode(payload)), f"{header}.{payload}".encode(), decode(signature)


def claims_by(**given: str) -> dict[str, str]:
    return {f"sasl_oauthbearer_assertion_{name}": value for name, value in given.items()}


@pytest.mark.parametrize("retriever", [BEARER, "JwtBearerJwtRetriever"])
def test_an_assertion_is_the_grant(retriever: str, key_file: str) -> None:
    """KIP-1139; the form and the claims are those of Kafka's 4.3.1 client with these settings."""
    with serving(ANSWER) as provider:
        found = token(
            provider,
            sasl_oauthbearer_jwt_retriever_class=retriever,
            sasl_oauthbearer_scope="read write",
            **claims_by(private_key_file=key_file, claim_aud="idp", claim_iss="me", claim_sub="alice"),
        )
    assert found == "t0ken"
    form = form_of(provider)
    assertion = form.pop("assertion")
    assert form == {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "scope": "read write"}
    header, claims, signed, signature = parts_of(assertion)
    assert header == {"alg": "RS256", "typ": "JWT"}
    iat = claims["iat"]
    assert claims == {"aud": "idp", "iss": "me", "sub": "alice", "iat": iat, "exp": iat + 300, "nbf": iat - 60}
    private_key("rsa-assertion").public_key().verify(signature, signed, padding.PKCS1v15(), SHA256())


JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"


def test_librdkafkas_settings_of_an_assertion_mean_the_same(tmp_path: Path) -> None:
    """grant.type, private.key.pem with a passphrase, jwt.template.file: each under librdkafka's own name."""
    template = tmp_path / "template.json"
    template.write_text(json.dumps({"payload": {"roles": ["a"]}}))
    key = Path(pem_file(tmp_path, "rsa-assertion", "pl4nted")).read_text()
    given = claims_by(
        algorithm="RS256",
        private_key_pem=key,
        private_key_passphrase="pl4nted",
        claim_aud="idp",
        claim_iss="me",
        claim_sub="alice",
        claim_exp_seconds="20",
        claim_nbf_seconds="5",
        claim_jti_include="true",
        jwt_template_file=str(template),
    )
    with serving(ANSWER) as provider:
        found = token(
            provider,
            sasl_oauthbearer_method="oidc",
            sasl_oauthbearer_grant_type=JWT_BEARER,
            sasl_oauthbearer_metadata_authentication_type="none",
            **given,
        )
    assert found == "t0ken"
    form = form_of(provider)
    assert form["grant_type"] == JWT_BEARER
    _, claims, signed, signature = parts_of(form["assertion"])
    iat = claims["iat"]
    assert claims == {
        "aud": "idp", "iss": "me", "sub": "alice", "roles": ["a"], "iat": iat, "exp": iat + 20, "nbf": iat - 5,
        "jti": claims["jti"],
    }  # fmt: skip
    private_key("rsa-assertion").public_key().verify(signature, signed, padding.PKCS1v15(), SHA256())


def test_librdkafkas_grant_may_be_the_clients_own_credentials() -> None:
    with serving(ANSWER) as provider:
        given = {"sasl_oauthbearer_client_id": "me", "sasl_oauthbearer_client_secret": "s3cret"}
        assert token(provider, sasl_oauthbearer_grant_type="client_credentials", **given) == "t0ken"
    ((_, _, headers, body),) = provider.requests
    assert b"grant_type=client_credentials" in body
    assert headers["Authorization"].startswith("Basic ")


def test_a_wrong_key_that_was_given_as_text_is_not_shown() -> None:
    given = claims_by(private_key_pem="-----BEGIN PRIVATE KEY-----\npl4nted\n-----END PRIVATE KEY-----")
    with (
        serving(ANSWER) as provider,
        pytest.raises(
            SaslAuthenticationFailed, match=r"check sasl\.oauthbearer\.assertion\.private\.key\.pem"
        ) as refused,
    ):
        token(provider, sasl_oauthbearer_grant_type=JWT_BEARER, **given)
    assert "pl4nted" not in str(refused.value)


def test_an_assertion_takes_the_place_of_the_secret(key_file: str) -> None:
    """KIP-1258: client credentials, by an assertion as soon as its issuer is set."""
    with serving(ANSWER) as provider:
        given = claims_by(private_key_file=key_file, claim_iss="me", claim_jti_include="true")
        assert token(provider, sasl_oauthbearer_client_credentials_client_id="me", **given) == "t0ken"
    form = form_of(provider)
    claims = parts_of(form.pop("client_assertion"))[1]
    assert form == {
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "grant_type": "client_credentials",
        "client_id": "me",
    }
    assert len(claims["jti"]) == 36


def test_es256_with_a_passphrase_and_a_template(tmp_path: Path) -> None:
    """Claims of the template replace those of the settings, and those of the moment replace both, as in Kafka."""
    template = tmp_path / "template.json"
    template.write_text(json.dumps({"header": {"kid": "k1"}, "payload": {"sub": "bob", "roles": ["a"], "iat": 1}}))
    given = claims_by(
        algorithm="es256",
        private_key_file=pem_file(tmp_path, "ec-assertion", "pl4nted"),
        private_key_passphrase="pl4nted",
        claim_sub="alice",
        claim_exp_seconds="10",
        claim_nbf_seconds="0",
    )
    given[f"{ASSERTION}.template.file"] = str(template)
    with serving(ANSWER) as provider:
        token(provider, sasl_oauthbearer_jwt_retriever_class=BEARER, **given)
    header, claims, signed, signature = parts_of(form_of(provider)["assertion"])
    assert header == {"alg": "ES256", "typ": "JWT", "kid": "k1"}
    iat = claims.pop("iat")
    assert claims == {"sub": "bob", "roles": ["a"], "exp": iat + 10, "nbf": iat}
    assert iat > 1_700_000_000
    halves = (int.from_bytes(half) for half in (signature[:32], signature[32:]))
    der = utils.encode_dss_signature(*halves)
    private_key("ec-assertion").public_key().verify(der, signed, ec.ECDSA(SHA256()))


def test_an_assertion_may_be_in_a_file_that_is_read_for_each_request(tmp_path: Path) -> None:
    file = tmp_path / "assertion"
    file.write_text("aaa.bbb.ccc\n")
    expired = (200, json.dumps({"access_token": "t0ken", "expires_in": 1e-9}).encode())
    with serving(expired) as provider:
        for text in ("aaa.bbb.ccc", "ddd.eee.fff"):
            file.write_text(f"{text}\n")
            token(provider, sasl_oauthbearer_jwt_retriever_class=BEARER, **claims_by(file=str(file)))
            assert form_of(provider)["assertion"] == text
            provider.requests.clear()


@pytest.mark.parametrize("what", ["assertion", "key", "template", "passphrase", "kind of key"])
def test_a_wrong_file_is_named_and_neither_sent_nor_shown(what: str, tmp_path: Path, key_file: str) -> None:
    file = tmp_path / "passwd"
    file.write_text("root:pl4nted:0:0:root:/root:/bin/sh\n")
    given = claims_by(private_key_file=key_file)
    wrong = {
        "assertion": claims_by(file=str(file)),
        "key": claims_by(private_key_file=str(file)),
        "template": {f"{ASSERTION}.template.file": str(file)},
        "passphrase": claims_by(
            private_key_file=pem_file(tmp_path, "rsa-closed", "x"), private_key_passphrase="pl4nted"
        ),
        "kind of key": claims_by(algorithm="ES256"),
    }[what]
    with serving(ANSWER) as provider:
        with pytest.raises(SaslAuthenticationFailed, match=r"; check sasl\.oauthbearer\.assertion") as refused:
            token(provider, sasl_oauthbearer_jwt_retriever_class=BEARER, **{**given, **wrong})
        assert not provider.requests
    assert "pl4nted" not in str(refused.value)


def test_an_endpoint_that_refuses_an_assertion_is_named(key_file: str) -> None:
    with (
        serving((401, b'{"error": "invalid_client"}')) as provider,
        pytest.raises(SaslAuthenticationFailed, match="HTTP status 401") as refused,
    ):
        token(provider, sasl_oauthbearer_jwt_retriever_class=BEARER, **claims_by(private_key_file=key_file))
    assert form_of(provider)["assertion"] not in str(refused.value)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"sasl_oauthbearer_jwt_retriever_class": BEARER}, r"assertion\.private\.key\.file"),
        ({"sasl_oauthbearer_jwt_retriever_class": "com.attacker.Retriever"}, "no class is loaded"),
        ({"sasl_oauthbearer_jwt_retriever_class": "FileJwtRetriever"}, "begins with file://"),
        ({"sasl_oauthbearer_grant_type": JWT_BEARER}, r"assertion\.private\.key\.pem"),
        ({"sasl_oauthbearer_grant_type": "password"}, "client_credentials"),
        (
            {"sasl_oauthbearer_grant_type": "client_credentials", "sasl_oauthbearer_jwt_retriever_class": BEARER},
            "differ; give one of them",
        ),
        (
            claims_by(private_key_file="k", private_key_pem="k", claim_iss="me"),
            r"private\.key\.file and .*private\.key\.pem are both set; give one",
        ),
        ({"sasl_oauthbearer_metadata_authentication_type": "azure_imds"}, "ask it in a function, and give that as"),
        ({"sasl_oauthbearer_metadata_authentication_type": "aws_iam"}, "ask it in a function, and give that as"),
        ({"sasl_oauthbearer_metadata_authentication_type": "gcp"}, "azure_imds"),
        (claims_by(algorithm="none", private_key_file="k", claim_iss="me"), "RS256, ES256"),
        (claims_by(private_key_file="k", claim_iss="me", claim_exp_seconds="86401"), "86400"),
    ],
)
def test_a_wrong_setting_ends_the_making_of_the_client(given: dict[str, str], text: str) -> None:
    with serving(ANSWER) as provider, pytest.raises(ConfigError, match=text):
        token(provider, **given)
