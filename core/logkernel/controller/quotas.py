"""Client quotas: altered and described. `broker/quotas` enforces them.

An entity is a user, a client id, both, or an address; None in place of a name is the default of its type.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Sequence
from typing import Any

from logkernel.contracts import MetadataChange
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import ClusterImage, Entity, quota_key
from logkernel.errors import InvalidRequest, KafkaError, UnsupportedVersion
from logkernel.requests.access import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasResponse,
    AlterClientQuotasResponseEntryData,
    AlterClientQuotasResponseEntryDataEntityData,
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
    ValueData,
)

USER, CLIENT_ID, IP = "user", "client-id", "ip"
EXACT, DEFAULT, SPECIFIED = range(3)
_CLIENT_KEYS = {"producer_byte_rate": True, "consumer_byte_rate": True, "request_percentage": False,
                "controller_mutation_rate": False}  # fmt: skip
_IP_KEYS = {"connection_creation_rate": True}
"""Quota → whether it must be a whole number."""
MAX_NAME_CHARACTERS = 1_000
_MAX_INT, _MAX_LONG = 2**31 - 1, 2**63 - 1


def alter(request: AlterClientQuotasRequest, image: ClusterImage) -> ControllerResult:
    """Alter each entity on its own; all its quotas change, or none."""
    out = ControllerResult([], AlterClientQuotasResponse(), Effects())
    entities = [
        tuple(sorted(((one.entity_type, one.entity_name) for one in row.entity), key=lambda part: part[0]))
        for row in request.entries
    ]
    asked = Counter(entities)
    for row, entity in zip(request.entries, entities, strict=True):
        result = AlterClientQuotasResponseEntryData(
            entity=[
                AlterClientQuotasResponseEntryDataEntityData(one.entity_type, one.entity_name) for one in row.entity
            ]
        )
        out.response.entries.append(result)
        try:
            if asked[entity] > 1:
                raise InvalidRequest("the request names this entity more than once; name it once")
            values = _altered(row, entity, image)
        except KafkaError as error:
            result.error_code, result.error_message = error.code, str(error)
            continue
        if not request.validate_only and values != image.quotas.get(entity, {}):
            out.changes.append(MetadataChange("quota", quota_key(entity), values or None))
    return out


def _altered(row: AlterClientQuotasRequestEntryData, entity: Entity, image: ClusterImage) -> dict[str, float]:
    keys = _IP_KEYS if _check_entity(entity) else _CLIENT_KEYS
    values = dict(image.quotas.get(entity, {}))
    if any(times > 1 for times in Counter(op.key for op in row.ops).values()):
        raise InvalidRequest("the request gives one quota of this entity more than once; give it once")
    for op in row.ops:
        if op.remove:
            values.pop(op.key, None)
        else:
            _check_value(op, keys)
            values[op.key] = op.value
    return values


def _check_entity(entity: Entity) -> bool:
    """Whether the entity is an address. Raises InvalidRequest for an invalid entity."""
    kinds = [kind for kind, _ in entity]
    if not kinds:
        raise InvalidRequest("a quota needs an entity; name a user, a client-id or an ip")
    for kind, name in entity:
        if kind not in (USER, CLIENT_ID, IP):
            raise InvalidRequest(f"{kind[:100]!r} is not a type of entity; use user, client-id or ip")
        if kinds.count(kind) > 1:
            raise InvalidRequest(f"the entity has more than one {kind}; name one")
        if name == "":
            raise InvalidRequest(f"the {kind} has an empty name; null stands for the default")
        if name is not None and len(name) > MAX_NAME_CHARACTERS:
            raise InvalidRequest(f"the {kind} has {len(name)} characters; {MAX_NAME_CHARACTERS} are the most")
    if IP not in kinds:
        return False
    if len(kinds) > 1:
        raise InvalidRequest("an ip has quotas of its own; name it without user and client-id")
    address = entity[0][1]
    if address is not None:
        try:
            ipaddress.ip_address(address)
        except ValueError:
            raise InvalidRequest(
                f"{address[:100]!r} is not an IP address; give the address, as host names are not resolved"
            ) from None
    return True


def _check_value(op: OpData, keys: dict[str, bool]) -> None:
    whole = keys.get(op.key)
    if whole is None:
        raise InvalidRequest(f"{op.key[:100]!r} is not a quota of this entity; use one of {', '.join(keys)}")
    if not op.value > 0 or op.value == float("inf"):
        raise InvalidRequest(f"{op.key}={op.value}: a quota must be a number above 0; remove it for none")
    largest = _MAX_INT if keys is _IP_KEYS else _MAX_LONG
    if whole and (abs(op.value - round(op.value)) > 1e-6 or op.value > largest):
        raise InvalidRequest(f"{op.key}={op.value}: this quota must be a whole number, at most {largest}")


def describe(request: DescribeClientQuotasRequest, image: ClusterImage) -> DescribeClientQuotasResponse:
    """The entities that every component matches; with `strict`, only those without another type."""
    try:
        _check_filter(request.components)
    except KafkaError as error:
        return DescribeClientQuotasResponse(error_code=error.code, error_message=str(error), entries=None)
    response = DescribeClientQuotasResponse()
    rows: list[Any] = [
        EntryData(
            entity=[EntityData(kind, name) for kind, name in entity],
            values=[ValueData(key, value) for key, value in values.items()],
        )
        for entity, values in image.quotas.items()
        if _fits(dict(entity), request)
    ]
    response.entries = rows
    return response


def _check_filter(components: Sequence[ComponentData]) -> None:
    seen: set[str] = set()
    for one in components:
        if not one.entity_type:
            raise InvalidRequest("a component has no entity type; use user, client-id or ip")
        if one.entity_type in seen:
            raise InvalidRequest(f"the filter has more than one {one.entity_type}; give one")
        if one.entity_type not in (USER, CLIENT_ID, IP):
            raise UnsupportedVersion(f"{one.entity_type[:100]!r} is not a type of entity; use user, client-id or ip")
        seen.add(one.entity_type)
        if one.match_type not in (EXACT, DEFAULT, SPECIFIED):
            raise InvalidRequest(f"match type {one.match_type} is not known; use 0 exact, 1 default, 2 any")
        if (one.match_type == EXACT) != (one.match is not None):
            raise InvalidRequest("a name needs match_type 0 (exact); leave the name out, or change the match_type")
    if IP in seen and len(seen) > 1:
        raise InvalidRequest("an ip has quotas of its own; ask for it without user and client-id")


def _fits(entity: dict[str, str | None], request: DescribeClientQuotasRequest) -> bool:
    if request.strict and len(entity) != len(request.components):
        return False
    for one in request.components:
        if one.entity_type not in entity:
            return False
        name = entity[one.entity_type]
        if one.match_type == EXACT and name != one.match:
            return False
        if one.match_type == DEFAULT and name is not None:
            return False
    return True
