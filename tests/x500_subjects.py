"""Certificates with subjects of many kinds."""

from __future__ import annotations

from datetime import UTC, datetime

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.name import _ASN1Type
from cryptography.x509.oid import NameOID

CN, OU, ORG, C = NameOID.COMMON_NAME, NameOID.ORGANIZATIONAL_UNIT_NAME, NameOID.ORGANIZATION_NAME, NameOID.COUNTRY_NAME
KEY = ec.generate_private_key(ec.SECP256R1())


def name(*attributes: tuple[x509.ObjectIdentifier, str]) -> x509.Name:
    return x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])


def typed(value: str, kind: _ASN1Type) -> x509.Name:
    return x509.Name([x509.NameAttribute(CN, value, kind)])


SUBJECTS: dict[str, x509.Name] = {
    "CN=alice,OU=Dev,O=Org,C=DE": name((C, "DE"), (ORG, "Org"), (OU, "Dev"), (CN, "alice")),
    'CN=a\\,b\\+c\\=d\\"e\\\\f\\<g\\>h\\;i\\#j': name((CN, 'a,b+c=d"e\\f<g>h;i#j')),
    "CN=\\#first": name((CN, "#first")),
    "CN=\\ \\ padded in side\\ ": name((CN, "  padded in side ")),
    "CN=\\ ": name((CN, " ")),
    "CN=ünïcode 日本": name((CN, "ünïcode 日本")),
    "CN=printable": typed("printable", _ASN1Type.PrintableString),
    "CN=ia5@x": typed("ia5@x", _ASN1Type.IA5String),
    "CN=#1c14000000750000006e00000069000000760000002e": typed("univ.", _ASN1Type.UniversalString),
    "1.2.840.113549.1.9.1=#1607614062632e6465,CN=mail": name((CN, "mail"), (NameOID.EMAIL_ADDRESS, "a@bc.de")),
    "2.5.4.5=#130134,CN=serial": name((CN, "serial"), (NameOID.SERIAL_NUMBER, "4")),
    "UID=u,DC=example,DC=com": name(
        (NameOID.DOMAIN_COMPONENT, "com"), (NameOID.DOMAIN_COMPONENT, "example"), (NameOID.USER_ID, "u")
    ),
    "CN=x,STREET=s,ST=Berlin,L=here": name(
        (NameOID.LOCALITY_NAME, "here"),
        (NameOID.STATE_OR_PROVINCE_NAME, "Berlin"),
        (NameOID.STREET_ADDRESS, "s"),
        (CN, "x"),
    ),
    "CN=one+OU=two,O=last": x509.Name(
        [
            x509.RelativeDistinguishedName([x509.NameAttribute(ORG, "last")]),
            x509.RelativeDistinguishedName([x509.NameAttribute(CN, "one"), x509.NameAttribute(OU, "two")]),
        ]
    ),
    "1.2.3.4.5.999999=#0c0178": name((x509.ObjectIdentifier("1.2.3.4.5.999999"), "x")),
    "CN=two\nlines\t": name((CN, "two\nlines\t")),
    "": x509.Name([]),
}
"""By the name that Java gives each; `tests/interop/test_principal_names.py` asks Java."""


BMP_SUBJECT = typed("bmp ü", _ASN1Type.BMPString)
"""Java 17 reads its bytes as UTF-8, and writes `CN=\\00b\\00m…`."""


def certificate(subject: x509.Name) -> bytes:
    """In DER."""
    issued = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(name((CN, "issuer")))
        .public_key(KEY.public_key())
        .serial_number(1)
        .not_valid_before(datetime(2020, 1, 1, tzinfo=UTC))
        .not_valid_after(datetime(2100, 1, 1, tzinfo=UTC))
        .sign(KEY, hashes.SHA256())
    )
    return issued.public_bytes(serialization.Encoding.DER)


NAMES = (
    "CN=kafka.example.com,OU=ServiceUsers,O=Org,C=DE",
    "CN=adminUser,OU=Admin",
    "CN=Alice",
    "CN=a\\,b,OU=x/y",
    "",
)
RULES = {
    "DEFAULT": "",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/": "",
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, RULE:^CN=(.*?),OU=Admin$/adm-$1/U ,DEFAULT": "",
    "RULE:^CN=(.*?)$/$1/L,\nDEFAULT": "",
    "RULE:.*/x/": "replaced twice, as the pattern also matches the empty end",
    "RULE:CN=(.*?)/$1/": "",
    "RULE:^CN=(\\w+)(?:,OU=(\\w+))?.*$/$2@$1/": "a group that took no part is empty",
    "RULE:^CN=(.*?),.*$/$1$2$11/": "groups that are not there are text",
    "RULE:^.*OU=x\\/y$/a\\/b\\$1\\\\/": "escapes",
    "RULE:^CN=Alice$/const/,RULE:^CN=.*$/other/": "",
    "RULE:^OU=none$/x/": "",
}
"""Rules → what is special."""
