"""What members and groups leave in the log and among the timers, and how it is taken away."""

from __future__ import annotations

from ..by_epochs.timers import revoke_key
from ..coordinator import GroupCoordinator, session_key
from ..timers import Key
from . import records, regex
from .state import ConsumerGroup, ConsumerMember


def rejoin_key(group_id: str, member_id: str) -> Key:
    return ("rejoin", group_id, member_id)


def resync_key(group_id: str, member_id: str) -> Key:
    return ("resync", group_id, member_id)


def arm(coordinator: GroupCoordinator, group_id: str, member: ConsumerMember) -> None:
    """Restart the member's session timeout."""
    if member.is_classic:
        timeout_ms = member.classic.session_timeout_ms
    else:
        timeout_ms = coordinator.own_ms(group_id, "session.timeout.ms")
    coordinator.after(session_key(group_id, member.member_id), timeout_ms)


def disarm(coordinator: GroupCoordinator, group_id: str, member_id: str) -> None:
    for key in (session_key, revoke_key, rejoin_key, resync_key):
        coordinator.timers.cancel(key(group_id, member_id))


def bury(coordinator: GroupCoordinator, group_id: str, member_id: str) -> None:
    for kind in (records.CURRENT, records.TARGET, records.MEMBER):
        coordinator.append(records.key(kind, group_id, member_id), None)


def erase(coordinator: GroupCoordinator, group_id: str, group: ConsumerGroup) -> None:
    for member_id in group.members:
        bury(coordinator, group_id, member_id)
    coordinator.append(records.key(records.TARGET_EPOCH, group_id), None)
    regex.forget(coordinator, group_id, group.regexes)
    if group.has_old_metadata:
        coordinator.append(records.key(records.PARTITIONS, group_id), None)
    coordinator.append(records.key(records.GROUP, group_id), None)
