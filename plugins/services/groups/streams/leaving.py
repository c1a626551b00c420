"""Members that leave or run out of time, and the end of a group.

session   no sign of life
revoke    a member did not give up in time what it was to give up
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve

from ..coordinator import GroupCoordinator, session_key
from ..timers import Key
from . import progress, records
from .state import MemberState, StreamsGroup, StreamsMember


def revoke_key(group_id: str, member_id: str) -> Key:
    return ("revoke", group_id, member_id)


def watch_revocation(coordinator: GroupCoordinator, group_id: str, before: StreamsMember, after: StreamsMember) -> None:
    """One that is to give up tasks has its rebalance timeout for it."""
    key = revoke_key(group_id, after.member_id)
    if after.state is not MemberState.UNREVOKED_TASKS:
        coordinator.timers.cancel(key)
    elif before.current() != after.current() or key not in coordinator.timers:
        coordinator.after(key, after.facts.rebalance_timeout_ms)


def on_loaded(coordinator: GroupCoordinator, group_id: str, group: StreamsGroup) -> None:
    """Restart all session timeouts and revocation timeouts."""
    for member in group.members.values():
        timeout_ms = progress.own_int(coordinator, group_id, "session.timeout.ms")
        coordinator.after(session_key(group_id, member.member_id), timeout_ms)
        watch_revocation(coordinator, group_id, member, member)


def remove(coordinator: GroupCoordinator, group_id: str, group: StreamsGroup, gone: Collection[str]) -> None:
    """Take members out for good."""
    found = [name for name in gone if name in group.members]
    for member_id in found:
        coordinator.timers.cancel(session_key(group_id, member_id))
        coordinator.timers.cancel(revoke_key(group_id, member_id))
        bury(coordinator, group_id, member_id)
    if found:
        progress.keep_group(coordinator, group_id, evolve(group.facts, epoch=group.epoch + 1))
    if len(found) == len(group.members):
        coordinator.timers.cancel(progress.initial_key(group_id))


def bury(coordinator: GroupCoordinator, group_id: str, member_id: str) -> None:
    for kind in (records.CURRENT, records.TARGET, records.MEMBER):
        coordinator.append(records.key(kind, group_id, member_id), None)


def erase(coordinator: GroupCoordinator, group_id: str, group: StreamsGroup) -> None:
    for member_id in group.members:
        bury(coordinator, group_id, member_id)
    for kind in (records.TARGET_EPOCH, records.GROUP, records.TOPOLOGY):
        coordinator.append(records.key(kind, group_id), None)
    coordinator.timers.cancel(progress.initial_key(group_id))
