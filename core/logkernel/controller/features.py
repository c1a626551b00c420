"""Finalized features (KIP-584): levels go up, and down where the request says that it means to.

| wanted level | upgrade (1) | safe downgrade (2) | unsafe downgrade (3) |
|---|---|---|---|
| outside what is supported | refused | refused | refused |
| above the present one | taken | taken | taken |
| the present one | nothing to do | nothing to do | nothing to do |
| below it | refused | taken | taken |

A request is carried out whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from logkernel.contracts import MetadataChange
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.errors import InvalidRequest, InvalidUpdateVersion, KafkaError
from logkernel.requests.quorum import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
Levels = Mapping[str, tuple[int, int, int]]
"""Feature → (lowest, highest, present level)."""


def update(request: UpdateFeaturesRequest, known: Levels) -> ControllerResult:
    out = ControllerResult([], UpdateFeaturesResponse(), Effects())
    seen: set[str] = set()
    try:
        for row in request.feature_updates:
            if row.feature in seen:
                raise InvalidRequest(f"the request names feature {row.feature!r} more than once; name it once")
            seen.add(row.feature)
            if _checked(row, known):
                out.changes.append(MetadataChange("feature", row.feature, {"level": row.max_version_level}))
    except KafkaError as error:
        refused = UpdateFeaturesResponse(error_code=error.code, error_message=f"no feature was changed: {error}")
        return ControllerResult([], refused, Effects())
    out.response.results = [UpdatableFeatureResult(row.feature) for row in request.feature_updates]
    if request.validate_only:
        out.changes.clear()
    return out


def _checked(row: FeatureUpdateKey, known: Levels) -> bool:
    """Whether the update changes a level. Raises KafkaError if it is not allowed."""
    name, level = row.feature, row.max_version_level
    if row.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        raise InvalidUpdateVersion(f"{name[:100]}: upgrade type {row.upgrade_type} is not known; use 1, 2 or 3")
    if name not in known:
        names = ", ".join(sorted(known)) or "none"
        raise InvalidUpdateVersion(f"there is no feature {name[:100]!r}; use one of {names}")
    low, high, present = known[name]
    if not low <= level <= high:
        raise InvalidUpdateVersion(f"{name}: level {level} is not supported; use {low} to {high}")
    if level < present and row.upgrade_type == UPGRADE:
        raise InvalidUpdateVersion(f"{name}: level {level} is below {present}; ask for a downgrade")
    return level != present
