"""The fold of a KIP-848 group's records."""

from __future__ import annotations

from ..by_epochs.values import RecordKey
from ..coordinator import GroupCoordinator
from . import records
from .state import ConsumerGroup


def replay(coordinator: GroupCoordinator, key: RecordKey, value: bytes | None) -> None:
    """Raises `CorruptMessage`."""
    if value is None:
        _forget(coordinator, key)
        return
    owner = coordinator.group(key.group_id)
    group = owner.consumer
    if group is None:
        group = owner.consumer = ConsumerGroup()
    if key.kind == records.GROUP:
        group.epoch, group.metadata_hash = records.decode_group(value)
    elif key.kind == records.PARTITIONS:
        group.has_old_metadata = True
    elif key.kind == records.MEMBER:
        group.keep_facts(key.name, records.decode_member(value))
    elif key.kind == records.TARGET_EPOCH:
        group.assignment_epoch, group.assigned_ms = records.decode_target_epoch(value)
    elif key.kind == records.TARGET:
        group.targets[key.name] = records.decode_target(value)
    elif key.kind == records.CURRENT:
        group.keep_current(key.name, records.decode_current(value))
    else:
        group.regexes[key.name] = records.decode_regex(value)


def _forget(coordinator: GroupCoordinator, key: RecordKey) -> None:
    owner = coordinator.groups.get(key.group_id)
    if owner is None or owner.consumer is None:
        return
    group = owner.consumer
    if key.kind == records.GROUP:
        owner.consumer, owner.is_known = None, False
        coordinator.tidy(owner)
    elif key.kind == records.PARTITIONS:
        group.has_old_metadata = False
    elif key.kind == records.MEMBER:
        group.forget_member(key.name)
    elif key.kind == records.TARGET_EPOCH:
        group.assignment_epoch = group.assigned_ms = 0
    elif key.kind == records.TARGET:
        group.targets.pop(key.name, None)
    elif key.kind == records.CURRENT:
        group.forget_current(key.name)
    else:
        group.regexes.pop(key.name, None)
