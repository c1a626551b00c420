"""Members that leave or run out of time, and the end of a group.

session   no sign of life
revoke    a member did not give up in time what it was to give up
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import evolve

from ..by_epochs.timers import revoke_key, watch_revocation
from ..coordinator import GroupCoordinator, session_key
from . import progress, records
from .state import StreamsGroup


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
