"""`ClientSecurity`: what settings by Kafka's and by librdkafka's names ask for, and what is wrong with them."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import logkernel
from logkernel.errors import ConfigError
from logkernel.security import login
from logkernel.security.client_table import CLIENT_SECURITY
from logkernel.security.settings import ClientSecurity, is_secret
from logkernel.vocabulary import SECURITY_PROTOCOLS, Secret

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
SECRET = "hunter2-planted"


def of(**given: Any) -> ClientSecurity:
    """By keywords, with `_` for `.`."""
    found = ClientSecurity.of({name.replace("_", "."): value for name, value in given.items()})
    assert found is not None
    return found


def plain(**more: Any) -> ClientSecurity:
    return of(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", **more)


def test_plain_text_has_no_security() -> None:
    for given in ({}, {"security.protocol": "PLAINTEXT"}, {"security.protocol": "plaintext", "sasl.username": "u"}):
        assert ClientSecurity.of(given) is None


@pytest.mark.parametrize("protocol", SECURITY_PROTOCOLS[1:])
def test_a_protocol_says_whether_there_are_tls_and_sasl(protocol: str) -> None:
    found = of(security_protocol=protocol.lower(), sasl_mechanism="PLAIN", sasl_username="u", sasl_password="p")
    assert (found.tls is not None) == protocol.endswith("SSL")
    assert (found.mechanism_name == "PLAIN") == protocol.startswith("SASL")
    assert found.checks_host == protocol.endswith("SSL")


@pytest.mark.parametrize(
    "login",
    [
        {"sasl_username": "alice", "sasl_password": "s3cret"},
        {"sasl_username": "alice", "sasl_password": Secret("s3cret")},
        {"sasl_jaas_config": f'{PLAIN} required username="alice" password="s3cret";'},
        {"sasl_jaas_config": Secret(f'{PLAIN} required username="alice" password="s3cret";'), "sasl_username": "alice"},
    ],
)
def test_a_login_of_plain_is_understood(login: dict[str, Any]) -> None:
    assert plain(**login).mechanism("broker").respond(b"") == b"\0alice\0s3cret"


def test_librdkafkas_name_of_the_mechanism_is_understood() -> None:
    found = of(security_protocol="sasl_plaintext", sasl_mechanisms="PLAIN", sasl_username="u", sasl_password="p")
    assert found.mechanism_name == "PLAIN"


@pytest.mark.parametrize("name", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_login_of_scram_is_understood(name: str) -> None:
    config = f'{SCRAM} required username="alice" password="x";'
    mechanism = of(security_protocol="SASL_PLAINTEXT", sasl_mechanism=name, sasl_jaas_config=config).mechanism("h")
    assert mechanism.name == name
    assert (mechanism.respond(b"") or b"").startswith(b"n,,n=alice,r=")


def test_a_delegation_token_logs_in_by_scram() -> None:
    config = f'{SCRAM} required username="id" password="hmac" tokenauth="true";'
    found = of(security_protocol="SASL_PLAINTEXT", sasl_mechanism="SCRAM-SHA-256", sasl_jaas_config=config)
    assert (found.mechanism("h").respond(b"") or b"").endswith(b",tokenauth=true")


def test_each_authentication_has_a_mechanism_of_its_own() -> None:
    found = plain(sasl_username="u", sasl_password="p")
    assert found.mechanism("h").respond(b"") == found.mechanism("h").respond(b"")


def test_clients_with_the_same_settings_share_their_security() -> None:
    given = {"sasl_username": "u", "sasl_password": Secret("p")}
    assert plain(**given) is plain(**given)
    assert plain(**given) is not plain(**{**given, "sasl_password": Secret("q")})


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ({"security_protocol": "TLS"}, "one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (
            {"security_protocol": "SASL_SSL", "sasl_jaas_config": f"{PLAIN} required username=a password=b;"},
            "login is for PLAIN",
        ),
        ({"security_protocol": "SASL_SSL", "sasl_username": "u", "sasl_password": SECRET}, "GSSAPI, Kafka's default"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "scram-sha-512"}, "did you mean SCRAM-SHA-512"),
        ({"security_protocol": "SASL_SSL", "sasl_mechanism": "CRAM-MD5"}, "no such mechanism"),
        ({"sasl_mechanism": "PLAIN"}, "sasl.username is not set"),
        ({"sasl_mechanism": "PLAIN", "sasl_username": "u"}, "sasl.password is not set"),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": f"{SCRAM} required username=a password={SECRET};"}, "SCRAM"),
        ({"sasl_mechanism": "PLAIN", "sasl_jaas_config": f"{PLAIN} required username=a;"}, "has no password"),
        (
            {
                "sasl_mechanism": "PLAIN",
                "sasl_username": "b",
                "sasl_jaas_config": f"{PLAIN} required username=a password={SECRET};",
            },
            "differ",
        ),
        (
            {
                "sasl_mechanism": "PLAIN",
                "sasl_password": SECRET,
                "sasl_jaas_config": f"{PLAIN} required username=a password=b;",
            },
            "differ",
        ),
        ({"sasl_mechanism": "PLAIN", "sasl_mechanisms": "SCRAM-SHA-256"}, "mean the same, and differ"),
        ({"ssl_key_pem": SECRET, "ssl_keystore_key": "other"}, "mean the same, and differ"),
        ({"security_protocol": "SSL", "ssl_keystore_key": SECRET}, "ssl.keystore.certificate.chain is set; set both"),
        (
            {"security_protocol": "SSL", "ssl_truststore_location": "a", "ssl_truststore_certificates": SECRET},
            "both set",
        ),
        ({"security_protocol": "SSL", "ssl_endpoint_identification_algorithm": "http"}, "https"),
        ({"security_protocol": "SSL", "enable_ssl_certificate_verification": "perhaps"}, "true or false"),
        ({"security_protocol": "SSL", "ssl_truststore_type": "PEM", "ssl_truststore_location": "/gone"}, "cannot read"),
    ],
)
def test_what_is_wrong_is_refused_with_the_remedy(given: dict[str, Any], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        of(**{"security_protocol": "SASL_PLAINTEXT", **given}).context()
    assert SECRET not in str(refused.value)
    assert "; " in str(refused.value), "a remedy"


def test_kafkas_default_mechanism_is_refused_where_its_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(login, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"GSSAPI, Kafka's default, which needs .* gssapi; install logkernel\[kerber"):
        of(security_protocol="SASL_SSL")


@pytest.mark.parametrize("algorithm", ["none", ""])
def test_any_host_will_do_where_that_is_asked_for(algorithm: str) -> None:
    found = of(security_protocol="SSL", ssl_endpoint_identification_algorithm=algorithm)
    assert not found.checks_host
    assert not found.context().check_hostname


def test_no_certificate_is_checked_where_that_is_asked_for() -> None:
    context = of(security_protocol="SSL", enable_ssl_certificate_verification="false").context()
    assert (context.check_hostname, context.verify_mode) == (False, 0)
    context = of(security_protocol="SSL").context()
    assert (context.check_hostname, context.verify_mode) == (True, 2)


def test_no_secret_is_shown_by_repr() -> None:
    secrets = {setting.name.replace(".", "_"): SECRET for setting in CLIENT_SECURITY if setting.sensitive}
    secrets["sasl_jaas_config"] = f"{PLAIN} required username=a password={SECRET};"
    del secrets["ssl_truststore_certificates"], secrets["ssl_keystore_key"]
    del secrets["ssl_keystore_certificate_chain"]
    found = of(security_protocol="SASL_SSL", sasl_mechanism="PLAIN", **secrets)
    assert SECRET not in f"{found!r} {found.tls!r} {vars(found)}"


def test_settings_that_are_secret_are_known_by_both_names() -> None:
    assert is_secret("sasl.jaas.config")
    assert is_secret("ssl.key.pem")
    assert not is_secret("sasl.username")
    assert not is_secret("linger.ms")


@pytest.mark.parametrize("name", ["ssl.ca.location", "ssl_ca_location", "ssl.truststore.location"])
def test_a_missing_file_is_named_by_the_setting_that_was_given(name: str) -> None:
    with pytest.raises(ConfigError) as refused:
        logkernel.connect("localhost:1", **{"security_protocol": "SSL", name: "/nope/ca.pem"})
    assert f"{name.replace('_', '.')}=/nope/ca.pem" in str(refused.value)


def test_a_misspelt_protocol_is_told_its_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean SASL_SSL"):
        logkernel.connect("localhost:1", security_protocol="SASL-SSL")


@pytest.mark.parametrize(("value", "warned"), [("oidc", False), ("OIDC", False), ("default", True)])
def test_librdkafkas_method_of_a_token_endpoint_is_taken_in_silence(value: str, warned: bool) -> None:
    given = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.oauthbearer.token.endpoint.url": "http://localhost:1/token",
        "sasl.oauthbearer.client.id": "me",
        "sasl.oauthbearer.client.secret": SECRET,
        "sasl.oauthbearer.method": value,
    }
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        logkernel.connect("localhost:1", **given).close()
    assert bool(found) is warned


def test_a_misspelt_name_of_librdkafkas_is_told_its_nearest() -> None:
    """It was told `ssl.key.location`, as only Kafka's names were looked at."""
    with pytest.raises(ConfigError, match=r"did you mean ssl\.ca\.location"):
        logkernel.connect("localhost:1", **{"security.protocol": "SSL", "ssl.ca.locaton": "ca.pem"})
