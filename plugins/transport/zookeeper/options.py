"""How ZooKeeper is reached: from settings with Kafka's names to what a connection needs. Pure."""

from __future__ import annotations

from typing import Any, Final

from logkernel.attrs_lite import frozen
from logkernel.contracts import Settings
from logkernel.errors import ConfigError

from .layout import SENSITIVE

DEFAULT_PORT: Final = 2181
ALL, READ = 31, 1
"""Permissions of an ACL, as ZooKeeper numbers them."""


@frozen
class Address:
    """`h1:2181,h2:2181/chroot`."""

    hosts: str
    chroot: str = ""
    """Empty, or a path that begins with a slash and does not end with one."""

    @classmethod
    def parse(cls, text: str) -> Address:
        """As `zookeeper.connect` has it. Raises `ConfigError`."""
        rest, _, chroot = text.strip().partition("/")
        words = [_host(word, text) for word in rest.split(",")]
        parts = [part for part in chroot.split("/") if part]
        if any(part in (".", "..") for part in parts) or "\x00" in chroot:
            raise ConfigError(f"zookeeper.connect={text}: {chroot!r} is no path; write /folder or /folder/folder")
        return cls(",".join(words), "".join(f"/{part}" for part in parts))


def _host(word: str, text: str) -> str:
    word = word.strip()
    host, colon, port = word.rpartition(":")
    if not colon or word.endswith("]"):
        host, port = word, str(DEFAULT_PORT)
    if "@" in word:
        raise ConfigError("zookeeper.connect names a user; give it by logkernel.zookeeper.digest=user:password")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port[:6]) < 65_536:
        raise ConfigError(f"zookeeper.connect={text}: {word!r} is no host:port; write h1:2181,h2:2181/chroot")
    return f"{host}:{port}"


@frozen
class Tls:
    """PEM files."""

    trust: str | None = None
    """Path of the CA certificates for ZooKeeper's certificate; None for the system's."""
    key: str | None = None
    """This broker's certificate and key, where ZooKeeper asks for them."""
    key_password: str | None = None
    check_host: bool = True


@frozen
class Options:
    """See the module."""

    address: Address
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int = 18_000
    in_flight: int = 10
    digest: str | None = None
    """user:password, as whom this broker is known to ZooKeeper."""
    set_acl: bool = False
    tls: Tls | None = None

    @classmethod
    def of(cls, settings: Settings) -> Options:
        """Raises `ConfigError`."""
        connect = settings.get("zookeeper.connect")
        if not connect:
            raise ConfigError("coordination=zookeeper needs zookeeper.connect; set it to h1:2181,h2:2181/chroot")
        timeout = int(settings.get("zookeeper.session.timeout.ms"))
        waits = settings.get("zookeeper.connection.timeout.ms")
        digest, set_acl = settings.get("logkernel.zookeeper.digest"), bool(settings.get("zookeeper.set.acl"))
        if digest and ":" not in digest:
            raise ConfigError("logkernel.zookeeper.digest has no password; write user:password")
        if set_acl and not digest:
            raise ConfigError("zookeeper.set.acl=true needs a user; set logkernel.zookeeper.digest=user:password")
        return cls(
            Address.parse(str(connect)), timeout, timeout if waits is None else int(waits),
            int(settings.get("zookeeper.max.in.flight.requests")), digest or None, set_acl, _tls(settings),
        )  # fmt: skip

    @property
    def answer_s(self) -> float:
        """How long one call may wait for an answer: well below the session timeout."""
        return max(0.3, min(self.session_timeout_ms / 6_000, 3.0))

    @property
    def lost_s(self) -> float:
        """After so long without a connection the session counts as lost."""
        return self.session_timeout_ms * 2 / 3_000

    def acl(self, path: str) -> list[tuple[int, str, str]] | None:
        """(permissions, scheme, id) of a new node; None: anybody may do anything."""
        if not self.set_acl:
            return None
        own = (ALL, "auth", "")
        return [own] if path.startswith(SENSITIVE) else [own, (READ, "world", "anyone")]


def _tls(settings: Settings) -> Tls | None:
    if not settings.get("zookeeper.ssl.client.enable"):
        return None

    def store(kind: str) -> Any:
        location = settings.get(f"zookeeper.ssl.{kind}.location")
        form = settings.get(f"zookeeper.ssl.{kind}.type")
        if location and not (form == "PEM" or (not form and str(location).endswith(".pem"))):
            raise ConfigError(
                f"zookeeper.ssl.{kind}.location={location}: only PEM files can be read; convert it (keytool, openssl)"
                f" and set zookeeper.ssl.{kind}.type=PEM"
            )
        return location or None

    algorithm = settings.get("zookeeper.ssl.endpoint.identification.algorithm")
    return Tls(
        store("truststore"), store("keystore"), settings.get("zookeeper.ssl.keystore.password") or None,
        str(algorithm).upper() == "HTTPS",
    )  # fmt: skip
