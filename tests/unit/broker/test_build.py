"""What makes a broker the member of a cluster: its settings, if it serves."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from logkernel.broker.build import build
from logkernel.contracts import StateLog
from logkernel.errors import ConfigError, PluginError
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.plugins.transport.memory.coordination import MemoryCoordination

SETTINGS = ["zookeeper.connect=127.0.0.1:1", "zookeeper.connection.timeout.ms=10"]


def test_a_broker_that_serves_is_a_member_where_zookeeper_connect_says_so(tmp_path: Path) -> None:
    named = [*SETTINGS, f"log.dirs={tmp_path}"]
    assert build(None, named, serves=True).governance.is_shared
    assert build(None, [*named, "coordination=local"], serves=True).governance.is_shared is False
    assert build(None, [f"log.dirs={tmp_path}"], serves=True).governance.is_shared is False
    assert build(None, [*named, "coordination=zookeeper"], serves=True).governance.is_shared


def test_an_embedded_log_stands_alone(tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("\n".join(SETTINGS))
    assert build(file, [f"log.dirs={tmp_path}"]).governance.is_shared is False
    with pytest.raises(ConfigError, match="only a broker that serves can be in a cluster; run logkernel serve"):
        build(None, ["coordination=zookeeper", *SETTINGS])


def test_a_coordination_without_an_address_is_refused() -> None:
    broker = build(None, ["coordination=zookeeper"], serves=True)
    with pytest.raises(ConfigError, match=r"needs zookeeper\.connect; set it to h1:2181"):
        broker.start()


def test_a_missing_kazoo_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if "zookeeper.session" in name]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.split(".")[0] == "kazoo"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "kazoo", None)
    for name in ("connection", "watched", "reading", "writing"):
        monkeypatch.delitem(sys.modules, f"logkernel.plugins.transport.zookeeper.{name}", raising=False)
    broker = build(None, SETTINGS, serves=True)
    with pytest.raises(PluginError, match=r"needs kazoo .*; install logkernel\[zookeeper\]"):
        broker.start()


class Odd:
    """Names a coordination as shared that is none."""

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("shared coordination", "odd")]

    @hookimpl
    def logkernel_coordination(self, name: str, open_log: Callable[[], StateLog]) -> object:
        return MemoryCoordination() if name == "odd" else None


def test_a_plugin_that_names_a_coordination_as_shared_has_to_provide_one() -> None:
    kernel = Kernel(allow=(), plugins=[Odd()])
    broker = build(None, ["coordination=odd"], kernel=kernel, serves=True)
    with pytest.raises(PluginError, match="none that brokers share"):
        broker.start()


@pytest.mark.parametrize("given", ["kafka.security.authorizer.AclAuthorizer", "standard", " standard "])
def test_kafkas_authorizers_are_the_built_in_one(given: str) -> None:
    broker = build(None, [f"authorizer.class.name={given}"], in_memory=True)
    assert broker.context.authorization is not None


def test_an_authorizer_that_is_not_installed_is_refused_at_once() -> None:
    """It was one of many Kafka settings without effect, and a cluster that moved here stood open."""
    with pytest.raises(PluginError, match=r"no plugin provides the authorizer 'com\.acme\.Rules'"):
        build(None, ["authorizer.class.name=com.acme.Rules"], in_memory=True)


@pytest.mark.parametrize("given", [[], ["authorizer.class.name="]])
def test_without_an_authorizer_the_broker_knows_of_none(given: list[str]) -> None:
    assert build(None, given, in_memory=True).context.authorization is None
