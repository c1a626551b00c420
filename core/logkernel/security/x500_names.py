"""The subject of a certificate as Java's X500Principal.getName() writes it: RFC 2253, which ACLs are made of.

The bytes are those of a certificate that OpenSSL has verified. Attributes that RFC 2253 has no word for are written by
their OID and their DER in hexadecimal, as Java does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from logkernel.errors import SslAuthenticationException

KEYWORDS = {
    "2.5.4.3": "CN",
    "2.5.4.6": "C",
    "2.5.4.7": "L",
    "2.5.4.8": "ST",
    "2.5.4.9": "STREET",
    "2.5.4.10": "O",
    "2.5.4.11": "OU",
    "0.9.2342.19200300.100.1.1": "UID",
    "0.9.2342.19200300.100.1.25": "DC",
}
_ENCODINGS = {0x0C: "utf-8", 0x13: "ascii", 0x14: "latin-1", 0x16: "ascii", 0x1B: "ascii", 0x1E: "utf-16-be"}
"""By the tags of strings: UTF8, Printable, T61, IA5, General, BMP."""
_ESCAPED = ',=+<>#;"\\'
_SEQUENCE, _SET, _OID, _VERSION = 0x30, 0x31, 0x06, 0xA0


class Element(NamedTuple):
    tag: int
    content: bytes
    der: bytes
    """With its tag and length."""


def subject_name(certificate: bytes) -> str:
    """Of a certificate in DER; "" of one without a subject. Raises `SslAuthenticationException` where it is no such."""
    try:
        return ",".join(reversed([_relative(one) for one in elements(_subject(certificate))]))
    except (ValueError, IndexError, StopIteration):
        raise SslAuthenticationException(
            "the subject of a certificate cannot be read; use another certificate"
        ) from None


def _subject(certificate: bytes) -> bytes:
    subject = fields(certificate)[4]  # behind the serial number, the algorithm, the issuer and the validity
    if subject.tag != _SEQUENCE:
        raise ValueError
    return subject.content


def fields(certificate: bytes) -> list[Element]:
    """What a certificate in DER says, without its version: serial number, algorithm, issuer, validity, subject, key."""
    whole = next(elements(certificate))
    return [one for one in elements(next(elements(whole.content)).content) if one.tag != _VERSION]


def elements(der: bytes) -> Iterator[Element]:
    """What stands one after the other in DER. Raises `ValueError` for a length beyond its end."""
    at = 0
    while at < len(der):
        tag, size, start = der[at], der[at + 1], at + 2
        if size & 0x80:
            digits = size & 0x7F
            size = int.from_bytes(der[start : start + digits])
            start += digits
        end = start + size
        if end > len(der):
            raise ValueError
        yield Element(tag, der[start:end], der[at:end])
        at = end


def _relative(name: Element) -> str:
    """A relative distinguished name: mostly one attribute."""
    if name.tag != _SET:
        raise ValueError
    return "+".join(_attribute(one.content) for one in elements(name.content))


def _attribute(der: bytes) -> str:
    kind, value = elements(der)
    if kind.tag != _OID:
        raise ValueError
    oid = _dotted(kind.content)
    keyword, encoding = KEYWORDS.get(oid), _ENCODINGS.get(value.tag)
    if keyword is None or encoding is None:
        return f"{keyword or oid}=#{value.der.hex()}"
    return f"{keyword}={_escaped(value.content.decode(encoding, errors='replace'))}"


def _escaped(value: str) -> str:
    kept = value.strip(" \r")
    lead = len(value) - len(value.lstrip(" \r"))
    inner = "".join(f"\\{one}" if one in _ESCAPED else "\\00" if one == "\0" else one for one in kept)
    before = "".join(f"\\{one}" for one in value[:lead])
    after = "".join(f"\\{one}" for one in value[lead + len(kept) :])
    return before + inner + after


def _dotted(content: bytes) -> str:
    arcs, number = [], 0
    for byte in content:
        number = number << 7 | byte & 0x7F
        if not byte & 0x80:
            arcs.append(number)
            number = 0
    first = min(arcs[0] // 40, 2)
    return ".".join(str(arc) for arc in (first, arcs[0] - 40 * first, *arcs[1:]))
