"""How ZooKeeper is reached: from settings with Kafka's names to what a connection needs. Pure, but for a look at the
keytab of a login."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from logkernel.attrs_lite import frozen
from logkernel.contracts import Settings
from logkernel.errors import ConfigError
from logkernel.security import jaas
from logkernel.security.tls import TlsSettings
from logkernel.vocabulary import Secret

from .layout import OPEN, SENSITIVE

if TYPE_CHECKING:
    from logkernel.security.sasl.gssapi import GssapiClient

DEFAULT_PORT: Final = 2181
ALL, READ = 31, 1
"""Permissions of an ACL, as ZooKeeper numbers them."""
JAAS: Final = "zookeeper.sasl.jaas.config"
SERVICE: Final = "zookeeper"
"""First part of ZooKeeper's principals, where the login has no `serviceName`."""
DIGEST_LOGIN: Final = "org.apache.zookeeper.server.auth.DigestLoginModule"
_MODULES: Final = {
    DIGEST_LOGIN: "DIGEST-MD5",
    **{module: family for module, family in jaas.MODULES.items() if family == "GSSAPI"},
}
_TYPES: Final = {"pem": "PEM", "p12": "PKCS12", "pfx": "PKCS12", "jks": "JKS"}
"""Ending of a store's name → its type."""


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
class Login:
    """As whom SASL's DIGEST-MD5 logs in."""

    user: str
    password: Secret
    mechanism: str = "DIGEST-MD5"


@frozen
class KerberosLogin:
    """As whom SASL's GSSAPI logs in."""

    user: str
    """The principal; empty: that of the ticket cache."""
    new_mechanism: Callable[[str], GssapiClient]
    """Takes the name of ZooKeeper's server."""
    mechanism: str = "GSSAPI"


@frozen
class Options:
    """See the module."""

    address: Address
    session_timeout_ms: int = 18_000
    connection_timeout_ms: int = 18_000
    in_flight: int = 10
    digest: Secret | None = None
    """user:password, as whom this broker is known to ZooKeeper by its scheme digest."""
    set_acl: bool = False
    tls: TlsSettings | None = None
    login: Login | KerberosLogin | None = None

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
        tls, login = _tls(settings), _login(settings)
        if set_acl and not (digest or login or (tls and tls.ssl_keystore_location)):
            raise ConfigError(
                f"zookeeper.set.acl=true needs a user; set {JAAS} or logkernel.zookeeper.digest=user:password, or give"
                f" a certificate by zookeeper.ssl.keystore.location"
            )
        return cls(
            Address.parse(str(connect)), timeout, timeout if waits is None else int(waits),
            int(settings.get("zookeeper.max.in.flight.requests")), Secret(digest) if digest else None, set_acl, tls,
            login,
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
        """(permissions, scheme, id) of a new node, as Kafka gives them; None: anybody may do anything."""
        if not self.set_acl or path in OPEN:
            return None
        own = (ALL, "auth", "")
        return [own] if path.startswith(SENSITIVE) else [own, (READ, "world", "anyone")]

    def is_open(self, path: str, rules: Sequence[Any]) -> bool:
        """Whether a node's ACL allows everybody more than `acl` does; `rules` are kazoo's."""
        allowed = [perms for perms, scheme, _ in self.acl(path) or [(ALL, "world", "")] if scheme == "world"]
        anybody = [rule.perms for rule in rules if rule.id.scheme == "world"]
        return any(perms & ~max(allowed, default=0) for perms in anybody)


def _login(settings: Settings) -> Login | KerberosLogin | None:
    text = settings.get(JAAS)
    if not text:
        return None
    client = jaas.section(str(text), "Client")
    if client is None:
        raise ConfigError(
            f"{JAAS} has sections, and none is called Client; write Client {{ {DIGEST_LOGIN} required …; }};"
        )
    module = jaas.parse(client, JAAS, _MODULES)
    if module.family == "GSSAPI":
        from logkernel.security.kerberos.logins import client_of_module

        return KerberosLogin(module.option("principal") or "", client_of_module(module, JAAS, SERVICE))
    user, password = module.option("username"), module.option("password")
    if not user or not password:
        raise ConfigError(f'{JAAS}: {"password" if user else "username"} is missing; write username="…" password="…"')
    return Login(user, Secret(password))


def _tls(settings: Settings) -> TlsSettings | None:
    """Raises `ConfigError` where a store has no type."""
    if not settings.get("zookeeper.ssl.client.enable"):
        return None

    def text(name: str) -> str:
        return str(settings.get(f"zookeeper.ssl.{name}") or "")

    def words(name: str) -> tuple[str, ...]:
        return tuple(settings.get(f"zookeeper.ssl.{name}") or ())

    def form(kind: str) -> str:
        """A store's type; by its name, as in ZooKeeper, where none is set."""
        location, given = text(f"{kind}.location"), text(f"{kind}.type")
        if given or not location:
            return given.upper() or "PEM"
        ending = location.rpartition(".")[2].lower()
        if ending not in _TYPES:
            raise ConfigError(f"zookeeper.ssl.{kind}.location={location}: its type is not known; set"
                              f" zookeeper.ssl.{kind}.type to PEM, PKCS12 or JKS")  # fmt: skip
        return _TYPES[ending]

    algorithm = text("endpoint.identification.algorithm").lower()
    return TlsSettings(
        ssl_keystore_type=form("keystore"), ssl_keystore_location=text("keystore.location"),
        ssl_keystore_password=text("keystore.password"),
        ssl_truststore_type=form("truststore"), ssl_truststore_location=text("truststore.location"),
        ssl_truststore_password=text("truststore.password"),
        ssl_protocol=text("protocol"), ssl_enabled_protocols=words("enabled.protocols"),
        ssl_cipher_suites=words("cipher.suites"), ssl_endpoint_identification_algorithm=algorithm,
    )  # fmt: skip
