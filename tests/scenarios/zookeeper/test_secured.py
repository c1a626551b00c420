"""Sessions with a ZooKeeper that asks who a broker is: by TLS, by SASL, right and wrong."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import authorities
import pytest
import secured_zookeeper
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificates
from secured_zookeeper import OTHER, PASSWORD, Secured, login

from logkernel.contracts import MetadataChange
from logkernel.errors import ClusterAuthorizationFailed, ConfigError, KafkaStorageError
from logkernel.plugins.transport.zookeeper import SETTINGS
from logkernel.plugins.transport.zookeeper.options import Options
from logkernel.plugins.transport.zookeeper.session import ZooKeeperSession

JAAS = "zookeeper.sasl.jaas.config"


@pytest.fixture(scope="module")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured_zookeeper.secured(tmp_path_factory.mktemp("secured")) as found:
        yield found


def session(zookeeper: Secured, address: str, **more: Any) -> ZooKeeperSession:
    defaults = {row.name: row.typed(row.default) if row.default is not None else None for row in SETTINGS}
    own = {
        "zookeeper.connect": address, "zookeeper.session.timeout.ms": 4_000, "zookeeper.connection.timeout.ms": 20_000,
    }  # fmt: skip
    return ZooKeeperSession(Options.of(defaults | own | more))


def tls(zookeeper: Secured, **more: Any) -> dict[str, Any]:
    rows = {
        "zookeeper.ssl.client.enable": True,
        "zookeeper.ssl.truststore.location": str(zookeeper.ca),
        "zookeeper.ssl.keystore.location": str(zookeeper.certificate),
    }
    return {name: value for name, value in (rows | more).items() if value is not None}


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_session_proves_who_it_is_to_a_server_that_does(zookeeper: Secured, version: str) -> None:
    more = tls(zookeeper, **{"zookeeper.ssl.protocol": version, JAAS: f"Client {{ {login()} }};"})
    found = session(zookeeper, f"{zookeeper.secure}/{version}", **more)
    try:
        assert found.campaign(1) == 1
        assert found.read_controller() == (1, 1)
    finally:
        found.close()


def test_stores_of_java_hold_the_certificates(zookeeper: Secured, tmp_path: Path) -> None:
    identity = authorities.certified("broker")
    own, *others = load_pem_x509_certificates(identity.chain.encode())
    key = load_pem_private_key(identity.key.encode(), None)
    (ca,) = load_pem_x509_certificates(authorities.ca_pem().encode())
    secret = BestAvailableEncryption(b"planted-secret")
    (tmp_path / "key.p12").write_bytes(pkcs12.serialize_key_and_certificates(b"broker", key, own, others, secret))  # type: ignore[arg-type]
    trust = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(ca, b"ca")], secret)
    (tmp_path / "trust.p12").write_bytes(trust)
    stores = {
        f"zookeeper.ssl.{kind}store.{what}": value
        for kind, name in (("key", "key.p12"), ("trust", "trust.p12"))
        for what, value in (("location", str(tmp_path / name)), ("password", "planted-secret"))
    }
    session(zookeeper, f"{zookeeper.secure}/p12", **tls(zookeeper, **stores)).close()
    with pytest.raises(ConfigError, match=r"TLS to ZooKeeper, by the settings zookeeper\.ssl\.\*: .*key\.p12") as told:
        session(zookeeper, zookeeper.secure, **tls(zookeeper, **stores | {"zookeeper.ssl.keystore.password": "wrong"}))
    assert "planted-secret" not in str(told.value)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (
            {"zookeeper.ssl.truststore.location": None},
            r"the certificate of 127\.0\.0\.1:\d+ is not trusted: .*; put the CA of its certificate into",
        ),
        (
            {"zookeeper.connect": "localhost:PORT"},
            r"the certificate of localhost:\d+ is not trusted: .*; name it in zookeeper\.connect as its certificate",
        ),
        (
            {"zookeeper.ssl.keystore.location": None},
            r"127\.0\.0\.1:\d+ refuses TLS \(.*\); give a certificate that it trusts by zookeeper\.ssl\.keystore",
        ),
    ],
    ids=["a server that nobody vouches for", "a server of another name", "a broker without a certificate"],
)
def test_a_certificate_that_is_not_right_ends_the_start_at_once(
    zookeeper: Secured, wrong: dict[str, Any], told: str
) -> None:
    wrong = {name: value and value.replace("PORT", str(zookeeper.secure_port)) for name, value in wrong.items()}
    endless = {"zookeeper.connection.timeout.ms": 30_000}
    with pytest.raises(KafkaStorageError, match=f"ZooKeeper gave no session: {told}"):
        session(zookeeper, zookeeper.secure, **endless, **tls(zookeeper, **wrong))


def test_a_server_of_another_name_is_taken_where_names_do_not_matter(zookeeper: Secured) -> None:
    any_name = {"zookeeper.ssl.endpoint.identification.algorithm": ""}
    session(zookeeper, f"localhost:{zookeeper.secure_port}", **tls(zookeeper, **any_name)).close()


def test_a_port_of_the_other_kind_is_named(zookeeper: Secured) -> None:
    """A server that starts may end connections, too: so it is waited for, as long as the settings say."""
    for address, more, said in (
        (zookeeper.secure, {}, "ended the connection; if this is ZooKeeper's secureClientPort, set"),
        (zookeeper.plain, tls(zookeeper), "ended the TLS connection; name ZooKeeper's secureClientPort in"),
    ):
        for wait_ms in (700, 7_000, 60_000):  # the next one where a slow machine has not heard the server's end in time
            with pytest.raises(KafkaStorageError) as told:
                session(zookeeper, address, **more, **{"zookeeper.connection.timeout.ms": wait_ms})
            if said in str(told.value):
                break
        assert said in str(told.value)


def test_a_wrong_password_ends_the_start_at_once_and_is_shown_nowhere(
    zookeeper: Secured, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = {JAAS: login(password="planted-wrong"), "zookeeper.connection.timeout.ms": 30_000}
    with pytest.raises(KafkaStorageError, match=r"refuses the login of 'brokers' by DIGEST-MD5; correct") as told:
        session(zookeeper, zookeeper.plain, **wrong)
    session(zookeeper, zookeeper.plain, **{JAAS: login()}).close()
    assert "planted" not in f"{told.value!r} {caplog.text}"


def test_nodes_with_acls_are_for_the_user_that_made_them(zookeeper: Secured) -> None:
    own = {"zookeeper.set.acl": True, JAAS: login()}
    first = session(zookeeper, f"{zookeeper.plain}/acl", **own)
    first.campaign(1)
    first.commit([MetadataChange("config", "broker:1", {"log.cleaner.threads": "2"})])
    for wrong in ({}, {JAAS: login(OTHER, "another")}):
        other = session(zookeeper, f"{zookeeper.plain}/acl", **wrong)
        assert other.read_controller() == (1, 1)
        with pytest.raises(ClusterAuthorizationFailed, match="log in as the user that made them"):
            other.campaign(2)
        with pytest.raises(ClusterAuthorizationFailed, match="log in as the user that made them"):
            list(other.changes({"config"}))
        other.close()
    first.close()


def test_nodes_that_were_open_before_are_told_of(zookeeper: Secured, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever makes a node first keeps it: with an ACL, only what is made from then on is protected."""
    first = session(zookeeper, f"{zookeeper.plain}/open")
    first.campaign(1)
    first.close()
    own = {"zookeeper.set.acl": True, JAAS: login()}
    second = session(zookeeper, f"{zookeeper.plain}/open", **own)
    second.campaign(2)
    second.close()
    (told,) = [record.getMessage() for record in caplog.records if "set.acl" in record.getMessage()]
    assert "/config/users, " in told
    assert "/consumers" not in told, "that one is for anybody"
    caplog.clear()
    third = session(zookeeper, f"{zookeeper.plain}/closed", **own)
    third.campaign(1)
    third.close()
    assert "set.acl" not in caplog.text


