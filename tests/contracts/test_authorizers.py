"""The built-in authorizer keeps the contract, and decides as Kafka's StandardAuthorizer does."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable
from typing import Any, ClassVar

import pytest

from logkernel.config.broker import BrokerConfig
from logkernel.contracts import RequestContext
from logkernel.errors import ConfigError
from logkernel.guards.authorizer import GuardedAuthorizer
from logkernel.kernel import Kernel
from logkernel.plugins.authorizers.rules import Rules
from logkernel.testing.contracts import AuthorizerContract
from logkernel.vocabulary import Acl, AclOperation, Principal, ResourceType


class TestStandard(AuthorizerContract):
    name = "standard"


class TestOpen(AuthorizerContract):
    name = "standard"
    settings: ClassVar = {"allow.everyone.if.no.acl.found": "true", "super.users": "User:ann; User:CN=bob,O=acme"}


T, G = ResourceType.TOPIC, ResourceType.GROUP
Op = AclOperation
LITERAL, PREFIXED, DENY, ALLOW = 3, 4, 2, 3
HOST = "10.0.0.1"


def rule(
    name: str = "t", operation: AclOperation = Op.READ, *, pattern: int = LITERAL, principal: str = "User:ann",
    host: str = "*", permission: int = ALLOW, kind: ResourceType = T,
) -> Acl:  # fmt: skip
    return Acl(int(kind), pattern, name, principal, host, int(operation), permission)


def authorizer(acls: Iterable[Acl] = (), **settings: str) -> GuardedAuthorizer:
    kernel = Kernel()
    given = [f"{name.replace('_', '.')}={value}" for name, value in settings.items()]
    made = kernel.authorizer("standard", BrokerConfig.load(None, given, kernel.declarations()))
    made.acls_changed(list(acls), [])
    return made


def client(user: str = "ann", host: str = HOST) -> RequestContext:
    return RequestContext(client_host=host, principal=Principal("User", user))


def may(made: GuardedAuthorizer, operation: AclOperation = Op.READ, name: str = "t", **who: str) -> bool:
    (answer,) = made.authorize(client(**who), operation, T, [name])
    return answer


@pytest.mark.parametrize(("rules", "allowed"), [
    ([], False),
    ([rule()], True),
    ([rule(principal="User:*")], True),
    ([rule(principal="User:bob")], False),
    ([rule(principal="User:an")], False),
    ([rule(principal="Group:ann")], False),
    ([rule(operation=Op.ALL)], True),
    ([rule(operation=Op.WRITE)], False),
    ([rule(kind=G)], False),
    ([rule("*")], True),
    ([rule("t", pattern=PREFIXED)], True),
    ([rule("*", pattern=PREFIXED)], False),
    ([rule("tt", pattern=PREFIXED)], False),
    ([rule("tt")], False),
    ([rule(host=HOST)], True),
    ([rule(host="10.0.0.2")], False),
    ([rule(), rule(permission=DENY)], False),
    ([rule(), rule(permission=DENY, operation=Op.ALL)], False),
    ([rule(), rule(permission=DENY, operation=Op.WRITE)], True),
    ([rule(), rule(permission=DENY, host="10.0.0.2")], True),
    ([rule(), rule("*", permission=DENY)], False),
    ([rule("*"), rule("t", permission=DENY, pattern=PREFIXED)], False),
    ([rule(), rule(permission=DENY, principal="User:*")], False),
])  # fmt: skip
def test_a_rule_allows_and_none_denies(rules: list[Acl], allowed: bool) -> None:
    for order in itertools.permutations(rules):
        assert may(authorizer(order)) is allowed


@pytest.mark.parametrize(("has", "asks", "allowed"), [
    (Op.READ, Op.DESCRIBE, True), (Op.WRITE, Op.DESCRIBE, True), (Op.DELETE, Op.DESCRIBE, True),
    (Op.ALTER, Op.DESCRIBE, True), (Op.ALTER_CONFIGS, Op.DESCRIBE_CONFIGS, True), (Op.ALL, Op.DESCRIBE, True),
    (Op.CREATE, Op.DESCRIBE, False), (Op.ALTER_CONFIGS, Op.DESCRIBE, False), (Op.DESCRIBE, Op.READ, False),
    (Op.DESCRIBE_CONFIGS, Op.DESCRIBE, False), (Op.ALTER, Op.DESCRIBE_CONFIGS, False),
])  # fmt: skip
def test_some_operations_imply_describing(has: AclOperation, asks: AclOperation, allowed: bool) -> None:
    assert may(authorizer([rule(operation=has)]), asks) is allowed


def test_a_denial_implies_nothing() -> None:
    made = authorizer([rule(operation=Op.DESCRIBE), rule(operation=Op.READ, permission=DENY)])
    assert (may(made, Op.DESCRIBE), may(made, Op.READ)) == (True, False)


def test_who_is_named_by_no_rule_may_do_it_if_the_setting_says_so() -> None:
    made = authorizer([rule("other", principal="User:bob")], allow_everyone_if_no_acl_found="true")
    assert may(made, name="t")
    assert not may(made, name="other")
    made.acls_changed([rule("*", operation=Op.WRITE)], [])
    assert not may(made, name="t")


def test_a_super_user_may_do_what_is_denied() -> None:
    made = authorizer([rule("*", permission=DENY, principal="User:*")], super_users="User:CN=ann,O=x;User:root")
    assert all(may(made, Op.WRITE, user=user) for user in ("root", "CN=ann,O=x"))
    assert not may(made, Op.WRITE, user="ROOT")


@pytest.mark.parametrize("text", ["ann", "User:", ":ann", "User:ann;bob"])
def test_a_super_user_without_a_type_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="write User:NAME, and ; between two"):
        authorizer(super_users=text)


def test_super_users_with_a_comma_between_them_are_refused() -> None:
    """They were one, whose name nobody has."""
    with pytest.raises(ConfigError, match="'User:ann, User:bob' would be one principal; write ; between two"):
        authorizer(super_users="User:ann, User:bob")


def test_addresses_are_compared_not_their_texts() -> None:
    made = authorizer([rule(host="2001:DB8:0:0::1")])
    assert (may(made, host="2001:db8::1"), may(made, host="2001:db8::2")) == (True, False)
    assert may(authorizer([rule(host=HOST)]), host=f"::ffff:{HOST}")


def test_a_denial_holds_when_another_that_writes_its_address_otherwise_is_deleted() -> None:
    """They were kept as one: the denial that was left was listed, and no more enforced."""
    kept, gone = (rule(host=host, permission=DENY) for host in ("2001:db8::1", "2001:DB8:0:0::1"))
    made = authorizer([rule(), kept, gone])
    made.acls_changed([], [gone])
    assert may(made, host="2001:db8::1") is False


@pytest.mark.parametrize(("rules", "allowed"), [
    ([], False),
    ([rule(operation=Op.WRITE)], True),
    ([rule("p", operation=Op.WRITE, pattern=PREFIXED)], True),
    ([rule(operation=Op.ALL)], True),
    ([rule(operation=Op.READ)], False),
    ([rule(operation=Op.WRITE, principal="User:bob")], False),
    ([rule(operation=Op.WRITE, kind=G)], False),
    ([rule(operation=Op.WRITE), rule(operation=Op.WRITE, permission=DENY)], False),
    ([rule("ab", operation=Op.WRITE), rule("a", operation=Op.WRITE, permission=DENY, pattern=PREFIXED)], False),
    ([rule("ab", operation=Op.WRITE, pattern=PREFIXED), rule("a", Op.WRITE, permission=DENY, pattern=PREFIXED)], False),
    ([rule("a", operation=Op.WRITE, pattern=PREFIXED), rule("ab", Op.WRITE, permission=DENY, pattern=PREFIXED)], True),
    ([rule("a", operation=Op.WRITE, pattern=PREFIXED), rule("a", Op.WRITE, permission=DENY)], True),
    ([rule(operation=Op.WRITE), rule("*", Op.WRITE, permission=DENY)], False),
    ([rule("*", operation=Op.WRITE), rule("a", Op.ALL, permission=DENY, pattern=PREFIXED)], True),
])  # fmt: skip
def test_who_may_write_to_some_topic(rules: list[Acl], allowed: bool) -> None:
    assert authorizer(rules).authorize_by_resource_type(client(), Op.WRITE, T) is allowed


def test_a_type_without_rules_is_open_if_the_setting_says_so() -> None:
    made = authorizer(allow_everyone_if_no_acl_found="true")
    assert made.authorize_by_resource_type(client(), Op.WRITE, T) is True


def test_rules_are_looked_at_once_for_some_topic(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each InitProducerId looked at all rules, and threw away what was decided about the client's topics."""
    looked: list[str] = []
    of, patterns = Rules.of, Rules.patterns
    monkeypatch.setattr(Rules, "of", lambda rules, name: looked.append(name) or of(rules, name))
    monkeypatch.setattr(Rules, "patterns", lambda rules, *asked: looked.append("patterns") or patterns(rules, *asked))
    made = authorizer([rule("a", Op.WRITE)])
    assert may(made, Op.WRITE, "a")
    assert made.authorize_by_resource_type(client(), Op.WRITE, T)
    assert looked == ["a", "hardcode", *["patterns"] * 4]
    looked.clear()
    assert may(made, Op.WRITE, "a")
    assert made.authorize_by_resource_type(client(), Op.WRITE, T)
    assert looked == []
    made.acls_changed([], [rule("a", Op.WRITE)])
    assert not made.authorize_by_resource_type(client(), Op.WRITE, T)


