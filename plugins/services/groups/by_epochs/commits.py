"""Checks whether a request may commit or fetch offsets of a group: members may, by their epoch.

A commit with the member's epoch is taken. One with an older epoch may have been under way while the epoch grew: it is
taken for the partitions that the member has held since then (KIP-1251). While nobody is in the group, operators
may commit without being anyone.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from logkernel.contracts import RequestContext
from logkernel.errors import UnknownMemberId, UnsupportedVersion

from .state import EpochGroup


def fault_of(
    group: EpochGroup[Any, Any],
    member_id: str,
    instance_id: str | None,
    epoch: int,
    context: RequestContext,
    *,
    transactional: bool = False,
) -> int:
    """The error code for all partitions of a commit, else 0."""
    if epoch < 0 and not group.members:
        return 0
    if transactional and epoch == -1 and not member_id and instance_id is None:
        return 0
    member = group.members.get(member_id)
    if member is None:
        return UnknownMemberId.code
    if not transactional and not member.is_classic and "member_epochs" not in context.capabilities:
        return UnsupportedVersion.code
    return int(member.stale_code) if epoch > member.epoch else 0


def fault_of_partition(
    group: EpochGroup[Any, Any], member_id: str, epoch: int, topic: str, topic_id: UUID | None, partition: int
) -> int:
    """The error code for one partition of a commit that has no fault as a whole, else 0."""
    member = group.members.get(member_id)
    if member is None or epoch == member.epoch:
        return 0
    held = group.held_as(topic, topic_id, partition)
    since = member.held_since(held) if held is not None else None
    return 0 if since is not None and epoch >= since else int(member.stale_code)


def fetch_fault_of(group: EpochGroup[Any, Any], member_id: str | None, epoch: int) -> int:
    """Return the error code of an OffsetFetch, else 0. A request without a member id is an operator's."""
    if member_id is None and epoch < 0:
        return 0
    member = group.members.get(member_id or "")
    if member is None:
        return UnknownMemberId.code
    return 0 if epoch == member.epoch else int(member.stale_code)
