"""Keeps the keys of a JWKS fresh on a thread of its own, so that no authentication waits for the endpoint."""

from __future__ import annotations

import logging
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote

import attrs

from logkernel.errors import ConfigError
from logkernel.security.tokens.http import MAX_RESPONSE_BYTES, Endpoint, HttpFailed, checked_url, request
from logkernel.security.tokens.jwks import Keys, read_keys

logger = logging.getLogger(__name__)

SETTING = "sasl.oauthbearer.jwks.endpoint.url"
MISSED_EVERY_S = 60.0
"""How often tokens that name unknown keys may have them fetched early."""


@attrs.frozen
class JwksEndpoint:
    """`sasl.oauthbearer.jwks.endpoint.*` of a listener; http, https or file."""

    endpoint: Endpoint
    refresh_ms: int = 3_600_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 10_000

    def __attrs_post_init__(self) -> None:
        checked_url(self.endpoint.url, SETTING, ("http", "https", "file"))

    def fetch(self) -> Keys:
        """Raises `ConfigError` or `HttpFailed`."""
        parts = checked_url(self.endpoint.url, SETTING, ("http", "https", "file"))
        if parts.scheme != "file":
            return read_keys(request(self.endpoint, "GET", {"Accept": "application/json"}))
        path = Path(unquote(parts.path))
        try:
            with path.open("rb") as file:
                return read_keys(file.read(MAX_RESPONSE_BYTES))
        except OSError as error:
            raise ConfigError(f"cannot read {path}: {error.strerror}; check {SETTING}") from None


class KeyRefresh:
    """`present` and `missed` are what `JwksValidator` takes. Its thread ends with `close`, or when nobody holds it."""

    def __init__(self, settings: JwksEndpoint, now: Callable[[], float] = time.monotonic) -> None:
        """Fetch the keys once, which may wait. A failure is logged and tried again: until then there are no keys."""
        self._settings = settings
        self._now = now
        self._keys: Keys = {}
        self._wake = threading.Event()
        self._closed = False
        self._next_missed = 0.0
        self._failures = 0
        self._pause_s = self._refresh()
        weakref.finalize(self, self._wake.set)
        self._thread = threading.Thread(target=_run, args=(weakref.ref(self), self._wake), name="jwks", daemon=True)
        self._thread.start()

    def present(self) -> Keys:
        return self._keys

    def missed(self) -> None:
        """Have the keys fetched soon. It returns at once, and does nothing if it was called a short while ago."""
        now = self._now()
        if now >= self._next_missed:
            self._next_missed = now + MISSED_EVERY_S
            self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()
        self._thread.join()

    @property
    def pause_s(self) -> float | None:
        """Until the keys are to be fetched again; None: never, it is closed."""
        return None if self._closed else self._pause_s

    def refresh(self) -> None:
        """Fetch, unless it is closed."""
        if not self._closed:
            self._pause_s = self._refresh()

    def _refresh(self) -> float:
        """Fetch, and return the s until the next time."""
        try:
            self._keys = self._settings.fetch()
        except (ConfigError, HttpFailed) as error:
            logger.error(
                "the keys of OAUTHBEARER's tokens are not %s: %s", "refreshed" if self._keys else "read yet", error
            )
            pause_ms = self._settings.retry_backoff_ms << min(self._failures, 20)
            self._failures += 1
            return min(pause_ms, self._settings.retry_backoff_max_ms) / 1000
        self._failures = 0
        return self._settings.refresh_ms / 1000


def _run(held: weakref.ref[KeyRefresh], wake: threading.Event) -> None:
    while (refresh := held()) is not None and (pause_s := refresh.pause_s) is not None:
        del refresh
        wake.wait(pause_s)
        wake.clear()
        if (refresh := held()) is not None:
            refresh.refresh()
            del refresh
