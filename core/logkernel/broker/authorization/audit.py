"""The log of refusals, on the logger `logkernel.authorizer`: each is written once, and counted when it comes again.

    refused: principal=User:ann operation=WRITE resource=TOPIC:orders host=10.0.0.7 request=Produce client_id=shop
    refused: principal=User:ann operation=WRITE resource=TOPIC:orders (this came 412 times more in 60 s)
    refused: principal=User:eve: 90000 more in 60 s are not written

Refusals of one principal, operation and resource are the same (`security.repeats` counts them). What clients name is
written so that it stays on its line, and cut where it is long.
"""

from __future__ import annotations

import logging
from typing import Final

from logkernel.contracts import RequestContext
from logkernel.security.repeats import After, Repeats
from logkernel.vocabulary import AclOperation, ResourceType

log = logging.getLogger("logkernel.authorizer")

MAX_EACH: Final = 500
MAX_ALL: Final = 2_000
SHOWN: Final = 250
"""Characters of what a client names."""


def shown(text: str) -> str:
    """On one line, without blanks: a name can't be taken for another field."""
    cut = text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
    if cut.isascii() and cut.isprintable() and not any(mark in cut for mark in " =\\'\""):
        return cut
    return ascii(cut)


class Audit:
    """Writes refusals."""

    def __init__(self, after: After) -> None:
        self._repeats = Repeats(log, "refused: principal", after, max_each=MAX_EACH, max_all=MAX_ALL)

    def refused(
        self, context: RequestContext, request: str, operation: AclOperation, kind: ResourceType, name: str
    ) -> None:
        principal = shown(str(context.principal))
        refusal = f"operation={operation.name} resource={kind.name}:{shown(name)}"
        if self._repeats.is_new(principal, refusal):
            log.info(
                "refused: principal=%s %s host=%s request=%s client_id=%s", principal, refusal,
                shown(context.client_host), request.removesuffix("Request"), shown(context.client_id or ""),
            )  # fmt: skip

    def close(self) -> None:
        """Write what was counted; the broker stops."""
        self._repeats.close()
