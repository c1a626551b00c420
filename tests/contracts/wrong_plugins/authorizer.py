"""Authorizers that break a promise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from logkernel.contracts import RequestContext
from logkernel.vocabulary import Acl
from wrong_plugins import Wrong, made


class Plain:
    """An authorizer that keeps its promises: an ACL on a name allows it to everybody."""

    def __init__(self) -> None:
        self.acls: set[Acl] = set()
        self.seen: dict[str, Any] = {}

    def acls_changed(self, added: Collection[Acl], removed: Collection[Acl]) -> None:
        self.acls -= set(removed)
        self.acls |= set(added)

    def authorize(self, client: RequestContext, operation: int, resource_type: int, names: Sequence[str]) -> Any:
        return [any(acl.resource_name == name for acl in self.acls) for name in names]

    def authorize_by_resource_type(self, client: RequestContext, operation: int, resource_type: int) -> Any:
        return bool(self.acls)


class Words(Plain):
    def authorize(self, client: RequestContext, operation: int, resource_type: int, names: Sequence[str]) -> Any:
        return ["ALLOWED" for _ in names]


class Curt(Plain):
    def authorize(self, client: RequestContext, operation: int, resource_type: int, names: Sequence[str]) -> Any:
        return [True]


class NeedsAddress(Plain):
    def authorize(self, client: RequestContext, operation: int, resource_type: int, names: Sequence[str]) -> Any:
        return [int(client.client_host.split(".")[0]) > 9 for _ in names]


class Unsure(Plain):
    def authorize_by_resource_type(self, client: RequestContext, operation: int, resource_type: int) -> Any:
        return None


class Weary(Plain):
    """It says no to whom it has said yes."""

    def authorize(self, client: RequestContext, operation: int, resource_type: int, names: Sequence[str]) -> Any:
        found = [name not in self.seen for name in names]
        self.seen.update(dict.fromkeys(names))
        return found


class Sorting(Plain):
    def authorize(self, client: RequestContext, operation: int, resource_type: int, names: Sequence[str]) -> Any:
        return sorted(super().authorize(client, operation, resource_type, names))


class Stale(Plain):
    """It keeps what it decided, whatever changes."""

    def authorize(self, client: RequestContext, operation: int, resource_type: int, names: Sequence[str]) -> Any:
        for name, allowed in zip(names, super().authorize(client, operation, resource_type, names), strict=True):
            self.seen.setdefault(name, allowed)
        return [self.seen[name] for name in names]


class Counting(Plain):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Acl] = []

    def acls_changed(self, added: Collection[Acl], removed: Collection[Acl]) -> None:
        for acl in removed:
            if acl in self.rows:
                self.rows.remove(acl)
        self.rows.extend(added)
        self.acls = set(self.rows)


class Ledger(Plain):
    def authorize(self, client: RequestContext, operation: int, resource_type: int, names: Sequence[str]) -> Any:
        self.seen.update((name, client) for name in names)
        return [False for _ in names]


ANY = "test_it_answers_for_each_resource_whatever_is_asked"
WRONG = [
    Wrong(ANY, "answered .*; return a list with True or False", made(lambda _: Words())),
    Wrong(ANY, "return a list with True or False for each of the", made(lambda _: Curt())),
    Wrong(ANY, "failed in authorizer .*ValueError", made(lambda _: NeedsAddress())),
    Wrong(ANY, "answered None; return True or False", made(lambda _: Unsure())),
    Wrong(
        "test_equal_questions_get_equal_answers", "depend on the arguments and the ACLs only", made(lambda _: Weary())
    ),
    Wrong("test_several_resources_are_judged_each_for_itself", "keep their order", made(lambda _: Sorting())),
    Wrong("test_an_acl_that_is_gone_counts_no_more", "came and went, not .*; forget them", made(lambda _: Stale())),
    Wrong("test_an_acl_that_is_told_twice_counts_once", "keep a set", made(lambda _: Counting())),
    Wrong("test_clients_that_are_gone_take_no_memory", "forget them", made(lambda _: Ledger())),
]
