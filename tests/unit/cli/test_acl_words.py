"""`logkernel cluster acl` makes of kafka-acls' options the ACLs that kafka-acls makes."""

from __future__ import annotations

from typing import Any

import pytest

from logkernel.cli.acl_words import OPERATIONS, Asked, bindings, exactly, filters
from logkernel.client.admin.access import OPERATIONS as KNOWN
from logkernel.client.admin.access import AclBinding, AclFilter
from logkernel.errors import ConfigError

TOPIC = (("topic", "t"),)
ANN = ("User:ann",)


def said(rules: list[AclBinding]) -> list[str]:
    return sorted(
        f"{row.permission} {row.principal} {row.operation} {row.resource}:{row.name} {row.host} {row.pattern}"
        for row in rules
    )


def test_all_operations_from_every_host_if_nothing_else_is_said() -> None:
    assert said(bindings(Asked(TOPIC, allowed=ANN))) == ["allow User:ann all topic:t * literal"]


def test_each_principal_gets_each_operation_from_each_host() -> None:
    asked = Asked(
        TOPIC, "prefixed", ("User:a", "User:b"), ("User:c",), ("10.0.0.1", "10.0.0.2"), (), ("read", "write")
    )  # fmt: skip
    found = said(bindings(asked))
    assert len(found) == 2 * 2 * 2 + 2
    assert "allow User:b write topic:t 10.0.0.2 prefixed" in found
    assert "deny User:c read topic:t * prefixed" in found


def test_a_producer_may_write_describe_and_create() -> None:
    asked = Asked((*TOPIC, ("transactional-id", "tx")), allowed=ANN, producer=True, idempotent=True)
    assert said(bindings(asked)) == [
        "allow User:ann create topic:t * literal",
        "allow User:ann describe topic:t * literal",
        "allow User:ann describe transactional-id:tx * literal",
        "allow User:ann idempotent-write cluster:kafka-cluster * literal",
        "allow User:ann write topic:t * literal",
        "allow User:ann write transactional-id:tx * literal",
    ]


def test_a_consumer_may_read_its_topics_and_its_group() -> None:
    asked = Asked((*TOPIC, ("group", "g")), "prefixed", ANN, consumer=True)
    assert said(bindings(asked)) == [
        "allow User:ann describe topic:t * prefixed",
        "allow User:ann read group:g * prefixed",
        "allow User:ann read topic:t * prefixed",
    ]


def test_the_cluster_has_no_prefix() -> None:
    (rule,) = bindings(Asked((("cluster", "kafka-cluster"),), "prefixed", ANN, operations=("alter",)))
    assert rule.pattern == "literal"


@pytest.mark.parametrize(("asked", "says"), [
    ({}, "no resource is named; give --topic"),
    ({"resources": TOPIC}, "no principal is named; give --allow-principal"),
    ({"resources": TOPIC, "allowed": ("ann",)}, "has no type; write User:NAME"),
    ({"resources": TOPIC, "allowed": ANN, "denied_hosts": ("h",)}, "a host is named without a principal"),
    ({"resources": TOPIC, "allowed": ANN, "pattern": "match"}, "use literal or prefixed"),
    ({"resources": TOPIC, "allowed": ANN, "operations": ("cluster-action",)}, "a topic has no operation"),
    ({"resources": TOPIC, "allowed": ANN, "consumer": True}, "needs more resources; give --group, too"),
    ({"resources": (("group", "g"),), "allowed": ANN, "producer": True}, "give --topic, too"),
    ({"resources": TOPIC, "denied": ANN, "producer": True}, "leave out operations and denials"),
    ({"resources": (*TOPIC, ("user", "User:u")), "allowed": ANN, "producer": True}, "take no user; leave it out"),
])  # fmt: skip
def test_options_that_make_no_acl_are_refused(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        bindings(Asked(**asked))


def test_a_list_is_of_resources_and_principals() -> None:
    assert filters(Asked()) == [AclFilter()]
    assert filters(Asked(TOPIC, "match"), ("User:a", "User:b")) == [
        AclFilter("topic", "t", "User:a", pattern="match"), AclFilter("topic", "t", "User:b", pattern="match")
    ]  # fmt: skip


def test_a_removed_acl_is_matched_by_all_its_parts() -> None:
    rule = AclBinding("topic", "t", "User:ann", "read", "deny", "10.0.0.1", "prefixed")
    assert exactly(rule) == AclFilter("topic", "t", "User:ann", "read", "deny", "10.0.0.1", "prefixed")


def test_operations_are_those_of_the_protocol() -> None:
    assert {name for names in OPERATIONS.values() for name in names} == set(KNOWN) - {"any"}
