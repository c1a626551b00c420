"""What an error says that a user has to ask for: never a name that is another thing's."""

from __future__ import annotations

from random import Random

import pytest

from logkernel.client.cluster.calls import Call, ClientCore, Target
from logkernel.client.cluster.permissions import OF_TOPICS_UNTOLD, OPERATIONS, all_explained, explained
from logkernel.client.settings.producer import load_producer
from logkernel.errors import (
    ClusterAuthorizationFailed,
    DelegationTokenAuthorizationFailed,
    GroupAuthorizationFailed,
    InvalidTopicException,
    KafkaError,
    TopicAuthorizationFailed,
    TransactionalIdAuthorizationFailed,
    error_for,
)
from logkernel.requests import groups, transactions
from logkernel.vocabulary import TopicPartition

Topic, Group, Cluster = TopicAuthorizationFailed, GroupAuthorizationFailed, ClusterAuthorizationFailed
Id = TransactionalIdAuthorizationFailed
TOPIC = "not authorized to access the topic"
GROUP = "not authorized to access the group"
CLUSTER = "Not authorized for this operation on the cluster"
ALLOW = "ask for an ACL: logkernel cluster acl --add --allow-principal User:NAME --operation"


@pytest.mark.parametrize(
    ("kind", "about", "request_name", "said"),
    [
        (Topic, "a b", "Produce", f"a b: {TOPIC}; {ALLOW} write --topic 'a b'"),
        (Topic, TopicPartition("t", 3), "Fetch", f"t: {TOPIC}; {ALLOW} read --topic t"),
        (Cluster, "broker 1", "DescribeLogDirs", f"{CLUSTER}; {ALLOW} describe --cluster"),
        (Cluster, "", "InitProducerId", f"{CLUSTER}; {ALLOW.removesuffix('--operation')}--producer --topic NAME"),
        (Topic, "g", "ConsumerGroupDescribe", f"g: {TOPIC}; {ALLOW} describe --topic NAME"),
        (Group, "g", "ConsumerGroupDescribe", f"g: {GROUP}; {ALLOW} describe --group g"),
        (
            DelegationTokenAuthorizationFailed,
            "",
            "CreateDelegationToken",
            f"Not authorized to use the delegation token; {ALLOW} create-tokens --user-principal User:OWNER",
        ),
        (Group, "g", "Odd", "g: not authorized to access the group; ask for an ACL"),
        (InvalidTopicException, "t", "Fetch", str(error_for(InvalidTopicException.code, about="t"))),
    ],
)  # fmt: skip
def test_the_resource_and_the_acl(kind: type[KafkaError], about: object, request_name: str, said: str) -> None:
    assert str(explained(error_for(kind.code, about=about), request_name)) == said


def test_what_the_broker_says_of_a_refusal_is_replaced_and_of_others_kept() -> None:
    refused = error_for(TopicAuthorizationFailed.code, "Authorization failed.", about="t")
    other = error_for(InvalidTopicException.code, "it has a slash", about="u")
    refused.results = {"t": refused, "u": other, "v": True}
    all_explained(refused, "CreateTopics")
    assert str(refused).endswith("--operation create --topic t")
    assert str(other) == "it has a slash"


@pytest.mark.parametrize(
    ("target", "request_", "error", "names"),
    [
        (("transaction", "tx"), transactions.AddOffsetsToTxnRequest("tx"), Group, "--group NAME"),
        (("transaction", "tx"), transactions.AddPartitionsToTxnRequest(), Topic, "--topic NAME"),
        (("transaction", "tx"), transactions.EndTxnRequest("tx"), Id, "--transactional-id tx"),
        (("group", "g"), groups.JoinGroupRequest(), Group, "--group g"),
        ("any", groups.FindCoordinatorRequest("g", 0, ["g"]), Group, "--group g"),
        ("any", groups.FindCoordinatorRequest("tx", 1, ["tx"]), Id, "--transactional-id tx"),
    ],
)  # fmt: skip
def test_a_call_names_what_its_coordinator_is_for_and_nothing_else_by_that_name(
    target: Target, request_: object, error: type[KafkaError], names: str
) -> None:
    core = ClientCore(load_producer({"bootstrap_servers": "h:1"}), [("h", 1)], Random(1))
    ended: list[Exception | None] = []
    call = Call(target, request_, 1_000, lambda response, error: ended.append(error), lambda response: error.code)
    core.attempted(call, object(), None, 0)
    (found,) = ended
    assert type(found) is error
    assert str(found).endswith(names)


def test_requests_without_told_topics_need_an_acl_of_topics() -> None:
    assert all("topic" in OPERATIONS[name] for name in OF_TOPICS_UNTOLD)
