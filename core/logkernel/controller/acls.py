"""Access rules: created, described, deleted. An authorizer enforces them (`broker/authorization`).

Numbers are the protocol's: a resource is topic 2, group 3, cluster 4, transactional id 5, delegation token 6 or
user 7; a pattern literal 3 or prefixed 4, and in filters also any 1 or match 2 (all that concerns one name);
operations run from all 2 to two-phase commit 15; a permission is deny 2 or allow 3; everywhere 1 is any, 0 unknown.
"""

from __future__ import annotations

from collections.abc import Iterable

from logkernel.contracts import MetadataChange
from logkernel.controller.effects import ControllerResult, Effects
from logkernel.controller.image import ClusterImage, acl_key
from logkernel.errors import InvalidRequest, KafkaError, PolicyViolation
from logkernel.requests.access import (
    AclCreation,
    AclCreationResult,
    AclDescription,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from logkernel.vocabulary import CLUSTER_NAME, Acl

ANY = 1
MATCH, LITERAL, PREFIXED = 2, 3, 4
CLUSTER = 4
RESOURCES = range(2, 8)
OPERATIONS = range(2, 16)
PERMISSIONS = (2, 3)
EVERY_NAME = "*"
MAX_TEXT_CHARACTERS = 1_000
"""Maximum length of a name, principal or host. They are stored until someone deletes them."""
MOST_AT_ONCE = 10_000
"""Rules that one request makes, or deletes, as in Kafka. A request of some MB could make a million of them."""

Filter = DescribeAclsRequest | DeleteAclsFilter


def create_acls(request: CreateAclsRequest, image: ClusterImage) -> ControllerResult:
    """Create each rule on its own. A rule that exists already is not an error. As in Kafka, a request that makes more
    than `MOST_AT_ONCE` makes none."""
    out = ControllerResult([], CreateAclsResponse(), Effects())
    made: dict[Acl, None] = {}
    for creation in request.creations:
        row = AclCreationResult()
        out.response.results.append(row)
        try:
            acl = _checked(creation)
        except KafkaError as error:
            row.error_code, row.error_message = error.code, str(error)
        else:
            if acl not in image.acls:
                made[acl] = None
    if len(made) > MOST_AT_ONCE:
        why = f"the request makes {len(made)} rules, and {MOST_AT_ONCE} are the most; send it in parts"
        out.response.results = [AclCreationResult(PolicyViolation.code, why) for _ in request.creations]
        return out
    out.changes.extend(MetadataChange("acl", acl_key(acl), {}) for acl in made)
    return out


def _checked(creation: AclCreation) -> Acl:
    for what, value, known in (
        ("resource type", creation.resource_type, RESOURCES),
        ("pattern type", creation.resource_pattern_type, (LITERAL, PREFIXED)),
        ("operation", creation.operation, OPERATIONS),
        ("permission type", creation.permission_type, PERMISSIONS),
    ):
        if value not in known:
            raise InvalidRequest(f"a rule can't have {what} {value}; use one of {', '.join(map(str, known))}")
    if creation.resource_type == CLUSTER and creation.resource_name != CLUSTER_NAME:
        raise InvalidRequest(f"the cluster is called {CLUSTER_NAME}, not {creation.resource_name!r}; use that name")
    if not creation.resource_name:
        raise InvalidRequest("the resource has no name; name it, or use '*' for all of its type")
    kind, colon, _ = creation.principal.partition(":")
    if not colon or not kind:
        raise InvalidRequest(f"the principal {creation.principal[:100]!r} has no type; write it as User:NAME")
    for text in (creation.resource_name, creation.principal, creation.host):
        if len(text) > MAX_TEXT_CHARACTERS:
            raise InvalidRequest(f"{text[:40]!r}… has {len(text)} characters; {MAX_TEXT_CHARACTERS} are the most")
    return Acl(
        creation.resource_type,
        creation.resource_pattern_type,
        creation.resource_name,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def describe_acls(request: DescribeAclsRequest, image: ClusterImage) -> DescribeAclsResponse:
    """The rules that match, by resource."""
    response = DescribeAclsResponse()
    try:
        found = matching(request, image.acls)
    except KafkaError as error:
        response.error_code, response.error_message = error.code, str(error)
        return response
    last: tuple[int, str, int] | None = None
    for acl in sorted(found):
        resource = (acl.resource_type, acl.resource_name, acl.pattern_type)
        if resource != last:
            last = resource
            response.resources.append(DescribeAclsResource(*resource))
        response.resources[-1].acls.append(AclDescription(acl.principal, acl.host, acl.operation, acl.permission_type))
    return response


def delete_acls(request: DeleteAclsRequest, image: ClusterImage) -> ControllerResult:
    """Delete every rule that a filter matches. Two filters may match the same rule. As in Kafka, a filter that brings
    the rules which are told above `MOST_AT_ONCE` fails."""
    out = ControllerResult([], DeleteAclsResponse(), Effects())
    gone: dict[Acl, None] = {}
    told = 0
    for one in request.filters:
        row = DeleteAclsFilterResult()
        out.response.filter_results.append(row)
        try:
            found = matching(one, image.acls)
            if told + len(found) > MOST_AT_ONCE:
                raise InvalidRequest(
                    f"the filters match more than {MOST_AT_ONCE} rules, the most of a request; use narrower ones, or"
                    f" send them one by one"
                )
        except KafkaError as error:
            row.error_code, row.error_message = error.code, str(error)
            continue
        told += len(found)
        gone.update(dict.fromkeys(found))
        row.matching_acls = [_deleted(acl) for acl in sorted(found)]
    out.changes.extend(MetadataChange("acl", acl_key(acl), None) for acl in gone)
    return out


def _deleted(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        resource_type=acl.resource_type,
        resource_name=acl.resource_name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission_type,
    )


def matching(asked: Filter, acls: Iterable[Acl]) -> list[Acl]:
    """The rules that a filter matches. Raises InvalidRequest for a filter with an unknown type or operation."""
    for what, value, known in (
        ("resource type", asked.resource_type_filter, (ANY, *RESOURCES)),
        ("pattern type", asked.pattern_type_filter, (ANY, MATCH, LITERAL, PREFIXED)),
        ("operation", asked.operation, (ANY, *OPERATIONS)),
        ("permission type", asked.permission_type, (ANY, *PERMISSIONS)),
    ):
        if value not in known:
            raise InvalidRequest(f"a filter can't have {what} {value}; use 1 for any")
    return [acl for acl in acls if _fits(asked, acl)]


def _fits(asked: Filter, acl: Acl) -> bool:
    return (
        asked.resource_type_filter in (ANY, acl.resource_type)
        and asked.principal_filter in (None, acl.principal)
        and asked.host_filter in (None, acl.host)
        and asked.operation in (ANY, acl.operation)
        and asked.permission_type in (ANY, acl.permission_type)
        and _pattern_fits(asked.pattern_type_filter, asked.resource_name_filter, acl)
    )


def _pattern_fits(pattern: int, name: str | None, acl: Acl) -> bool:
    """| filter | rule that fits |
    |---|---|
    | literal, prefixed | of that pattern, and of that name |
    | any | of that name, whatever its pattern |
    | match | concerns the name: literal and the same or `*`, or a prefix of it |

    A filter without a name matches every name."""
    if pattern in (LITERAL, PREFIXED) and pattern != acl.pattern_type:
        return False
    if name is None or name == acl.resource_name:
        return True
    if pattern != MATCH:
        return False
    return name.startswith(acl.resource_name) if acl.pattern_type == PREFIXED else acl.resource_name == EVERY_NAME
