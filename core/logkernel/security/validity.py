"""From when to when a certificate is valid (RFC 5280, 4.1.2.5)."""

from __future__ import annotations

from datetime import UTC, datetime

from logkernel.security.x500_names import Element, elements, fields

_UTC_TIME, _GENERALIZED_TIME = 0x17, 0x18
_VALIDITY = 3
"""Its place among the fields of a certificate."""


def wrong_now(certificate: bytes, now: datetime) -> str | None:
    """What is wrong with the time of a certificate in DER, for a log: "expired at 2026-01-31T00:00:00+00:00". None: it
    is valid, or its times cannot be read."""
    try:
        begin, end = (_time(one) for one in elements(fields(certificate)[_VALIDITY].content))
    except (ValueError, IndexError, StopIteration):
        return None
    if now > end:
        return f"expired at {end.isoformat()}"
    return f"is not valid before {begin.isoformat()}" if now < begin else None


def _time(element: Element) -> datetime:
    text = element.content.decode("ascii")
    if element.tag == _UTC_TIME:
        text = ("20" if text[:2] < "50" else "19") + text
    elif element.tag != _GENERALIZED_TIME:
        raise ValueError
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
