"""A ZooKeeper that asks who clients are: certificates by TLS at one port, users by SASL at two."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import authorities
import zookeepers
from attrs import define
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from outside_tools import missing

USER, PASSWORD, OTHER = "brokers", "planted-secret-of-brokers", "somebody"
MODULE = "org.apache.zookeeper.server.auth.DigestLoginModule"


def login(user: str = USER, password: str = PASSWORD) -> str:
    """As a section `Client` has it."""
    return f'{MODULE} required username="{user}" password="{password}";'


@define
class Secured:
    """A server, and files of who may use it."""

    server: zookeepers.ZooKeeper
    secure_port: int
    folder: Path

    @property
    def plain(self) -> str:
        return self.server.address

    @property
    def secure(self) -> str:
        return f"127.0.0.1:{self.secure_port}"

    @property
    def ca(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def certificate(self) -> Path:
        """Of a broker: certificate and key."""
        return self.folder / "broker.pem"

    def broker(self) -> dict[str, str]:
        """Settings that ours and Kafka's brokers share, but for the login."""
        return {
            "zookeeper.ssl.client.enable": "true",
            "zookeeper.clientCnxnSocket": "org.apache.zookeeper.ClientCnxnSocketNetty",
            "zookeeper.ssl.truststore.location": str(self.ca),
            "zookeeper.ssl.truststore.type": "PEM",
            "zookeeper.ssl.keystore.location": str(self.certificate),
            "zookeeper.ssl.keystore.type": "PEM",
            "zookeeper.set.acl": "true",
        }


def write_identity(path: Path, host: str, by: str = "ours") -> Path:
    """The key in PKCS#8, the only form that ZooKeeper reads."""
    found = authorities.certified(host, by)
    key = load_pem_private_key(found.key.encode(), None)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()) + found.chain.encode())
    return path


def digest() -> str:
    """Of users with passwords, as a section `Server` has it. Skips where pure-sasl is missing."""
    if importlib.util.find_spec("puresasl") is None:
        missing("pure-sasl is not installed")
    return f'{MODULE} required user_{USER}="{PASSWORD}" user_{OTHER}="another";'


@contextmanager
def secured(folder: Path, *extra: str, login: str = "", jvm: tuple[str, ...] = ()) -> Iterator[Secured]:
    """`login` is the server's own; by default that of `digest`. Skips where no ZooKeeper can be started."""
    why = zookeepers.absent()
    if why is not None:
        missing(why)
    (folder / "ca.pem").write_text(authorities.ca_pem())
    server = write_identity(folder / "server.pem", "127.0.0.1")
    write_identity(folder / "broker.pem", "broker")
    (folder / "server.conf").write_text(f"Server {{ {login or digest()} }};\n")
    (port,) = zookeepers.free_ports(1)
    lines = (
        f"secureClientPort={port}", "secureClientPortAddress=127.0.0.1",
        "serverCnxnFactory=org.apache.zookeeper.server.NettyServerCnxnFactory",
        "authProvider.1=org.apache.zookeeper.server.auth.SASLAuthenticationProvider",
        f"ssl.keyStore.location={server}", "ssl.keyStore.type=PEM",
        f"ssl.trustStore.location={folder / 'ca.pem'}", "ssl.trustStore.type=PEM", "ssl.clientAuth=need",
        "ssl.clientHostnameVerification=false", "ssl.enabledProtocols=TLSv1.2,TLSv1.3", *extra,
    )  # fmt: skip
    jvm = (f"-Djava.security.auth.login.config={folder / 'server.conf'}", *jvm)
    with zookeepers.zookeeper(folder / "zk", lines, jvm) as started:
        yield Secured(started, port, folder)
