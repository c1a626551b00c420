"""A client's token, kept until most of its lifetime is over. Several connections share one."""

from __future__ import annotations

import base64
import json
import logging
import threading
import time
from collections.abc import Callable
from typing import Any

import attrs

from logkernel.errors import SaslAuthenticationFailed

logger = logging.getLogger(__name__)

REFRESHED_AFTER = 0.8
"""Part of the lifetime after which a new token is asked for, as `sasl.login.refresh.window.factor` by default."""
RETRY_S = 10.0
"""After a refresh that failed while the old token holds."""


@attrs.frozen
class Fetched:
    token: str = attrs.field(repr=False)
    lifetime_s: float | None
    """As the endpoint says it; None: the token itself may say it."""


class TokenSource:
    """Call it for a token; give it to `OAuthBearerClient`. It may wait for the endpoint."""

    def __init__(self, fetch: Callable[[], Fetched], now: Callable[[], float] = time.time) -> None:
        """`now` is wall-clock time in s, which the token's `exp` is told in."""
        self._fetch = fetch
        self._now = now
        self._lock = threading.Lock()
        self._token = ""
        self._fresh_until = 0.0
        self._valid_until = 0.0
        self._failures = 0
        self._failed: SaslAuthenticationFailed | None = None

    def __call__(self) -> str:
        """Raises what `fetch` raises, unless the token at hand still holds; also where another thread's call is what
        failed, if this one waited for it. A connection that ran out of time meanwhile tells nobody why, and the next
        one would wait as long again."""
        failures = self._failures
        with self._lock:
            if self._failures != failures and self._failed is not None:
                raise SaslAuthenticationFailed(str(self._failed)) from self._failed.__cause__
            now = self._now()
            if now >= self._fresh_until:
                self._refresh(now)
            return self._token

    def _refresh(self, now: float) -> None:
        try:
            fetched = self._fetch()
        except SaslAuthenticationFailed as error:
            if now >= self._valid_until:
                self._failures += 1
                self._failed = error
                raise
            logger.warning(
                "the token for OAUTHBEARER is not refreshed, and holds for %.0f s: %s", self._valid_until - now, error
            )
            self._fresh_until = min(self._valid_until, now + RETRY_S)
            return
        self._token, self._failed = fetched.token, None
        ends = [one for one in (_exp(fetched.token), fetched.lifetime_s and now + fetched.lifetime_s) if one]
        self._valid_until = min(ends, default=now)
        self._fresh_until = now + REFRESHED_AFTER * max(self._valid_until - now, 0.0)


def _exp(token: str) -> float | None:
    """When a JWT says that it expires; its signature is the broker's business."""
    try:
        payload = token.split(".")[1]
        claims: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        exp = claims["exp"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return float(exp) if isinstance(exp, (int, float)) and 0 < exp < 1e11 else None
