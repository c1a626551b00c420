"""Passwords checked by a plugin of an outside distribution: who is let in, and what a bad one costs."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.outside_distribution import outside_distribution

import logkernel
from logkernel.broker.build import build
from logkernel.contracts import Login
from logkernel.errors import PluginError, SaslAuthenticationFailed, TopicAuthorizationFailed
from logkernel.guards.password_checker import GuardedPasswordChecker
from logkernel.plugin_faults import Origin, PluginFaults
from logkernel.vocabulary import Secret

HANDLER = "listener.name.out.plain.sasl.server.callback.handler.class"
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
SECRET = "planted-3f1c"
PLUGIN = f'''
import threading

from logkernel import hookimpl


class Moody:
    def __init__(self, settings):
        self.node = settings.get("node.id")

    def check(self, login):
        password = login.password.reveal()
        if login.username == "hang":
            threading.Event().wait()
        if login.username == "fail":
            raise RuntimeError("no directory for " + repr(login))
        if login.username == "tell":
            raise RuntimeError("no directory for " + password)
        if login.username == "odd":
            return None
        right = password == "{SECRET}" and login.listener == "OUT" and login.client_host == "127.0.0.1"
        return "ann" if right and login.username == "a.nn@example.com" else right


@hookimpl
def logkernel_password_checker(name, settings):
    return Moody(settings) if name == "moody" else None


@hookimpl
def logkernel_names():
    return [("password checker", "moody")]
'''


@pytest.fixture
def broker(start_broker: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("PYTHONPATH", outside_distribution(tmp_path / "site", "acme-moody", PLUGIN))
    settings = {
        "listener.security.protocol.map": "OUT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "connection.failed.authentication.delay.ms": "1",
        "logkernel.password.check.timeout.ms": "2000",
        "authorizer.class.name": "standard",
        "super.users": "User:ann",
        HANDLER: "moody",
    }
    given = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    return start_broker(*given, listen="OUT://127.0.0.1:0")


def create(broker: Any, user: str, password: str = SECRET) -> list[str]:
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
    }
    with logkernel.connect(broker.bootstrap, **login) as log, log.admin() as admin:
        return list(admin.create_topics("orders"))


def test_a_plugin_says_who_is_let_in_and_a_bad_login_is_its_own_affair(broker: Any) -> None:
    """More logins hang than threads of a listener may run at once."""
    for user in ("fail", "tell"):  # the first faults of a place are logged, whatever the order of the others
        with pytest.raises(SaslAuthenticationFailed):
            create(broker, user)
    with ThreadPoolExecutor(20) as pool:
        refused = [pool.submit(create, broker, user) for user in ["hang"] * 18 + ["odd"]]
        refused.append(pool.submit(create, broker, "ann", "wrong"))
        failures = [future.exception() for future in refused]
    assert all(isinstance(error, SaslAuthenticationFailed) for error in failures), failures
    assert create(broker, "a.nn@example.com") == ["orders"]  # known as ann, who may do everything
    with pytest.raises(TopicAuthorizationFailed):
        create(broker, "bob")
    broker.end()
    said = broker.log()
    assert "plugin failed: plugin=acme-moody distribution=acme-moody" in said
    assert "raised RuntimeError with the password in its text" in said
    assert "answered with a NoneType" in said
    assert "the login was not checked in time" in said
    assert SECRET not in said


def test_a_plugin_that_is_not_installed_ends_the_start(tmp_path: Path) -> None:
    settings = ["listeners=SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms=PLAIN"]
    settings.append("listener.name.sasl_plaintext.plain.sasl.server.callback.handler.class=com.acme.Ldap")
    given = [word for setting in settings for word in ("--set", setting)]
    command = [sys.executable, "-m", "logkernel", "serve", "--data", str(tmp_path / "data"), *given]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 2
    assert "no plugin provides the password checker 'com.acme.Ldap'" in ended.stderr


def security(handler: str) -> Any:
    settings = [
        "listeners=OUT://127.0.0.1:0",
        "listener.security.protocol.map=OUT:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms=PLAIN",
        f"{HANDLER}={handler}",
        f'listener.name.out.plain.sasl.jaas.config={PLAIN_LOGIN} user_ann="wonder";',
    ]
    return build(None, settings, in_memory=True).security("OUT")


def test_kafkas_own_handler_has_the_users_of_the_configuration() -> None:
    made = security("org.apache.kafka.common.security.plain.internals.PlainServerCallbackHandler")
    server = made.mechanism("PLAIN", "10.0.0.1:9")
    assert not server.blocks
    server.evaluate(b"\0ann\0wonder")
    assert server.principal is not None
    with pytest.raises(PluginError, match="no plugin provides the password checker 'ldap'"):
        security("ldap")


def test_an_error_is_told_without_the_password(caplog: pytest.LogCaptureFixture) -> None:
    """Also one that is the cause of another."""

    class Telling:
        def check(self, login: Login) -> bool:
            try:
                raise ValueError(login.password.reveal())
            except ValueError as error:
                raise KeyError("user") from error

    faults = PluginFaults()
    checker = GuardedPasswordChecker(Telling(), "telling", faults, lambda: Origin("acme", "acme-telling"))
    with pytest.raises(PluginError, match=r"'acme' .* failed in password checker telling: KeyError") as refused:
        checker.check(Login("ann", Secret(SECRET), "OUT"))
    assert refused.value.__suppress_context__
    assert [fault.error for fault in faults] == ["raised KeyError with the password in its text"]
    assert SECRET not in caplog.text
