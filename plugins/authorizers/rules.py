"""The rules of the authorizer `standard`, and what they decide.

Rules are kept by resource type, name or prefix, and principal. What was decided is kept for each client, operation and
type until a rule changes, so a request costs a look-up or two, however many rules there are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from ipaddress import IPv6Address, ip_address
from typing import Final

from logkernel.contracts import RequestContext
from logkernel.vocabulary import Acl, AclOperation, Principal, ResourceType

PREFIXED: Final = 4
DENY: Final = 2
ALLOW: Final = 3
ALL: Final = int(AclOperation.ALL)
ANY_NAME = ANY_HOST = "*"
EVERYBODY: Final = "User:*"
IMPLIED_BY: Final = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}
"""Operation → those whose permission includes its own. A denial includes nothing."""
SOME_NAME: Final = "hardcode"
"""The name that Kafka asks for where any would do."""
MAX_KEPT: Final = 20_000
"""Decisions that are kept; beyond it, all are forgotten with the next client: clients choose the names."""
MAX_CLIENTS: Final = 2_000
"""Combinations of client, operation and type of which decisions are kept."""
MAX_KEPT_CHARACTERS: Final = 249
"""The longest name of which a decision is kept, which is that of a topic."""

Entry = tuple[str, int, int, str]
"""(host, operation, permission, host as the rule has it) of a rule: two rules may write one host in two ways."""
Table = dict[str, dict[str, set[Entry]]]
"""Name or prefix → principal → entries."""


def _host(text: str) -> str:
    """An address in the one form in which it is compared: IPv6 is written in many."""
    try:
        address = ip_address(text)
    except ValueError:
        return text
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return str(address if mapped is None else mapped)


def _entry(acl: Acl) -> Entry:
    return _host(acl.host), acl.operation, acl.permission_type, acl.host


class Rules:
    """The rules of one type of resources."""

    def __init__(self) -> None:
        self._tables: tuple[Table, Table] = ({}, {})
        self._lengths: Counter[int] = Counter()
        """Length of prefixes → how many prefixes have it."""

    def add(self, acl: Acl) -> None:
        prefixed = acl.pattern_type == PREFIXED
        table, name = self._tables[prefixed], acl.resource_name
        if prefixed and name not in table:
            self._lengths[len(name)] += 1
        table.setdefault(name, {}).setdefault(acl.principal, set()).add(_entry(acl))

    def remove(self, acl: Acl) -> None:
        prefixed = acl.pattern_type == PREFIXED
        table, name = self._tables[prefixed], acl.resource_name
        principals = table.get(name, {})
        entries = principals.get(acl.principal, set())
        entries.discard(_entry(acl))
        if not entries:
            principals.pop(acl.principal, None)
        if not principals and table.pop(name, None) is not None and prefixed:
            self._lengths[len(name)] -= 1
            self._lengths += Counter()  # drops what is 0

    def of(self, name: str) -> Iterator[dict[str, set[Entry]]]:
        """The rules for a resource: principal → entries, for each pattern that fits its name."""
        literal, prefixed = self._tables
        if name in literal:
            yield literal[name]
        if ANY_NAME in literal and name != ANY_NAME:
            yield literal[ANY_NAME]
        for length in self._lengths:
            if length <= len(name):
                found = prefixed.get(name[:length])
                if found is not None:
                    yield found

    def patterns(self, prefixed: bool, client: Client, permission: int, operations: Collection[int]) -> set[str]:
        """The names or prefixes with a rule of this permission for the client and one of the operations."""
        return {
            name
            for name, principals in self._tables[prefixed].items()
            if any(entry[2] == permission and entry[1] in operations for entry in client.entries(principals))
        }


class Client:
    """Who asks, and where from."""

    def __init__(self, principal: Principal, host: str) -> None:
        self.name = str(principal)
        self._hosts = (ANY_HOST, _host(host))

    def entries(self, principals: dict[str, set[Entry]]) -> Iterator[Entry]:
        """The entries that are about the client."""
        for principal in (self.name, EVERYBODY):
            for entry in principals.get(principal, ()):
                if entry[0] in self._hosts:
                    yield entry


class Room:
    """How many decisions may still be kept."""

    def __init__(self) -> None:
        self.left = MAX_KEPT


class Decisions(dict[str, bool]):
    """What one client may do by one operation with resources of one type: name → allowed, judged at first use."""

    def __init__(self, client: Client, operation: AclOperation, rules: Rules, if_no_acl: bool, room: Room) -> None:
        super().__init__()
        self._client = client
        self._denying = (operation, ALL)
        self._allowing = (operation, ALL, *IMPLIED_BY.get(operation, ()))
        self._rules = rules
        self._if_no_acl = if_no_acl
        self._room = room
        self._any_name: bool | None = None
        """What `any_name` decided."""

    def __missing__(self, name: str) -> bool:
        allowed = self._judged(name)
        if len(name) <= MAX_KEPT_CHARACTERS and self._room.left > 0:
            self._room.left -= 1
            self[name] = allowed
        return allowed

    def _judged(self, name: str) -> bool:
        known = allowed = False
        for principals in self._rules.of(name):
            known = True
            for _, operation, permission, _ in self._client.entries(principals):
                if permission == DENY:
                    if operation in self._denying:
                        return False
                elif operation in self._allowing:
                    allowed = True
        return allowed if known else self._if_no_acl

    def any_name(self) -> bool:
        """Whether it may be done with some resource of the type, as Kafka's Authorizer decides by default: implied
        operations do not count. All rules of the type are looked at, once."""
        if self._any_name is None:
            self._any_name = self[SOME_NAME] or self._some_rule_allows()
        return self._any_name

    def _some_rule_allows(self) -> bool:
        rules, client = self._rules, self._client
        denied, denied_prefixes, allowed, allowed_prefixes = (
            rules.patterns(prefixed, client, permission, self._denying)
            for permission in (DENY, ALLOW)
            for prefixed in (False, True)
        )
        if ANY_NAME in denied:
            return False
        if ANY_NAME in allowed:
            return True
        return any(
            not any(name[:length] in denied_prefixes for length in range(1, len(name) + 1))
            for name in (allowed - denied) | allowed_prefixes
        )


class Everything(dict[str, bool]):
    """The decisions for a super user."""

    def __missing__(self, name: str) -> bool:
        return True

    def any_name(self) -> bool:
        return True


class Standard:
    """`contracts.Authorizer`."""

    def __init__(self, super_users: Collection[str], if_no_acl: bool) -> None:
        """`super_users` are principals as text; `if_no_acl` is the answer for resources that no ACL names."""
        self._super_users = frozenset(super_users)
        self._if_no_acl = if_no_acl
        self._rules: dict[int, Rules] = {int(kind): Rules() for kind in ResourceType}
        self._kept: dict[tuple[Principal, str, int, int], Decisions | Everything] = {}
        self._room = Room()

    def acls_changed(self, added: Collection[Acl], removed: Collection[Acl]) -> None:
        for acl in removed:
            self._of(acl).remove(acl)
        for acl in added:
            self._of(acl).add(acl)
        self._forget()

    def _of(self, acl: Acl) -> Rules:
        return self._rules.setdefault(acl.resource_type, Rules())

    def _forget(self) -> None:
        self._kept.clear()
        self._room = Room()

    def authorize(
        self, client: RequestContext, operation: AclOperation, resource_type: ResourceType, names: Sequence[str]
    ) -> list[bool]:
        decisions = self._decisions(client, operation, resource_type)
        return [decisions[name] for name in names]

    def authorize_by_resource_type(
        self, client: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        return self._decisions(client, operation, resource_type).any_name()

    def _decisions(
        self, client: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decisions | Everything:
        kept = self._kept.get((client.principal, client.client_host, operation, resource_type))
        return self._begin(client, operation, resource_type) if kept is None else kept

    def _begin(
        self, client: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decisions | Everything:
        who = Client(client.principal, client.client_host)
        made: Decisions | Everything = Everything()
        if who.name not in self._super_users:
            made = Decisions(who, operation, self._rules[resource_type], self._if_no_acl, self._room)
        if len(self._kept) >= MAX_CLIENTS or self._room.left <= 0:
            self._forget()
        self._kept[client.principal, client.client_host, operation, resource_type] = made
        return made
