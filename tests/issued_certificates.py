"""Certificates that are wrong in one way each: what trustme does not make."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

from authorities import Certified, authority
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BOTH = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH)


def issued(
    name: str,
    *,
    by: str = "ours",
    host: str = "127.0.0.1",
    usages: tuple[x509.ObjectIdentifier, ...] = BOTH,
    ends: timedelta = timedelta(days=1),
) -> Certified:
    """A certificate about `name`, for a host of that address; `ends` is how long it holds from now on."""
    signer = authority(by)
    signing_key = serialization.load_pem_private_key(signer.private_key_pem.bytes(), None)
    assert isinstance(signing_key, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
        .issuer_name(x509.load_pem_x509_certificate(signer.cert_pem.bytes()).subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=2))
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(host))]), critical=False)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .sign(signing_key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Certified(private.decode(), made.public_bytes(serialization.Encoding.PEM).decode())


WRONG: Mapping[str, Callable[[], Certified]] = {
    "expired": lambda: issued("broker", ends=timedelta(hours=-1)),
    "another authority": lambda: issued("broker", by="others"),
    "another host": lambda: issued("broker", host="127.0.0.9"),
    "not for clients": lambda: issued("broker", usages=(ExtendedKeyUsageOID.SERVER_AUTH,)),
    "not for servers": lambda: issued("broker", usages=(ExtendedKeyUsageOID.CLIENT_AUTH,)),
}
"""Those of a broker that others do not take."""
