"""JKS, the keystore of Java before 9. No library that is kept reads it.

Big-endian: magic, version, a number of entries; each has a tag (1: a key, 2: a trusted certificate), an alias, a time,
and its data. A SHA-1 of password and data ends it. Keys are protected by a stream of SHA-1 over the password
(sun.security.provider.KeyProtector).
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterator
from typing import NamedTuple

from logkernel.errors import ConfigError
from logkernel.security.pem import armored

MAGIC = b"\xfe\xed\xfe\xed"
_KEY, _CERTIFICATE = 1, 2
_DIGEST_BYTES = 20
_PROTECTED_BY_SUN = bytes.fromhex("060a2b060104012a02110101")
"""The algorithm 1.3.6.1.4.1.42.2.17.1.1, in DER."""


class _Entry(NamedTuple):
    protected_key: bytes
    """Empty of a trusted certificate."""
    certificates: list[bytes]


def read_identity(data: bytes, location: str, password: str, key_password: str) -> tuple[str, str]:
    """Key and certificates of the first key entry, in PEM. The key's own password is the store's if not given."""
    for entry in _entries(data, location, password, "ssl.keystore.password"):
        if entry.protected_key:
            key = _unprotected(entry.protected_key, location, key_password or password)
            return armored("PRIVATE KEY", base64.b64encode(key).decode()) + "\n", _pem(entry.certificates)
    raise ConfigError(f"{location} has no private key with a certificate; give a keystore that has one")


def read_trusted(data: bytes, location: str, password: str) -> str:
    """All trusted certificates, in PEM. Without a password, Java does not check the store's digest either."""
    entries = _entries(data, location, password, "ssl.truststore.password")
    found = [one for entry in entries if not entry.protected_key for one in entry.certificates]
    if not found:
        raise ConfigError(f"{location} has no trusted certificate; import the CA's with keytool -importcert")
    return _pem(found)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, count: int) -> bytes:
        """Raises `EOFError` past the end, before anything is made of a count."""
        end = self._at + count
        if end > len(self._data):
            raise EOFError
        taken, self._at = self._data[self._at : end], end
        return taken

    def number(self, size: int = 4) -> int:
        return int.from_bytes(self.take(size))


def _entries(data: bytes, location: str, password: str, setting: str) -> Iterator[_Entry]:
    body, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    salted = hashlib.sha1(password.encode("utf-16-be") + b"Mighty Aphrodite" + body, usedforsecurity=False)
    if password and not hmac.compare_digest(salted.digest(), digest):
        raise ConfigError(f"cannot open {location}: its password is wrong, or the file was changed; check {setting}")
    try:
        yield from _parsed(_Reader(body))
    except (EOFError, ValueError):
        raise ConfigError(
            f"{location} is damaged, or no JKS file; convert it: "
            f"keytool -importkeystore -srckeystore {location} -destkeystore store.p12 -deststoretype PKCS12"
        ) from None


def _parsed(reader: _Reader) -> Iterator[_Entry]:
    magic, version = reader.take(4), reader.number()
    if magic != MAGIC or version not in (1, 2):
        raise ValueError
    for _ in range(reader.number()):
        tag = reader.number()
        if tag not in (_KEY, _CERTIFICATE):
            raise ValueError
        reader.take(reader.number(2))
        reader.take(8)
        key = reader.take(reader.number()) if tag == _KEY else b""
        count = reader.number() if tag == _KEY else 1
        yield _Entry(key, [_certificate(reader, version) for _ in range(count)])


def _certificate(reader: _Reader, version: int) -> bytes:
    if version == 2:
        reader.take(reader.number(2))
    return reader.take(reader.number())


def _unprotected(protected: bytes, location: str, password: str) -> bytes:
    at = protected.find(_PROTECTED_BY_SUN)
    secret = password.encode("utf-16-be")
    # EncryptedPrivateKeyInfo: SEQUENCE { SEQUENCE { OID, NULL }, OCTET STRING }; the string ends the entry
    payload = _octets(protected[at + len(_PROTECTED_BY_SUN) :].removeprefix(b"\x05\x00")) if at >= 0 else b""
    salt, hidden, check = payload[:20], payload[20:-20], payload[-20:]
    stream, last = bytearray(), salt
    while len(stream) < len(hidden):
        last = hashlib.sha1(secret + last, usedforsecurity=False).digest()
        stream += last
    key = bytes(one ^ other for one, other in zip(hidden, stream, strict=False))
    if not key or not hmac.compare_digest(hashlib.sha1(secret + key, usedforsecurity=False).digest(), check):
        raise ConfigError(f"cannot read the key in {location}: its password is wrong; set ssl.key.password")
    return key


def _octets(der: bytes) -> bytes:
    """The content of a DER OCTET STRING; empty where it is none."""
    if len(der) < 2 or der[0] != 0x04:
        return b""
    size, start = der[1], 2
    if size & 0x80:
        start += size & 0x7F
        size = int.from_bytes(der[2:start])
    return der[start : start + size]


def _pem(certificates: list[bytes]) -> str:
    return "".join(armored("CERTIFICATE", base64.b64encode(one).decode()) + "\n" for one in certificates)
