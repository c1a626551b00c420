"""PKCS#12 (RFC 7292), by `cryptography`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from logkernel.errors import ConfigError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.serialization.pkcs12 import PKCS12KeyAndCertificates
    from cryptography.x509 import Certificate


def read_identity(data: bytes, location: str, password: str, key_password: str) -> tuple[str, str]:
    """Key and certificates of a keystore, in PEM. PKCS#12 has one password for both."""
    store = _load(data, location, password or key_password, "ssl.keystore.password")
    if store.key is None or store.cert is None:
        raise ConfigError(f"{location} has no private key with a certificate; give a keystore that has one")
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    chain = _chain(store.cert.certificate, [extra.certificate for extra in store.additional_certs])
    return key.decode(), _pem(chain)


def read_trusted(data: bytes, location: str, password: str) -> str:
    """All certificates of a truststore, in PEM."""
    store = _load(data, location, password, "ssl.truststore.password")
    found = [extra.certificate for extra in store.additional_certs]
    if store.cert is not None:
        found.append(store.cert.certificate)
    if not found:
        raise ConfigError(f"{location} has no certificate; import the CA's with keytool -importcert")
    return _pem(found)


def _load(data: bytes, location: str, password: str, setting: str) -> PKCS12KeyAndCertificates:
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise ConfigError(
            f"{location} is a PKCS#12 file, which needs the package cryptography; "
            "run pip install 'logkernel[security]', or give PEM files"
        ) from None
    try:
        return load_pkcs12(data, password.encode() or None)
    except Exception as error:  # ValueError by its docs, UnsupportedAlgorithm and others by the file
        raise ConfigError(
            f"cannot open {location} ({type(error).__name__}); check {setting}, and that it is a whole PKCS#12 file"
        ) from None


def _chain(own: Certificate, others: list[Certificate]) -> list[Certificate]:
    """From the own certificate to its last issuer, whatever the order in the file."""
    chain, left = [own], list(others)
    while issuer := next((one for one in left if one.subject == chain[-1].issuer), None):
        left.remove(issuer)
        chain.append(issuer)
    return chain


def _pem(certificates: list[Certificate]) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding

    return "".join(one.public_bytes(Encoding.PEM).decode() for one in certificates)
