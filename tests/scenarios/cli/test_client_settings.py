"""Settings of the client reach the transport of every command that connects."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from shells import Shell

from logkernel.cli.app import app
from logkernel.errors import SaslAuthenticationFailed
from logkernel.plugins.transport.tcp.transport import TcpTransport
from logkernel.security.settings import ClientSecurity

SECRET = "hunter2-planted"
LINES = [
    "topic list",
    "topic describe t",
    "offsets t",
    "produce t --key k",
    "consume t -e",
    "group list",
    "config list topic t",
    "txn list",
    "cluster info",
    "cluster features",
    "cluster reassignments",
    "cluster check",
    "cluster acls list",
    "plugin list -b ADDRESS",
    "query select␣count(*)␣from␣t -b ADDRESS",
    "perf produce --bootstrap ADDRESS --num-records 1 --topic t",
    "perf consume --bootstrap ADDRESS --num-records 1 --topic t",
    "perf latency --bootstrap ADDRESS --num-records 1 --topic t",
]


class Refusing:
    """A transport that keeps how a client would have logged in, and refuses it."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def connect(self, transport: Any, host: str, port: int, settings: Mapping[str, Any]) -> Any:
        security = ClientSecurity.of(settings)
        assert security is not None
        assert security.mechanism_name == "PLAIN"
        self.heard.append(security.mechanism(host).respond(b"") or b"")
        raise SaslAuthenticationFailed("invalid credentials; check user and password")


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> Refusing:
    made = Refusing()
    monkeypatch.setattr(TcpTransport, "connect", lambda *args: made.connect(*args))
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "client.properties"
    path.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.username=alice\nsasl.password={SECRET}\n"
    )
    return path


@pytest.mark.parametrize("line", LINES)
def test_a_command_logs_in_and_ends_with_the_brokers_refusal(
    shell: Shell, refusing: Refusing, file: Path, line: str
) -> None:
    out = shell(f"{line.replace('ADDRESS', shell.address)} --command-config {file}", code=1, stdin=b"v\n")
    assert refusing.heard[0] == b"\0alice\0" + SECRET.encode()
    assert f"SaslAuthenticationFailed: {shell.address}: invalid credentials; check user and password" in shell.error
    assert SECRET not in out + shell.error


def test_the_file_may_be_named_by_the_environment_and_what_is_set_wins(
    shell: Shell, refusing: Refusing, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOGKERNEL_COMMAND_CONFIG", str(file))
    monkeypatch.setenv("PASSWORD", "other")
    shell("topic list --set sasl.password=${env:PASSWORD}", code=1)
    assert set(refusing.heard) == {b"\0alice\0other"}  # a slow machine connects again before the command ends


def test_settings_that_are_wrong_are_refused_before_a_connection(shell: Shell, refusing: Refusing, file: Path) -> None:
    shell(f"topic list --command-config {file} -X sasl.mechanism=PLAINN", code=2)
    assert refusing.heard == []
    assert "sasl.mechanism=PLAINN: there is no such mechanism; did you mean PLAIN?" in shell.error
    assert SECRET not in shell.error


def test_a_misspelt_setting_is_refused_before_what_lacks_for_it(shell: Shell, file: Path) -> None:
    """The password was said to be missing, though it was there as sasl.pasword."""
    given = "-X security.protocol=SASL_SSL -X sasl.mechanism=PLAIN -X sasl.username=a -X sasl.pasword=b"
    shell(f"topic list {given}", code=2)
    assert "logkernel: sasl.pasword: no client has such a setting; did you mean sasl.password?" in shell.error


def commands(group: click.Group, path: str = "") -> dict[str, click.Command]:
    found = {}
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        inner = commands(command, f"{path}{name} ") if isinstance(command, click.Group) else {path + name: command}
        found.update(inner)
    return found


def test_every_command_with_a_bootstrap_takes_settings_of_the_client() -> None:
    for words, command in commands(app).items():
        options = {flag for param in command.params if not getattr(param, "hidden", False) for flag in param.opts}
        if "--bootstrap" in options:
            assert "--command-config" in options, words
            assert options & {"--set", "--command-property"}, words
