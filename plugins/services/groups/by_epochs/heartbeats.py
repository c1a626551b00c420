"""What a member's heartbeat may say."""

from __future__ import annotations

from collections.abc import Set
from typing import Any, Final

from logkernel.errors import FencedMemberEpoch, InvalidRequest

from .state import Member
from .values import Held

BLANK: Final = "".join(map(chr, range(0x21)))
"""What Java's `trim` takes away."""


def check_not_empty(text: str | None, name: str) -> None:
    """Raises `InvalidRequest`."""
    if text is not None and not text.strip(BLANK):
        raise InvalidRequest(f"{name} can't be empty.")


def check_epoch(kind: str, member: Member[Any, Held], epoch: int, held: Set[Held] | None) -> None:
    """Whether the epoch is the member's; or its last response was lost: it is one epoch behind and says that it holds
    only what it may hold. Raises `FencedMemberEpoch`, which names the kind of group."""
    if epoch in (0, member.epoch):
        return
    word = "greater" if epoch > member.epoch else "smaller"
    if epoch == member.previous_epoch and held is not None and held <= member.assigned.keys():
        return
    raise FencedMemberEpoch(
        f"The {kind} group member has a {word} member epoch ({epoch}) than the one known by the group coordinator"
        f" ({member.epoch}). The member must abandon all its partitions and rejoin."
    )


def printed_host(host: str) -> str:
    """As Java prints an address."""
    return host if not host or host.startswith("/") else f"/{host}"
