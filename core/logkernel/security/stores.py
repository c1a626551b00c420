"""Keystores and truststores: from Kafka's settings to a key with its certificates, and to trusted certificates, in PEM.

PEM is read without a library. PKCS#12 needs `cryptography` (pip install 'logkernel[security]'); JKS is read by
`logkernel.security.jks`. No error quotes what is in a store.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from logkernel.errors import ConfigError
from logkernel.security import pem

if TYPE_CHECKING:
    from logkernel.security.tls import TlsSettings

MAX_STORE_BYTES = 16_777_216
_TYPES = ("PEM", "PKCS12", "JKS")
_JKS_MAGIC = b"\xfe\xed\xfe\xed"


@attrs.frozen
class Identity:
    """A private key, and the certificates that show it, the own first; both in PEM."""

    key: str = attrs.field(repr=False)
    chain: str = attrs.field(repr=False)
    password: str = attrs.field(default="", repr=False)
    """Of the key, if it is encrypted."""


def identity(settings: TlsSettings) -> Identity | None:
    """Read the keystore; None where there is none. Raises `ConfigError`."""
    if settings.ssl_certificate_location or settings.ssl_key_location:
        return _librdkafka_identity(settings)
    if settings.ssl_keystore_key or settings.ssl_keystore_certificate_chain:
        _want_pem(settings.ssl_keystore_type, "ssl.keystore")
        text = settings.ssl_keystore_key + "\n" + settings.ssl_keystore_certificate_chain
        return _pem_identity(text, settings.ssl_key_password, "ssl.keystore.key")
    location = settings.ssl_keystore_location
    if not location:
        return None
    data = _read(location, "ssl.keystore.location")
    kind = _kind(settings.ssl_keystore_type, data, location, "ssl.keystore.type")
    if kind == "PEM":
        password = settings.ssl_key_password or settings.ssl_keystore_password
        return _pem_identity(_text(data, location), password, location)
    if kind == "PKCS12":
        from logkernel.security.pkcs12 import read_identity
    else:
        from logkernel.security.jks import read_identity
    key, chain = read_identity(data, location, settings.ssl_keystore_password, settings.ssl_key_password)
    return Identity(key, chain)


def trusted(settings: TlsSettings) -> str | None:
    """The certificates of the truststore; None where there is none. Raises `ConfigError`."""
    if settings.ssl_truststore_certificates:
        _want_pem(settings.ssl_truststore_type, "ssl.truststore")
        return _certificates(settings.ssl_truststore_certificates, "ssl.truststore.certificates")
    location = settings.ssl_truststore_location
    if not location:
        return None
    data = _read(location, "ssl.truststore.location")
    kind = _kind(settings.ssl_truststore_type, data, location, "ssl.truststore.type")
    if kind == "PEM":
        return _certificates(_text(data, location), f"ssl.truststore.location={location}")
    if kind == "PKCS12":
        from logkernel.security.pkcs12 import read_trusted
    else:
        from logkernel.security.jks import read_trusted
    return read_trusted(data, location, settings.ssl_truststore_password)


def _librdkafka_identity(settings: TlsSettings) -> Identity:
    if not (settings.ssl_certificate_location and settings.ssl_key_location):
        raise ConfigError("only one of ssl.certificate.location and ssl.key.location is set; set both")
    certificate, key = settings.ssl_certificate_location, settings.ssl_key_location
    text = _text(_read(key, "ssl.key.location"), key) + "\n"
    text += _text(_read(certificate, "ssl.certificate.location"), certificate)
    return _pem_identity(text, settings.ssl_key_password, f"{key} and {certificate}")


def _read(location: str, setting: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            data = file.read(MAX_STORE_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"cannot read {setting}={location}: {reason}; give a file that this user may read") from error
    if not data or len(data) > MAX_STORE_BYTES:
        raise ConfigError(f"{setting}={location} is empty or over {MAX_STORE_BYTES} bytes; give a key or trust store")
    return data


def _kind(given: str, data: bytes, location: str, setting: str) -> str:
    """What the file is: Java's type JKS also reads PKCS#12, and the reverse."""
    kind = given.upper()
    if kind not in _TYPES:
        raise ConfigError(f"{setting} {given!r} is unknown; use one of {', '.join(_TYPES)}")
    found = "JKS" if data.startswith(_JKS_MAGIC) else "PKCS12" if data[:1] == b"\x30" else "PEM"
    if (kind == "PEM") != (found == "PEM"):
        raise ConfigError(f"{location} is no {kind} file but looks like {found}; set {setting}={found}")
    return found


def _want_pem(kind: str, prefix: str) -> None:
    if kind.upper() != "PEM":
        raise ConfigError(f"{prefix}.type is {kind}, but PEM text is given in the settings; set {prefix}.type=PEM")


def _text(data: bytes, location: str) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ConfigError(f"{location} is not a PEM file; give one, or set its type (PKCS12, JKS)") from None


def _pem_identity(text: str, password: str, source: str) -> Identity:
    blocks = pem.blocks(text)
    keys = [block for label, block in blocks if label.endswith("PRIVATE KEY")]
    chain = [block for label, block in blocks if label == "CERTIFICATE"]
    if len(keys) != 1 or not chain:
        raise ConfigError(
            f"{source} has {len(keys)} private keys and {len(chain)} certificates; give one key and its certificates"
        )
    if "ENCRYPTED" in keys[0] and not password:
        raise ConfigError(f"the key in {source} is encrypted; set ssl.key.password")
    return Identity(keys[0] + "\n", "\n".join(chain) + "\n", password)


def _certificates(text: str, source: str) -> str:
    found = [block for label, block in pem.blocks(text) if label == "CERTIFICATE"]
    if not found:
        raise ConfigError(f"{source} has no certificate; give those of the CAs in PEM")
    return "\n".join(found) + "\n"
