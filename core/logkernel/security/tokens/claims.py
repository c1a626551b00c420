"""Claims of a token, which its holder may have written: each is checked before it is used."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from typing import Any

from logkernel.security.tokens.verdict import TokenRefused

MAX_SECONDS = 1e11
"""A time in s; later ones are in ms by mistake, or no numbers."""


def text_of(claims: Mapping[str, Any], name: str) -> str:
    """A claim that names a principal: not empty, and without characters that would forge a log."""
    value = claims.get(name)
    if not isinstance(value, str) or not value.strip():
        raise TokenRefused(
            f"the token has no text as its claim {name!r}; name the right claim by sasl.oauthbearer.sub.claim.name"
        )
    if any(unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") for one in value):
        raise TokenRefused(f"the token's claim {name!r} has control characters; name the principal without them")
    return value.strip()


def number_of(claims: Mapping[str, Any], name: str) -> float:
    """A time, in s since 1970."""
    value = claims.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TokenRefused(f"the token has no number as its claim {name!r}; check its provider")
    if not 0 <= value < MAX_SECONDS:  # nor NaN, nor an integer that no float holds
        raise TokenRefused(f"the token's claim {name!r} is no time in seconds; check its provider")
    return float(value)


def scope_of(claims: Mapping[str, Any], name: str) -> frozenset[str]:
    """Text with spaces between, or a list of texts; a token may have none."""
    value = claims.get(name, "")
    found = value.split(" ") if isinstance(value, str) else value
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise TokenRefused(f"the token's claim {name!r} is no text and no list of texts; check its provider")
    return frozenset(one for one in found if one)
