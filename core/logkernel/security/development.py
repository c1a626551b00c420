"""What a broker that was just unpacked needs to be secure: a certificate authority of its own, a key that it signed,
and a first user. Made once in a folder, and read again by later starts.

    ca.pem              whom clients have to trust
    broker.pem          the broker's key and certificate
    client.properties   what a client has to set, the first user's password included

For development and tests: the authority's key is thrown away, and certificates last a year.
"""

from __future__ import annotations

import datetime
import ipaddress
import os
import secrets
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from logkernel.attrs_lite import frozen
from logkernel.errors import ConfigError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

FIRST_USER: Final = "admin"
MECHANISM: Final = "SCRAM-SHA-512"
"""Of the first user."""
MECHANISMS: Final = ("SCRAM-SHA-512", "SCRAM-SHA-256")
"""Of all users: tools add them by the one or the other."""
LASTS: Final = datetime.timedelta(days=365)
CA, BROKER, CLIENT = "ca.pem", "broker.pem", "client.properties"
_LOGIN: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"


@frozen
class Development:
    """Where it lies, and the first user."""

    ca: Path
    broker: Path
    client: Path
    user: str
    password: str
    is_new: bool = False
    """It was made by this call of `obtain`: no broker knows the password yet."""

    def __repr__(self) -> str:
        return f"Development({str(self.client.parent)!r}, user={self.user!r})"

    def user_file(self, user: str) -> Path:
        """The key and certificate of a user that has one."""
        return self.ca.parent / f"user-{user}.pem"

    def broker_settings(self, listener: str) -> dict[str, str]:
        """Of a broker whose only listener is `listener` ("HOST:PORT")."""
        return {
            "listeners": f"SASL_SSL://{listener}",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self.broker),
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "authorizer.class.name": "standard",
            "super.users": f"User:{self.user}",
        }


def planned(folder: str | os.PathLike[str]) -> Development:
    """Where all of it lies in `folder`, made or not: the password is left out."""
    place = Path(folder)
    return Development(place / CA, place / BROKER, place / CLIENT, FIRST_USER, "")


def is_made(folder: str | os.PathLike[str]) -> bool:
    """Whether `obtain` made all of it in `folder`."""
    found = planned(folder)
    return all(path.exists() for path in (found.ca, found.broker, found.client))


def obtain(folder: str | os.PathLike[str], hosts: Iterable[str] = (), users: Iterable[str] = ()) -> Development:
    """Make what is missing in `folder`, for a broker that clients reach at `hosts`, localhost and this machine's name.
    Each of `users` gets a certificate with its name (CN), at `Development.user_file`.

    Raises `ConfigError` if the package `cryptography` is missing, the folder can't be written or has half of it.
    """
    place, found = Path(folder), planned(folder)
    there = [path.exists() for path in (found.ca, found.broker, found.client)]
    if any(there) and not all(there):
        missing = ", ".join(
            path.name for path, exists in zip((found.ca, found.broker, found.client), there, strict=True) if not exists
        )
        raise ConfigError(f"{place}: {missing} is missing; restore it, or remove the folder to have all made anew")
    try:
        if not all(there):
            _make(found, [*hosts, "localhost", "127.0.0.1", "::1", socket.gethostname()], users)
        password = _password(found.client.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{place}: {error.strerror}; name a folder that you may write") from None
    if password is None:
        raise ConfigError(f"{found.client}: it has no password; remove the folder {place} to have all made anew")
    return Development(found.ca, found.broker, found.client, FIRST_USER, password, is_new=not all(there))


def _password(text: str) -> str | None:
    from logkernel.security import jaas

    for line in text.splitlines():
        name, _, value = line.partition("=")
        if name == jaas.NAME:
            return jaas.parse(value).option("password")
    return None


def _make(found: Development, hosts: list[str], users: Iterable[str]) -> None:
    try:
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise ConfigError(
            "certificates are made by the package cryptography, which is not installed; pip install"
            " 'logkernel[security]'"
        ) from None
    from cryptography.hazmat.primitives import serialization

    found.ca.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _sign(None, ca_key, ca_key, "logkernel development CA", _authority_extensions(ca_key))
    certificate = _sign(authority, ca_key, key, "logkernel broker", _broker_extensions(authority, hosts))

    def pem(key: EllipticCurvePrivateKey, certificate: x509.Certificate) -> bytes:
        form = serialization.PrivateFormat.PKCS8
        secret = key.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        return secret + certificate.public_bytes(serialization.Encoding.PEM) + ca

    ca = authority.public_bytes(serialization.Encoding.PEM)
    _write(found.broker, pem(key, certificate))
    _write(found.ca, ca)
    for user in users:
        own = ec.generate_private_key(ec.SECP256R1())
        _write(found.user_file(user), pem(own, _sign(authority, ca_key, own, user, _user_extensions(authority))))
    login = f'{_LOGIN} required username="{found.user}" password="{secrets.token_urlsafe(24)}";'
    _write(
        found.client,
        "\n".join(
            (
                "security.protocol=SASL_SSL",
                f"sasl.mechanism={MECHANISM}",
                f"sasl.jaas.config={login}",
                "ssl.truststore.type=PEM",
                f"ssl.truststore.location={found.ca.resolve()}",
                "",
            )
        ).encode(),
    )


def _write(path: Path, data: bytes) -> None:
    """A file that only its owner can read."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def _sign(
    issuer: x509.Certificate | None,
    signing_key: EllipticCurvePrivateKey,
    key: EllipticCurvePrivateKey,
    name: str,
    extensions: list[tuple[Any, bool]],
) -> x509.Certificate:
    """A certificate of `key`, which `issuer` vouches for; None: it does so itself."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.subject if issuer is not None else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + LASTS)
    )
    for extension, critical in extensions:
        builder = builder.add_extension(extension, critical)
    return builder.sign(signing_key, hashes.SHA256())


def _authority_extensions(key: EllipticCurvePrivateKey) -> list[tuple[Any, bool]]:
    from cryptography import x509

    usage = x509.KeyUsage(
        digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    return [
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (usage, True),
        (x509.SubjectKeyIdentifier.from_public_key(key.public_key()), False),
    ]


def _broker_extensions(authority: x509.Certificate, hosts: list[str]) -> list[tuple[Any, bool]]:
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID

    names = x509.SubjectAlternativeName([_named(host) for host in dict.fromkeys(filter(None, hosts))])
    return [*_leaf_extensions(authority, ExtendedKeyUsageOID.SERVER_AUTH), (names, False)]


def _user_extensions(authority: x509.Certificate) -> list[tuple[Any, bool]]:
    from cryptography.x509.oid import ExtendedKeyUsageOID

    return _leaf_extensions(authority, ExtendedKeyUsageOID.CLIENT_AUTH)


def _leaf_extensions(authority: x509.Certificate, usage: x509.ObjectIdentifier) -> list[tuple[Any, bool]]:
    from cryptography import x509

    identifier = authority.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return [
        (x509.BasicConstraints(ca=False, path_length=None), True),
        (x509.ExtendedKeyUsage([usage]), False),
        (x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(identifier), False),
    ]


def _named(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
