"""What members and groups leave in the log and among the timers, and how it is taken away."""

from __future__ import annotations

from ..shard import Shard, session_key
from ..timers import Key
from . import records, regex
from .state import ConsumerGroup, Member


def revoke_key(group_id: str, member_id: str) -> Key:
    return ("revoke", group_id, member_id)


def rejoin_key(group_id: str, member_id: str) -> Key:
    return ("rejoin", group_id, member_id)


def resync_key(group_id: str, member_id: str) -> Key:
    return ("resync", group_id, member_id)


def arm(shard: Shard, group_id: str, member: Member) -> None:
    """The member's session begins anew."""
    if member.is_classic:
        timeout_ms = member.classic.session_timeout_ms
    else:
        timeout_ms = shard.own_ms(group_id, "session.timeout.ms")
    shard.after(session_key(group_id, member.member_id), timeout_ms)


def disarm(shard: Shard, group_id: str, member_id: str) -> None:
    for key in (session_key, revoke_key, rejoin_key, resync_key):
        shard.timers.cancel(key(group_id, member_id))


def bury(shard: Shard, group_id: str, member_id: str) -> None:
    for kind in (records.CURRENT, records.TARGET, records.MEMBER):
        shard.append(records.key(kind, group_id, member_id), None)


def erase(shard: Shard, group_id: str, group: ConsumerGroup) -> None:
    for member_id in group.members:
        bury(shard, group_id, member_id)
    shard.append(records.key(records.TARGET_EPOCH, group_id), None)
    regex.forget(shard, group_id, group.regexes)
    if group.has_old_metadata:
        shard.append(records.key(records.PARTITIONS, group_id), None)
    shard.append(records.key(records.GROUP, group_id), None)
