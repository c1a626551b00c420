"""What holds of groups at all times: of each kind, and that what is durable is what the log folds to."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from logkernel.plugins.services.groups.state import State


def check_groups(machine: Any, fresh: Any, parked: Container[int]) -> None:
    """Judge a machine beside a `fresh` one that replayed the same log; `parked` are the tickets without an answer."""
    assert fresh.coordinator.transactions == machine.coordinator.transactions
    for group_id, group in machine.groups.items():
        kept = fresh.groups.get(group_id)
        assert group.offsets == (kept.offsets if kept else {})
        assert group.uncommitted == (kept.uncommitted if kept else {})
        if group.consumer is not None or (kept is not None and kept.consumer is not None):
            assert kept is not None
            check_consumer_group(machine, group, kept)
            continue
        if group.streams is not None or (kept is not None and kept.streams is not None):
            assert kept is not None
            check_streams_group(machine, group, kept)
            continue
        check_classic_group(machine, group, parked)
        if kept is not None and group.state in (State.EMPTY, State.STABLE):
            assert durable(group) == durable(kept)
    assert set(fresh.groups) <= set(machine.groups)


def check_classic_group(machine: Any, group: Any, parked: Container[int]) -> None:
    assert not group.is_unused, "an unused group is kept"
    assert group.static == {m.instance_id: m.member_id for m in group.members.values() if m.instance_id is not None}
    assert (group.leader in group.members) if group.members else group.leader is None
    assert group.joining == sum(m.join_ticket is not None for m in group.members.values())
    assert not group.pending & set(group.members)
    if group.state in (State.EMPTY, State.STABLE):
        assert not any(m.join_ticket or m.sync_ticket for m in group.members.values())
    for member in group.members.values():
        assert ("session", group.group_id, member.member_id) in machine.coordinator.timers
        for ticket in (member.join_ticket, member.sync_ticket):
            assert ticket is None or ticket in parked
    timers = machine.coordinator.timers
    assert (("join", group.group_id) in timers) == (group.state is State.PREPARING)
    syncing = group.state in (State.COMPLETING, State.STABLE) and bool(group.unsynced)
    assert (("sync", group.group_id) in timers) == syncing
    assert group.unsynced <= set(group.members)
    for key in timers:
        if key[0] == "session" and key[1] == group.group_id:
            assert key[2] in group.members or key[2] in group.pending, f"{key} outlives its member"


def check_consumer_group(machine: Any, group: Any, kept: Any) -> None:
    """What KIP-848 demands of a group at all times, and that all of it is what the log folds to."""
    now, then = group.consumer, kept.consumer
    assert now is not None
    assert then is not None
    assert group.state is State.EMPTY, "a group is of one protocol"
    assert not group.members
    for name in ("epoch", "metadata_hash", "assignment_epoch", "members", "targets", "regexes", "static", "owners"):
        assert getattr(now, name) == getattr(then, name), name
    assert now.assignment_epoch <= now.epoch
    assert now.static == {m.facts.instance_id: m.member_id for m in now.members.values() if m.facts.instance_id}
    held = [part for member in now.members.values() for part in (*member.assigned, *member.revoking)]
    assert len(held) == len(set(held)), "a partition has two owners"
    assert set(now.owners) == set(held)
    assert set(now.targets) <= set(now.members)
    targets = [part for parts in now.targets.values() for part in parts]
    assert len(targets) == len(set(targets))
    timers = machine.coordinator.timers
    for member in now.members.values():
        assert ("session", group.group_id, member.member_id) in timers
        assert member.epoch <= now.assignment_epoch
        revokes = member.state.name == "UNREVOKED" and not member.is_classic and member.epoch >= 0
        assert (("revoke", group.group_id, member.member_id) in timers) == revokes
    for key in timers:
        if key[0] in ("session", "revoke", "rejoin", "resync") and key[1] == group.group_id:
            assert key[2] in now.members, f"{key} outlives its member"
    assert set(now.regexes) == now.regexes_of(now.members.values())


def check_streams_group(machine: Any, group: Any, kept: Any) -> None:
    """What KIP-1071 demands of a group at all times, and that all of it is what the log folds to."""
    now, then = group.streams, kept.streams
    assert now is not None
    assert then is not None
    assert group.state is State.EMPTY, "a group is of one protocol"
    assert group.consumer is None
    assert not group.members
    for name in ("facts", "recorded", "assignment_epoch", "assigned_ms", "members", "targets", "holders"):
        assert getattr(now, name) == getattr(then, name), name
    assert now.assignment_epoch <= now.epoch
    assert set(now.targets) <= set(now.members)
    held = [(place, name) for name, member in now.members.items() for place in (*member.assigned, *member.revoking)]
    active = [place for place, _ in held if place[0].name == "ACTIVE"]
    assert len(active) == len(set(active)), "a task is active twice"
    for place in {place for place, _ in held}:
        processes = [(now.members[name].facts.process_id, other) for other, name in held if other[1:] == place[1:]]
        assert len({process for process, _ in processes}) == len(processes), "a process has a task twice"
    timers = machine.coordinator.timers
    for member in now.members.values():
        assert ("session", group.group_id, member.member_id) in timers
        assert member.epoch <= now.assignment_epoch
        revokes = member.state.name == "UNREVOKED"
        assert (("revoke", group.group_id, member.member_id) in timers) == revokes
    for key in timers:
        if key[0] in ("session", "revoke") and key[1] == group.group_id:
            assert key[2] in now.members, f"{key} outlives its member"
        assert key != ("streams-initial", group.group_id) or now.members


def durable(group: Any) -> Any:
    """What the log keeps of a classic group."""
    members = {
        m.member_id: (m.instance_id, m.client_id, m.assignment, m.metadata(group.protocol), m.session_timeout_ms)
        for m in group.members.values()
    }
    protocol = group.protocol if group.members else None
    return group.state, group.generation, group.protocol_type, protocol, group.leader, group.state_ms, members
