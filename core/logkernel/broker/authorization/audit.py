"""The log of refusals, on the logger `logkernel.authorizer`: each is written once, and counted when it comes again.

    refused: principal=User:ann operation=WRITE resource=TOPIC:orders host=10.0.0.7 request=Produce client_id=shop
    refused: principal=User:ann operation=WRITE resource=TOPIC:orders and 412 more in 60 s
    refused: principal=User:eve and 90000 more in 60 s that are not written

Refusals of one principal, operation and resource are the same. They are counted for as long as they come again in each
window of a minute; the next one after that is written anew. What clients name is written so that it stays on its line,
and cut where it is long. Nobody fills disk or memory with names, or hides others' refusals by his own: in a window,
`MAX_EACH` different refusals of a principal are written, and `MAX_ALL` of all. Those beyond are counted by principal.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final

from logkernel.contracts import RequestContext
from logkernel.vocabulary import AclOperation, ResourceType

log = logging.getLogger("logkernel.authorizer")

WINDOW_MS: Final = 60_000
MAX_EACH: Final = 500
MAX_ALL: Final = 2_000
MAX_COUNTED: Final = 200
"""Principals of which refusals are counted that are not written."""
OTHERS: Final = "(others)"
"""Those beyond; no principal is written so."""
SHOWN: Final = 250
"""Characters of what a client names."""


def shown(text: str) -> str:
    """On one line, without blanks: a name can't be taken for another field."""
    cut = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    if cut.isascii() and cut.isprintable() and not any(mark in cut for mark in " =\\'\""):
        return cut
    return ascii(cut)


class Audit:
    """Writes refusals; a timer ends the windows in which they are counted."""

    def __init__(self, after: Callable[[int, Callable[[], None]], object]) -> None:
        """`after` runs a call when so many ms are over."""
        self._after = after
        self._again: dict[str, dict[str, int]] = {}
        """Principal → what of it was written → how often that came again in this window."""
        self._written = 0
        """Refusals in `_again`."""
        self._beyond: dict[str, int] = {}
        """Principal → how many of its refusals in this window are not written."""
        self._has_window = False

    def refused(
        self, context: RequestContext, request: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> None:
        principal = shown(str(context.principal))
        refusal = f"operation={operation.name} resource={kind.name}:{shown(name)}"
        known = self._again.get(principal, {})
        if refusal in known:
            known[refusal] += 1
            return
        if len(known) < MAX_EACH and self._written < MAX_ALL:
            self._again.setdefault(principal, known)[refusal] = 0
            self._written += 1
            log.info(
                "refused: principal=%s %s host=%s request=%s client_id=%s", principal, refusal,
                shown(context.client_host), request.removesuffix("Request"), shown(context.client_id or ""),
            )  # fmt: skip
        else:
            counted = principal if principal in self._beyond or len(self._beyond) < MAX_COUNTED else OTHERS
            self._beyond[counted] = self._beyond.get(counted, 0) + 1
        if not self._has_window:
            self._has_window = True
            self._after(WINDOW_MS, self._end_window)

    def close(self) -> None:
        """Write what was counted; the broker stops."""
        self._tell("before the broker stopped")
        self._again.clear()
        self._written = 0

    def _end_window(self) -> None:
        self._tell(f"in {WINDOW_MS // 1000} s")
        came_again = (
            (principal, {refusal: 0 for refusal, more in known.items() if more})
            for principal, known in self._again.items()
        )
        self._again = {principal: known for principal, known in came_again if known}
        self._written = sum(map(len, self._again.values()))
        self._has_window = bool(self._again)
        if self._has_window:
            self._after(WINDOW_MS, self._end_window)

    def _tell(self, when: str) -> None:
        for principal, known in self._again.items():
            for refusal, more in known.items():
                if more:
                    log.info("refused: principal=%s %s and %d more %s", principal, refusal, more, when)
        for principal, more in self._beyond.items():
            log.warning("refused: principal=%s and %d more %s that are not written", principal, more, when)
        self._beyond.clear()
