"""From the options of `kafka-acls` to ACLs: what `logkernel cluster acl` adds, removes and lists."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from logkernel.attrs_lite import frozen
from logkernel.client.admin.access import AclBinding, AclFilter
from logkernel.errors import ConfigError

CLUSTER_NAME: Final = "kafka-cluster"
OPERATIONS: Final[Mapping[str, frozenset[str]]] = {
    "topic": frozenset(
        {"read", "write", "create", "delete", "alter", "describe", "describe-configs", "alter-configs", "all"}
    ),
    "group": frozenset({"read", "delete", "describe", "describe-configs", "alter-configs", "all"}),
    "cluster": frozenset(
        {
            "create",
            "alter",
            "describe",
            "cluster-action",
            "describe-configs",
            "alter-configs",
            "idempotent-write",
            "all",
        }
    ),
    "transactional-id": frozenset({"describe", "write", "two-phase-commit", "all"}),
    "delegation-token": frozenset({"describe", "all"}),
    "user": frozenset({"create-tokens", "describe-tokens", "all"}),
}
"""Resource → the operations that it has."""


@frozen
class Asked:
    """The options of one call. `resources` are (type, name)."""

    resources: tuple[tuple[str, str], ...] = ()
    pattern: str = "literal"
    allowed: tuple[str, ...] = ()
    """Principals."""
    denied: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    denied_hosts: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    producer: bool = False
    consumer: bool = False
    idempotent: bool = False

    @property
    def names_rules(self) -> bool:
        """Whether it says more than resources: rules, not all that there are."""
        given = (self.allowed, self.denied, self.allowed_hosts, self.denied_hosts, self.operations)
        return any(given) or self.producer or self.consumer


def check_hosts(*hosts: str) -> None:
    """Raise `ConfigError` for a host that no client has: brokers compare addresses, so a name matches nothing."""
    import ipaddress

    for host in hosts:
        try:
            if host != "*":
                ipaddress.ip_address(host)
        except ValueError:
            raise ConfigError(
                f"the host {host!r} is no address, so no client has it; give an IP address, or *"
            ) from None


def bindings(asked: Asked) -> list[AclBinding]:
    """The ACLs that are added, or removed. Raises `ConfigError` for options that make none."""
    if not asked.resources:
        raise ConfigError("no resource is named; give --topic, --group, --cluster, --transactional-id or another")
    if (asked.allowed_hosts and not asked.allowed) or (asked.denied_hosts and not asked.denied):
        raise ConfigError("a host is named without a principal; give --allow-principal or --deny-principal, too")
    if not asked.allowed and not asked.denied:
        raise ConfigError("no principal is named; give --allow-principal or --deny-principal User:NAME")
    for principal in (*asked.allowed, *asked.denied):
        kind, colon, name = principal.partition(":")
        if not (kind and colon and name):
            raise ConfigError(f"the principal {principal!r} has no type; write User:NAME")
    if asked.pattern not in ("literal", "prefixed"):
        raise ConfigError(f"an ACL has no pattern type {asked.pattern!r}; use literal or prefixed")
    wanted = _of_roles(asked) if asked.producer or asked.consumer else _of_operations(asked)
    return list(dict.fromkeys(_ruled(asked, wanted)))


def _of_operations(asked: Asked) -> Iterator[tuple[str, str, str]]:
    """(type, name, operation) of each resource."""
    for kind, name in asked.resources:
        for operation in asked.operations or ("all",):
            if operation not in OPERATIONS[kind]:
                known = ", ".join(sorted(OPERATIONS[kind]))
                raise ConfigError(f"a {kind} has no operation {operation!r}; use one of {known}")
            yield kind, name, operation


def _of_roles(asked: Asked) -> Iterator[tuple[str, str, str]]:
    """What a producer or a consumer needs, as kafka-acls has it."""
    if asked.denied or asked.denied_hosts or asked.operations:
        raise ConfigError("--producer and --consumer allow what they need; leave out operations and denials")
    kinds = {kind for kind, _ in asked.resources}
    needed = ({"topic"} if asked.producer else set[str]()) | ({"topic", "group"} if asked.consumer else set[str]())
    takes = needed | ({"transactional-id"} if asked.producer else set[str]())
    if not needed <= kinds:
        lacking = " and ".join(f"--{kind}" for kind in sorted(needed - kinds))
        raise ConfigError(f"a {'producer' if asked.producer else 'consumer'} needs more resources; give {lacking}, too")
    if not kinds <= takes:
        raise ConfigError(f"--producer and --consumer take no {sorted(kinds - takes)[0]}; leave it out")
    for kind, name in asked.resources:
        if kind == "topic":
            operations = (["write", "describe", "create"] if asked.producer else []) + (
                ["read", "describe"] if asked.consumer else []
            )
        else:
            operations = ["read"] if kind == "group" else ["write", "describe"]
        for operation in operations:
            yield kind, name, operation
    if asked.idempotent and asked.producer:
        yield "cluster", CLUSTER_NAME, "idempotent-write"


def _ruled(asked: Asked, wanted: Iterable[tuple[str, str, str]]) -> Iterator[AclBinding]:
    for kind, name, operation in wanted:
        pattern = "literal" if kind == "cluster" else asked.pattern
        for permission, principals, hosts in (
            ("allow", asked.allowed, asked.allowed_hosts),
            ("deny", asked.denied, asked.denied_hosts),
        ):
            for principal in principals:
                for host in hosts or ("*",):
                    yield AclBinding(kind, name, principal, operation, permission, host, pattern)


def filters(asked: Asked, principals: tuple[str, ...] = ()) -> list[AclFilter]:
    """The filters of a list, or of a removal of all rules of resources."""
    resources: list[tuple[str, str | None]] = list(asked.resources) or [("any", None)]
    pattern = "any" if not asked.resources else asked.pattern
    return [
        AclFilter(kind, name, principal, pattern="literal" if kind == "cluster" else pattern)
        for kind, name in resources
        for principal in (principals or (None,))
    ]


def exactly(binding: AclBinding) -> AclFilter:
    """The filter that matches this ACL alone."""
    return AclFilter(
        binding.resource, binding.name, binding.principal, binding.operation, binding.permission, binding.host,
        binding.pattern,
    )  # fmt: skip
