"""The log of refusals: one line a refusal, on the logger `logkernel.authorizer`.

    refused: principal=User:ann operation=WRITE resource=TOPIC:orders host=10.0.0.7 request=Produce client_id=shop

What clients name is written so that it stays on its line, and cut where it is long. A client that asks again and again
fills no disk: in a minute, at most `MAX_LINES` are written; then the number of those that were not.
"""

from __future__ import annotations

import logging
from typing import Final

from logkernel.contracts import RequestContext
from logkernel.vocabulary import AclOperation, ResourceType

log = logging.getLogger("logkernel.authorizer")

WINDOW_MS: Final = 60_000
MAX_LINES: Final = 1_000
SHOWN: Final = 250
"""Characters of what a client names."""


def shown(text: str) -> str:
    """On one line, without blanks: a name can't be taken for another field."""
    cut = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    if cut.isascii() and cut.isprintable() and not any(mark in cut for mark in " =\\'\""):
        return cut
    return ascii(cut)


class Audit:
    """Writes refusals; time is an argument."""

    def __init__(self) -> None:
        self._window_ms = 0
        self._lines = 0

    def refused(
        self,
        context: RequestContext,
        request: str,
        operation: AclOperation,
        kind: ResourceType,
        name: str,
        mono_ms: int,
    ) -> None:
        if mono_ms - self._window_ms >= WINDOW_MS:
            self._end_window(mono_ms)
        self._lines += 1
        if self._lines > MAX_LINES:
            return
        log.info(
            "refused: principal=%s operation=%s resource=%s:%s host=%s request=%s client_id=%s",
            shown(str(context.principal)), operation.name, kind.name, shown(name), shown(context.client_host),
            request.removesuffix("Request"), shown(context.client_id or ""),
        )  # fmt: skip

    def _end_window(self, mono_ms: int) -> None:
        if self._lines > MAX_LINES:
            log.warning("refused: %d more in the last minute were not written", self._lines - MAX_LINES)
        self._window_ms, self._lines = mono_ms, 0
