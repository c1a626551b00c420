"""The fold of a Streams group's records."""

from __future__ import annotations

from ..by_epochs.state import FIRST_EPOCH
from ..by_epochs.values import NO_TIME, RecordKey
from ..coordinator import GroupCoordinator
from . import records
from .state import StreamsGroup


def replay(coordinator: GroupCoordinator, key: RecordKey, value: bytes | None) -> None:
    """Raises `CorruptMessage`."""
    if value is None:
        _forget(coordinator, key)
        return
    owner = coordinator.group(key.group_id)
    group = owner.streams
    if group is None:
        group = owner.streams = StreamsGroup()
    if key.kind == records.GROUP:
        group.facts, group.recorded = records.decode_group(value), True
    elif key.kind == records.MEMBER:
        group.keep_facts(key.name, records.decode_member(value))
    elif key.kind == records.TARGET_EPOCH:
        group.assignment_epoch, group.assigned_ms = records.decode_target_epoch(value)
    elif key.kind == records.TARGET:
        group.targets[key.name] = records.decode_target(value)
    elif key.kind == records.CURRENT:
        group.keep_current(key.name, records.decode_current(value))
    else:
        group.topology, group.configured = records.decode_topology(value), None


def _forget(coordinator: GroupCoordinator, key: RecordKey) -> None:
    owner = coordinator.groups.get(key.group_id)
    if owner is None or owner.streams is None:
        return
    group = owner.streams
    if key.kind == records.GROUP:
        owner.streams, owner.is_known = None, False
        coordinator.tidy(owner)
    elif key.kind == records.MEMBER:
        group.forget_member(key.name)
    elif key.kind == records.TARGET_EPOCH:
        group.assignment_epoch, group.assigned_ms = FIRST_EPOCH, NO_TIME
    elif key.kind == records.TARGET:
        group.targets.pop(key.name, None)
    elif key.kind == records.CURRENT:
        group.forget_current(key.name)
    else:
        group.topology = group.configured = None
