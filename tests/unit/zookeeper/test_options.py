"""Settings to what a connection needs."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from logkernel.errors import ConfigError
from logkernel.plugins.transport.zookeeper import SETTINGS
from logkernel.plugins.transport.zookeeper.options import Address, KerberosLogin, Login, Options

DEFAULTS = {row.name: row.typed(row.default) if row.default is not None else None for row in SETTINGS}


@pytest.mark.parametrize(
    ("text", "hosts", "chroot"),
    [
        ("h", "h:2181", ""),
        ("h1:1, h2", "h1:1,h2:2181", ""),
        ("h1:1,h2:2/kafka/a/", "h1:1,h2:2", "/kafka/a"),
        ("[::1]:2181/", "[::1]:2181", ""),
        ("[::1]", "[::1]:2181", ""),
    ],
)
def test_addresses_are_kafkas(text: str, hosts: str, chroot: str) -> None:
    assert Address.parse(text) == Address(hosts, chroot)


@pytest.mark.parametrize("text", ["", ":2181", "h:x", "h:0", "h:99999", "h,,g", "h/a/../b", "h/./b", "u:p@h"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.connect"):
        Address.parse(text)


def of(**more: Any) -> Options:
    named = {name.replace("_", "."): value for name, value in more.items()}
    return Options.of(DEFAULTS | {"zookeeper.connect": "h"} | named)


def test_settings_have_kafkas_defaults() -> None:
    options = of()
    assert (options.session_timeout_ms, options.connection_timeout_ms, options.in_flight) == (18_000, 18_000, 10)
    assert of(zookeeper_connection_timeout_ms=5).connection_timeout_ms == 5
    assert options.answer_s == 3
    assert options.lost_s == 12
    assert of(zookeeper_session_timeout_ms=600).answer_s == 0.3


def test_what_cannot_be_is_refused_with_the_remedy() -> None:
    with pytest.raises(ConfigError, match=r"needs zookeeper\.connect; set it to h1:2181"):
        Options.of(DEFAULTS)
    with pytest.raises(ConfigError, match=r"needs a user; set zookeeper\.sasl\.jaas\.config or logkernel"):
        of(zookeeper_set_acl=True)
    with pytest.raises(ConfigError, match="has no password"):
        of(logkernel_zookeeper_digest="user")


def test_only_brokers_read_what_is_of_users() -> None:
    options = of(zookeeper_set_acl=True, logkernel_zookeeper_digest="u:p")
    assert options.acl("/config/users/a") == [(31, "auth", "")]
    assert options.acl("/config/brokers/1") == [(31, "auth", "")]
    assert options.acl("/brokers/ids") == [(31, "auth", ""), (1, "world", "anyone")]
    assert options.acl("/consumers") is None
    assert of().acl("/brokers/ids") is None


LOGIN = 'org.apache.zookeeper.server.auth.DigestLoginModule required username="k" password="planted; }";'
FILE = f"""
// Client {{ of a comment }}
KafkaServer {{ a.b.C required password="}} Client {{"; }};
Client {{
    /* ours */ {LOGIN}
}};
"""


@pytest.mark.parametrize("text", [LOGIN, f"Client {{{LOGIN}}};", FILE])
def test_a_login_is_kafkas_section_or_its_whole_file(text: str) -> None:
    found = of(zookeeper_sasl_jaas_config=text, zookeeper_set_acl=True).login
    assert isinstance(found, Login)
    assert (found.user, found.password.reveal()) == ("k", "planted; }")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("KafkaServer { a.b.C required; };", "has sections, and none is called Client"),
        (LOGIN.replace("username", "user"), "username is missing"),
        (LOGIN.replace("password=", "pass="), "password is missing"),
        (LOGIN.replace("DigestLoginModule", "Evil"), "no class is loaded by its name; use one of org.apache.zookeeper"),
        (LOGIN.rstrip(";"), "the semicolon at the end is missing"),
    ],
)
def test_a_login_that_is_none_is_refused_without_its_password(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=r"zookeeper\.sasl\.jaas\.config") as refused:
        of(zookeeper_sasl_jaas_config=text)
    assert told in str(refused.value)
    assert "planted" not in str(refused.value)


KERBEROS = 'com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true principal="kafka/h@T";'


def test_a_login_by_kerberos_names_its_principal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", ModuleType("gssapi"))
    found = of(zookeeper_sasl_jaas_config=f"Client {{ {KERBEROS} }};", zookeeper_set_acl=True).login
    assert isinstance(found, KerberosLogin)
    assert (found.mechanism, found.user) == ("GSSAPI", "kafka/h@T")


def test_a_login_by_kerberos_that_cannot_be_is_refused_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", ModuleType("gssapi"))
    for wrong, told in (
        ("useKeyTab=true keyTab=k", r"without a principal; write principal=.* in zookeeper\.sasl\.jaas\.config"),
        ("keyTab=k", r"zookeeper\.sasl\.jaas\.config: only one of useKeyTab=true and keyTab"),
        ("doNotPrompt=true", r"zookeeper\.sasl\.jaas\.config: Krb5LoginModule has neither a keytab nor"),
        ('useKeyTab=true keyTab="/nowhere" principal=a', "cannot read the keytab '/nowhere'; name a file"),
    ):
        with pytest.raises(ConfigError, match=told):
            of(zookeeper_sasl_jaas_config=KERBEROS.partition("useTicket")[0] + f"{wrong};")
    monkeypatch.setitem(sys.modules, "gssapi", None)  # as if it was not installed
    with pytest.raises(ConfigError, match=r"cannot be imported .*; install logkernel\[kerberos\]"):
        of(zookeeper_sasl_jaas_config=KERBEROS)


def test_stores_have_the_type_that_their_names_end_with() -> None:
    tls = of(
        zookeeper_ssl_client_enable=True,
        **{"zookeeper.ssl.truststore.location": "/a/t.JKS", "zookeeper.ssl.keystore.location": "/a/k.pfx"},
    ).tls
    assert tls is not None
    assert (tls.ssl_truststore_type, tls.ssl_keystore_type) == ("JKS", "PKCS12")
    with pytest.raises(
        ConfigError, match=r"keystore\.location=/a/keys: its type is not known; set zookeeper\.ssl\.key"
    ):
        of(zookeeper_ssl_client_enable=True, **{"zookeeper.ssl.keystore.location": "/a/keys"})


def test_a_certificate_is_a_user_for_acls() -> None:
    assert of(zookeeper_set_acl=True, zookeeper_ssl_client_enable=True, **{"zookeeper.ssl.keystore.location": "/k.pem"})
