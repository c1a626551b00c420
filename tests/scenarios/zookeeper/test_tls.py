"""Sessions over TLS: certificates of both sides, in PEM files."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zookeepers
from outside_tools import missing

from logkernel.errors import ConfigError, KafkaStorageError
from logkernel.plugins.transport.zookeeper import SETTINGS
from logkernel.plugins.transport.zookeeper.options import Options
from logkernel.plugins.transport.zookeeper.session import ZooKeeperSession


def openssl(*words: str) -> None:
    subprocess.run(["openssl", *words], check=True, capture_output=True)


def signed(folder: Path, name: str, alternative: str) -> Path:
    """A PEM file with a key and its certificate, by the authority in the folder."""
    key, request, made = (folder / f"{name}.{end}" for end in ("key", "csr", "crt"))
    openssl("req", "-newkey", "rsa:2048", "-nodes", "-keyout", str(key), "-out", str(request), "-subj", f"/CN={name}")
    extensions = folder / f"{name}.ext"
    extensions.write_text(f"subjectAltName={alternative}\n")
    openssl(
        "x509", "-req", "-in", str(request), "-CA", str(folder / "ca.pem"), "-CAkey", str(folder / "ca.key"),
        "-CAcreateserial", "-days", "2", "-extfile", str(extensions), "-out", str(made),
    )  # fmt: skip
    both = folder / f"{name}.pem"
    both.write_text(key.read_text() + made.read_text())
    return both


@pytest.fixture(scope="module")
def secured(
    tmp_path_factory: pytest.TempPathFactory, zookeeper_server: zookeepers.ZooKeeper
) -> Iterator[tuple[Path, int]]:
    """(folder of the certificates, port): a ZooKeeper that asks clients for theirs."""
    if shutil.which("openssl") is None:
        missing("openssl is not installed")
    folder = tmp_path_factory.mktemp("tls")
    openssl(
        "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=authority",
        "-keyout", str(folder / "ca.key"), "-out", str(folder / "ca.pem"),
    )  # fmt: skip
    server = signed(folder, "server", "IP:127.0.0.1")
    signed(folder, "broker", "DNS:broker")
    (port,) = zookeepers.free_ports(1)
    extra = (
        f"secureClientPort={port}", "secureClientPortAddress=127.0.0.1",
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        f"ssl.keyStore.location={server}", "ssl.keyStore.type=PEM",
        f"ssl.trustStore.location={folder / 'ca.pem'}", "ssl.trustStore.type=PEM", "ssl.clientAuth=need",
        "ssl.clientHostnameVerification=false",
    )  # fmt: skip
    with zookeepers.zookeeper(folder / "zk", extra):
        yield folder, port


def settings(folder: Path, port: int, **more: Any) -> dict[str, Any]:
    """As a broker's are."""
    named = {
        "zookeeper.connect": f"127.0.0.1:{port}/kafka",
        "zookeeper.session.timeout.ms": 4_000,
        "zookeeper.connection.timeout.ms": 10_000,
        "zookeeper.ssl.client.enable": True,
        "zookeeper.ssl.truststore.location": str(folder / "ca.pem"),
        "zookeeper.ssl.keystore.location": str(folder / "broker.pem"),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    defaults = {row.name: row.typed(row.default) if row.default is not None else None for row in SETTINGS}
    return defaults | named


def test_a_session_proves_who_it_is_to_a_server_that_does(secured: tuple[Path, int]) -> None:
    session = ZooKeeperSession(Options.of(settings(*secured)))
    try:
        assert session.campaign(1) == 1
    finally:
        session.close()


@pytest.mark.parametrize(
    "wrong",
    [{"zookeeper.ssl.truststore.location": None}, {"zookeeper.ssl.keystore.location": None},
     {"zookeeper.ssl.client.enable": False}],
    ids=["a server that nobody vouches for", "a broker without a certificate", "a broker in plain text"],
)  # fmt: skip
def test_a_session_begins_with_nobody_else(secured: tuple[Path, int], wrong: dict[str, Any]) -> None:
    with pytest.raises(KafkaStorageError, match="gave no session"):
        ZooKeeperSession(Options.of(settings(*secured) | wrong | {"zookeeper.connection.timeout.ms": 1_500}))


def test_a_server_of_another_name_is_refused_unless_names_do_not_matter(secured: tuple[Path, int]) -> None:
    folder, port = secured
    other = settings(folder, port) | {"zookeeper.connect": f"localhost:{port}/kafka"}
    with pytest.raises(KafkaStorageError, match="gave no session"):
        ZooKeeperSession(Options.of(other | {"zookeeper.connection.timeout.ms": 1_500}))
    session = ZooKeeperSession(Options.of(other | {"zookeeper.ssl.endpoint.identification.algorithm": ""}))
    session.close()


def test_stores_of_java_are_refused_with_the_way_out(tmp_path: Path) -> None:
    wrong = settings(tmp_path, 1) | {"zookeeper.ssl.truststore.location": "/a/trust.jks"}
    with pytest.raises(ConfigError, match=r"only PEM files can be read; convert it"):
        Options.of(wrong)