def test_a_login_that_is_refused_later_is_tried_again_by_a_new_session(zookeeper: Secured) -> None:
    """kazoo tries no more after a refusal; what renewed the session waited for it for ever."""
    rows = dict(_with(login())) | {"zookeeper.connect": zookeeper.plain}
    options, wrong = Options.of(rows), Options.of(rows | {JAAS: login(password="wrong")})
    right = options.login
    found = ZooKeeperSession(options)
    object.__setattr__(options, "login", wrong.login)
    for _ in range(2):
        assert "refuses the login" in str(renewed(found))
    object.__setattr__(options, "login", right)
    session_again = renewed(found)
    assert isinstance(session_again, ZooKeeperSession)
    session_again.close()


def renewed(found: ZooKeeperSession) -> ZooKeeperSession | KafkaStorageError:
    """A new session, or why there is none; until then nobody has answered yet."""
    while True:
        try:
            return found.renew()
        except KafkaStorageError as error:
            if "does not answer" not in str(error):
                return error


def _with(jaas: str) -> Iterator[tuple[str, Any]]:
    yield from ((row.name, row.typed(row.default) if row.default is not None else None) for row in SETTINGS)
    yield from (("zookeeper.connect", "h"), (JAAS, jaas))


def test_no_options_show_a_secret() -> None:
    shown = repr(Options.of(dict(_with(login())) | {"logkernel.zookeeper.digest": f"u:{PASSWORD}"}))
    assert "brokers" in shown
    assert PASSWORD not in shown
