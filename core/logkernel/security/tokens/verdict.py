"""What a server makes of a token: `Validated`, or `TokenRefused`."""

from __future__ import annotations

import attrs

from logkernel.errors import LogkernelError

MAX_TOKEN_CHARACTERS = 65_536


class TokenRefused(LogkernelError):
    """A token does not count; the text says why, for the server's log, and has nothing of the token in it."""


@attrs.frozen
class Validated:
    """Who a token stands for."""

    name: str
    """Of the principal (Kafka's OAuthBearerToken.principalName)."""
    expires_ms: int
    """When it ends, in wall-clock ms."""
    scope: frozenset[str] = frozenset()
