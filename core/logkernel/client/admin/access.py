"""ACLs, SCRAM users and client quotas."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.client.admin.plans import CONTROLLER, Plan, ask, in_rows, row_error, values_or_raise
from logkernel.errors import ConfigError
from logkernel.requests.access import (
    AclCreation,
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntryData,
    AlterClientQuotasRequestEntryDataEntityData,
    AlterUserScramCredentialsRequest,
    ComponentData,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeUserScramCredentialsRequest,
    OpData,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

RESOURCES: Final = {"any": 1, "topic": 2, "group": 3, "cluster": 4, "transactional-id": 5, "delegation-token": 6,
                    "user": 7}  # fmt: skip
PATTERNS: Final = {"any": 1, "match": 2, "literal": 3, "prefixed": 4}
OPERATIONS: Final = {
    "any": 1, "all": 2, "read": 3, "write": 4, "create": 5, "delete": 6, "alter": 7, "describe": 8,
    "cluster-action": 9, "describe-configs": 10, "alter-configs": 11, "idempotent-write": 12, "create-tokens": 13,
    "describe-tokens": 14, "two-phase-commit": 15,
}  # fmt: skip
PERMISSIONS: Final = {"any": 1, "deny": 2, "allow": 3}
MECHANISMS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
_HASHES: Final = {1: "sha256", 2: "sha512"}
ITERATIONS: Final = 4096
CLUSTER_NAME: Final = "kafka-cluster"


def _code(table: Mapping[str, int], what: str, word: str) -> int:
    if word not in table:
        raise ConfigError(f"{word!r} is not a known {what}; use one of {', '.join(table)}")
    return table[word]


def _word(table: Mapping[str, int], code: int) -> str:
    return next((word for word, known in table.items() if known == code), "unknown")


# ---------------------------------------------------------------- ACLs


@frozen
class AclBinding:
    """An ACL: `principal`, from `host`, is allowed or denied an operation on a resource."""

    resource: str
    name: str
    principal: str
    operation: str
    permission: str = "allow"
    host: str = "*"
    pattern: str = "literal"


@frozen
class AclFilter:
    """A filter of ACLs. None and "any" match all; the pattern "match" matches all ACLs that apply to a name."""

    resource: str = "any"
    name: str | None = None
    principal: str | None = None
    operation: str = "any"
    permission: str = "any"
    host: str | None = None
    pattern: str = "any"


ANY_ACL: Final = AclFilter()


def _filtered(given: AclFilter) -> tuple[int, str | None, int, str | None, str | None, int, int]:
    return (
        _code(RESOURCES, "resource", given.resource),
        given.name,
        _code(PATTERNS, "pattern", given.pattern),
        given.principal,
        given.host,
        _code(OPERATIONS, "operation", given.operation),
        _code(PERMISSIONS, "permission", given.permission),
    )


def describe_acls(wanted: AclFilter = ANY_ACL) -> Plan[list[AclBinding]]:
    """Return the ACLs that match the filter. Raises `SecurityDisabled` if the cluster has no authorizer."""
    response = yield from ask(DescribeAclsRequest(*_filtered(wanted)))
    return [
        AclBinding(
            _word(RESOURCES, row.resource_type),
            row.resource_name,
            acl.principal,
            _word(OPERATIONS, acl.operation),
            _word(PERMISSIONS, acl.permission_type),
            acl.host,
            _word(PATTERNS, row.pattern_type),
        )
        for row in response.resources
        for acl in row.acls
    ]


def create_acls(rules: AclBinding | Iterable[AclBinding]) -> Plan[None]:
    """Create ACLs; existing ones are kept. Raises `InvalidRequest`, `SecurityDisabled`."""
    wanted = [rules] if isinstance(rules, AclBinding) else list(rules)
    rows = [
        AclCreation(
            _code(RESOURCES, "resource", rule.resource),
            rule.name,
            _code(PATTERNS, "pattern", rule.pattern),
            rule.principal,
            rule.host,
            _code(OPERATIONS, "operation", rule.operation),
            _code(PERMISSIONS, "permission", rule.permission),
        )
        for rule in wanted
    ]
    response = yield from ask(CreateAclsRequest(rows), CONTROLLER, in_rows("results"))
    values_or_raise({rule: row_error(row, rule) or True for rule, row in zip(wanted, response.results, strict=True)})


def delete_acls(filters: AclFilter | Iterable[AclFilter]) -> Plan[list[AclBinding]]:
    """Delete the ACLs that match one of the filters, and return them. Raises `SecurityDisabled`."""
    wanted = [filters] if isinstance(filters, AclFilter) else list(filters)
    rows = [DeleteAclsFilter(*_filtered(given)) for given in wanted]
    response = yield from ask(DeleteAclsRequest(rows), CONTROLLER, in_rows("filter_results"))
    told = zip(wanted, response.filter_results, strict=True)
    found = values_or_raise({given: row_error(row, given) or row for given, row in told})
    gone = {
        _deleted(acl): row_error(acl, acl.resource_name) or True for row in found.values() for acl in row.matching_acls
    }
    return list(values_or_raise(gone))


def _deleted(acl: Any) -> AclBinding:
    return AclBinding(
        _word(RESOURCES, acl.resource_type),
        acl.resource_name,
        acl.principal,
        _word(OPERATIONS, acl.operation),
        _word(PERMISSIONS, acl.permission_type),
        acl.host,
        _word(PATTERNS, acl.pattern_type),
    )


# ---------------------------------------------------------------- SCRAM users


@frozen
class ScramCredential:
    """A SCRAM credential, without its password."""

    mechanism: str
    iterations: int


@mutable
class ScramUpsertion:
    """A password to set; only its salted hash leaves this process (RFC 5802)."""

    user: str
    password: str
    mechanism: str = "SCRAM-SHA-256"
    iterations: int = ITERATIONS
    salt: bytes = field(factory=lambda: os.urandom(16))


@frozen
class ScramDeletion:
    user: str
    mechanism: str = "SCRAM-SHA-256"


def describe_user_scram_credentials(users: Iterable[str] | None = None) -> Plan[dict[str, tuple[ScramCredential, ...]]]:
    """Return the credentials of each user, of all users or of these. Raises `ResourceNotFound`."""
    names = None if users is None else [UserName(user) for user in users]
    response = yield from ask(DescribeUserScramCredentialsRequest(names))
    return values_or_raise({row.user: row_error(row, row.user) or _credentials(row) for row in response.results})


def _credentials(row: Any) -> tuple[ScramCredential, ...]:
    return tuple(ScramCredential(_word(MECHANISMS, it.mechanism), it.iterations) for it in row.credential_infos)


def alter_user_scram_credentials(
    changes: ScramUpsertion | ScramDeletion | Iterable[ScramUpsertion | ScramDeletion],
) -> Plan[None]:
    """Set and delete passwords, each user once a call. Raises `UnacceptableCredential`, `ResourceNotFound`,
    `DuplicateResource`."""
    wanted = [changes] if isinstance(changes, (ScramUpsertion, ScramDeletion)) else list(changes)
    request = AlterUserScramCredentialsRequest()
    for change in wanted:
        code = _code(MECHANISMS, "mechanism", change.mechanism)
        if isinstance(change, ScramDeletion):
            request.deletions.append(ScramCredentialDeletion(change.user, code))
            continue
        salted = hashlib.pbkdf2_hmac(_HASHES[code], change.password.encode(), change.salt, max(change.iterations, 1))
        request.upsertions.append(ScramCredentialUpsertion(change.user, code, change.iterations, change.salt, salted))
    response = yield from ask(request, CONTROLLER, in_rows("results"))
    values_or_raise({row.user: row_error(row, row.user) or True for row in response.results})


# ---------------------------------------------------------------- client quotas

Entity = tuple[tuple[str, str | None], ...]
"""Sorted (type, name) pairs; types are user, client-id, ip. The name None is the default of a type."""


def entity(parts: Mapping[str, str | None]) -> Entity:
    """Return {"user": "ann"} as the key of a quota."""
    return tuple(sorted(parts.items(), key=lambda part: part[0]))


def describe_client_quotas(
    parts: Mapping[str, str | None] | None = None, *, strict: bool = False
) -> Plan[dict[Entity, dict[str, float]]]:
    """Return quotas by entity: all, or those whose entity has these parts (a name, None: the default, "*": any).

    With `strict` an entity must have no other parts.
    """
    rows = []
    for kind, name in (parts or {}).items():
        rows.append(ComponentData(kind, 2 if name == "*" else 1 if name is None else 0, None if name == "*" else name))
    response = yield from ask(DescribeClientQuotasRequest(rows, strict))
    return {
        entity({part.entity_type: part.entity_name for part in row.entity}): {it.key: it.value for it in row.values}
        for row in response.entries or ()
    }


def alter_client_quotas(
    changes: Mapping[Entity, Mapping[str, float | None]], *, validate_only: bool = False
) -> Plan[None]:
    """Set quotas, or with None remove them: {entity({"user": "ann"}): {"producer_byte_rate": 1000}}.

    Raises `InvalidRequest`.
    """
    rows = [
        AlterClientQuotasRequestEntryData(
            [AlterClientQuotasRequestEntryDataEntityData(kind, name) for kind, name in key],
            [OpData(name, 0.0 if number is None else float(number), number is None) for name, number in ops.items()],
        )
        for key, ops in changes.items()
    ]
    response = yield from ask(AlterClientQuotasRequest(rows, validate_only), CONTROLLER, in_rows("entries"))
    values_or_raise({key: row_error(row, key) or True for key, row in zip(changes, response.entries, strict=True)})
