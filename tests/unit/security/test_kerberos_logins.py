"""Settings of Kerberos, without Kerberos. `tests/interop/test_gssapi.py` has a KDC."""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from logkernel.errors import ConfigError, NetworkException
from logkernel.security import jaas
from logkernel.security.kerberos import gss, logins
from logkernel.security.kerberos.asking import Asking
from logkernel.security.sasl.gssapi import GssError

MODULE = "com.sun.security.auth.module.Krb5LoginModule required"
KEYTAB = 'useKeyTab=true keyTab="KEYTAB"'
ALICE = 'principal="alice@T"'


class Initiated(Exception):
    """What a context was asked for."""


@pytest.fixture
def keytab(tmp_path: Path) -> str:
    path = tmp_path / "alice.keytab"
    path.touch()
    return str(path)


def initiated(monkeypatch: pytest.MonkeyPatch, login: str | None, given: dict[str, str]) -> tuple[Any, str, str]:
    """Tickets, service and host of a client with these settings."""

    def initiator(tickets: Any, service: str, host: str) -> Any:
        raise Initiated(tickets, service, host)

    monkeypatch.setattr(gss, "initiator", initiator)
    values = {name: given.get(name) for name in (logins.SERVICE, logins.PRINCIPAL, logins.KEYTAB)}
    module = jaas.parse(f"{MODULE} {login};") if login is not None else None
    with pytest.raises(Initiated) as made:
        logins.client_of(module, values)("broker1").respond(b"")
    tickets, service, host = made.value.args
    return tickets, service, host


@pytest.mark.parametrize(
    ("login", "given", "kinds"),
    [
        (f"{KEYTAB} {ALICE} storeKey=true", {logins.SERVICE: "kafka"}, [gss.KeytabTickets]),
        (f"{KEYTAB} {ALICE} serviceName=kafka", {logins.PRINCIPAL: "alice@T"}, [gss.KeytabTickets]),
        (f"{KEYTAB} {ALICE} useTicketCache=true", {logins.SERVICE: "kafka"}, [gss.CachedTickets, gss.KeytabTickets]),
        ('useTicketCache=true ticketCache="/c"', {logins.SERVICE: "kafka"}, [gss.CachedTickets]),
        (None, {logins.SERVICE: "kafka", logins.KEYTAB: "KEYTAB", logins.PRINCIPAL: "alice"}, [gss.KeytabTickets]),
        (None, {logins.SERVICE: "kafka"}, [gss.CachedTickets]),
    ],
)
def test_tickets_come_from_where_the_settings_say(
    monkeypatch: pytest.MonkeyPatch, keytab: str, login: str | None, given: dict[str, str], kinds: list[type]
) -> None:
    given = {name: text.replace("KEYTAB", keytab) for name, text in given.items()}
    login = login and login.replace("KEYTAB", keytab)
    tickets, service, host = initiated(monkeypatch, login, given)
    assert (service, host) == ("kafka", "broker1")
    assert [type(one) for one in tickets.sources] == kinds


def test_a_login_gives_a_silent_kdc_up(monkeypatch: pytest.MonkeyPatch, keytab: str) -> None:
    end = threading.Event()
    monkeypatch.setattr(gss, "package", lambda: None)
    monkeypatch.setattr(gss, "initiator", lambda *given: end.wait())
    monkeypatch.setattr(logins, "Asking", partial(Asking, 0.01))
    module = jaas.parse(f"{MODULE} {KEYTAB.replace('KEYTAB', keytab)} {ALICE} serviceName=kafka;")
    values = {logins.SERVICE: None, logins.PRINCIPAL: None, logins.KEYTAB: None}
    for new in (logins.client_of(module, values), logins.client_of_module(module, "zookeeper.sasl.jaas.config", "zk")):
        with pytest.raises(NetworkException, match=r"no KDC answers within 0\.01 s; start a KDC, or correct"):
            new("broker1").respond(b"")
    end.set()