def judged(acls: Iterable[Acl], who: RequestContext, operation: AclOperation, kind: ResourceType, name: str) -> bool:
    """The rules once more, each looked at in turn."""
    implied = {Op.DESCRIBE: (Op.READ, Op.WRITE, Op.DELETE, Op.ALTER), Op.DESCRIBE_CONFIGS: (Op.ALTER_CONFIGS,)}
    fits = [
        acl for acl in acls
        if acl.resource_type == kind
        and (name.startswith(acl.resource_name) if acl.pattern_type == PREFIXED else acl.resource_name in (name, "*"))
        and acl.principal in (str(who.principal), "User:*")
        and acl.host in ("*", who.client_host)
    ]  # fmt: skip
    if any(acl.permission_type == DENY and acl.operation in (operation, Op.ALL) for acl in fits):
        return False
    enough = (operation, Op.ALL, *implied.get(operation, ()))
    return any(acl.permission_type == ALLOW and acl.operation in enough for acl in fits)


def test_it_decides_as_a_walk_through_all_rules_while_they_change() -> None:
    chance = random.Random(7)
    names = ["", "a", "ab", "abc", "b", "ba", "*"]
    made, kept = authorizer(), set[Acl]()

    def some() -> Any:
        return rule(
            chance.choice(names[1:]), chance.choice([Op.READ, Op.WRITE, Op.ALL, Op.DESCRIBE]),
            pattern=chance.choice([LITERAL, PREFIXED]), principal=chance.choice(["User:ann", "User:*", "User:bob"]),
            host=chance.choice(["*", HOST]), permission=chance.choice([ALLOW, ALLOW, DENY]), kind=chance.choice([T, G]),
        )  # fmt: skip

    for _ in range(400):
        added, removed = (
            {some() for _ in range(chance.randrange(3))} - kept,
            {acl for acl in kept if chance.random() < 0.2},
        )
        kept = (kept | added) - removed
        made.acls_changed(list(added), list(removed))
        for _ in range(5):
            who, operation = client(chance.choice(["ann", "bob", "eve"])), chance.choice([Op.READ, Op.DESCRIBE])
            kind = chance.choice([T, G])
            assert made.authorize(who, operation, kind, names) == [
                judged(kept, who, operation, kind, name) for name in names
            ]