WRONG_CLIENTS: dict[str, tuple[str | None, dict[str, str], str]] = {
    "no service": (f"{KEYTAB} {ALICE}", {}, r"needs sasl\.kerberos\.service\.name"),
    "two services": (f"{KEYTAB} {ALICE} serviceName=a", {logins.SERVICE: "b"}, "serviceName of .* differ"),
    "neither": ("doNotPrompt=true", {logins.SERVICE: "kafka"}, "neither a keytab nor a ticket cache"),
    "no useKeyTab": (f'keyTab="k" {ALICE}', {logins.SERVICE: "kafka"}, "only one of useKeyTab=true and keyTab"),
    "no keyTab": (f"useKeyTab=true {ALICE}", {logins.SERVICE: "kafka"}, "only one of useKeyTab=true and keyTab"),
    "no principal": (KEYTAB, {logins.SERVICE: "kafka"}, "without a principal"),
    "no principal for librdkafka": (None, {logins.SERVICE: "kafka", logins.KEYTAB: "k"}, "without a principal"),
    "another principal": (
        f"{KEYTAB} {ALICE}", {logins.SERVICE: "kafka", logins.PRINCIPAL: "bob"}, "sasl.kerberos.principal differ",
    ),
    "another keytab": (f"{KEYTAB} {ALICE}", {logins.SERVICE: "kafka", logins.KEYTAB: "k"}, "kerberos.keytab differ"),
    "no such keytab": (
        f'useKeyTab=true keyTab="/nowhere/k" {ALICE}', {logins.SERVICE: "kafka"}, "cannot read the keytab '/nowhere/k'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG_CLIENTS)
def test_a_wrong_login_of_a_client_is_refused_with_the_remedy(case: str, keytab: str) -> None:
    login, given, why = WRONG_CLIENTS[case]
    values = {name: given.get(name) for name in (logins.SERVICE, logins.PRINCIPAL, logins.KEYTAB)}
    module = None if login is None else jaas.parse(f"{MODULE} {login.replace('KEYTAB', keytab)};")
    with pytest.raises(ConfigError, match=f"{why}.*; "):
        logins.client_of(module, values)


PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule required user_a=b;"


@pytest.mark.parametrize(
    ("login", "why"),
    [
        (None, "has no keytab; give com.sun"),
        (PLAIN, "has no keytab; give com.sun"),
        (f"{MODULE} useTicketCache=true;", "has no keytab; give com.sun"),
        (f'{MODULE} useKeyTab=true keyTab="k";', "has no principal; write"),
        (f'{MODULE} useKeyTab=true keyTab="k" principal="*";', "has no principal; write"),
        (f'{MODULE} keyTab="k" principal="kafka/h@T";', "only one of useKeyTab=true and keyTab"),
    ],
)
def test_a_wrong_login_of_a_listener_is_refused_with_the_remedy(login: str | None, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        logins.server_of(login, {"sasl.kerberos.principal.to.local.rules": "DEFAULT"}, lambda: 0)


def test_without_its_package_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)  # as if it was not installed
    login = f'{MODULE} useKeyTab=true keyTab="k" principal="kafka/h@T";'
    with pytest.raises(ConfigError, match=r"cannot be imported .*; install logkernel\[kerberos\], or"):
        logins.server_of(login, {"sasl.kerberos.principal.to.local.rules": "DEFAULT"}, lambda: 0)


class Source:
    def __init__(self, found: str | None) -> None:
        self._found = found

    def current(self) -> str:
        if self._found is None:
            raise GssError("none here")
        return self._found


def test_the_first_tickets_that_there_are_count() -> None:
    assert gss.FirstOf(Source(None), Source("keytab's")).current() == "keytab's"
    assert gss.FirstOf(Source("cache's"), Source("keytab's")).current() == "cache's"
    with pytest.raises(GssError, match="none here"):
        gss.FirstOf(Source(None), Source(None)).current()


@pytest.mark.parametrize(
    ("name", "read"), [("/a/b:c", "FILE:/a/b:c"), ("a", "FILE:a"), ("FILE:/a", "FILE:/a"), ("KCM:", "KCM:")]
)
def test_a_keytab_or_cache_may_begin_with_its_kind(name: str, read: str) -> None:
    assert gss.file_of(name) == read
