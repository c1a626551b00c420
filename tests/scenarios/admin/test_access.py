"""Rules, users and quotas: kept over a restart, described as they were given, refused as Kafka refuses."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Any

import pytest

from logkernel import errors as e
from logkernel.requests import access as a

ALLOW, DENY = 3, 2
READ, WRITE, ALL = 3, 4, 2
TOPIC, CLUSTER = 2, 4
MATCH, LITERAL, PREFIXED = 2, 3, 4


def rule(name: str, pattern: int = LITERAL, **other: Any) -> a.AclCreation:
    given = {"resource_type": TOPIC, "principal": "User:ann", "host": "*", "operation": READ, "permission_type": ALLOW}
    return a.AclCreation(resource_name=name, resource_pattern_type=pattern, **{**given, **other})


def names(log: Any, **asked: Any) -> list[str]:
    given = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    response = log.request(a.DescribeAclsRequest(**{**given, **asked}))
    assert response.error_code == 0
    return sorted(f"{one.resource_name}{'*' if one.pattern_type == PREFIXED else ''}" for one in response.resources)


def test_rules_are_kept_and_found(start: Any, caplog: pytest.LogCaptureFixture) -> None:
    log = start()
    rules = [rule("orders"), rule("ord", PREFIXED), rule("*"), rule("other"), rule("orders", operation=WRITE)]
    results = log.request(a.CreateAclsRequest([*rules, *rules])).results
    assert [row.error_code for row in results] == [0] * 10
    assert all("NOT enforced" in row.error_message for row in results)
    assert "NOT enforced" in caplog.text
    log = start()
    assert names(log) == ["*", "ord*", "orders", "other"]
    assert names(log, resource_name_filter="orders", pattern_type_filter=MATCH) == ["*", "ord*", "orders"]
    assert names(log, resource_name_filter="orders") == ["orders"]
    assert names(log, resource_name_filter="x", pattern_type_filter=MATCH) == ["*"]
    assert names(log, operation=WRITE) == ["orders"]
    assert names(log, principal_filter="User:bob") == []
    described = log.request(a.DescribeAclsRequest(TOPIC, "orders", LITERAL, None, None, 1, 1)).resources
    assert [[acl.operation for acl in one.acls] for one in described] == [[READ, WRITE]]


def test_rules_are_deleted_by_filters(start: Any) -> None:
    log = start()
    log.request(a.CreateAclsRequest([rule("orders"), rule("ord", PREFIXED), rule("*"), rule("other")]))
    filters = [
        a.DeleteAclsFilter(TOPIC, "orders", MATCH, None, None, 1, 1),
        a.DeleteAclsFilter(TOPIC, "ord", PREFIXED, None, None, 1, 1),
        a.DeleteAclsFilter(0, None, 1, None, None, 1, 1),
    ]
    rows = log.request(a.DeleteAclsRequest(filters)).filter_results
    matched = [sorted(acl.resource_name for acl in row.matching_acls) for row in rows]
    assert matched == [["*", "ord", "orders"], ["ord"], []]
    assert [row.error_code for row in rows] == [0, 0, e.InvalidRequest.code]
    assert names(start()) == ["other"]


@pytest.mark.parametrize(
    "bad",
    [
        rule("mine", resource_type=CLUSTER),
        rule(""),
        rule("x", principal="ann"),
        rule("x", principal=""),
        rule("x", pattern=MATCH),
        rule("x", pattern=1),
        rule("x", operation=1),
        rule("x", operation=99),
        rule("x", permission_type=1),
        rule("x", resource_type=1),
        rule("x", resource_type=99),
        rule("x" * 5000),
    ],
)
def test_a_rule_that_is_none_is_refused_alone(start: Any, bad: a.AclCreation) -> None:
    log = start()
    first, second = log.request(a.CreateAclsRequest([bad, rule("good")])).results
    assert first.error_code == e.InvalidRequest.code
    assert first.error_message
    assert second.error_code == 0
    assert names(log) == ["good"]


# ---------------------------------------------------------------- users


def salted(password: bytes, salt: bytes, iterations: int) -> bytes:
    return hashlib.pbkdf2_hmac("sha256", password, salt, iterations)


def test_users_are_kept_without_what_would_log_in(start: Any) -> None:
    log = start()
    secret = salted(b"pencil", b"salt", 4096)
    upsertion = a.ScramCredentialUpsertion("ann", 1, 4096, b"salt", secret)
    (row,) = log.request(a.AlterUserScramCredentialsRequest([], [upsertion])).results
    assert (row.user, row.error_code) == ("ann", 0)
    log = start()
    kept = log.broker.metadata.image.scram["ann", 1]
    client_key = hmac.digest(secret, b"Client Key", "sha256")
    assert base64.b64decode(kept.stored_key) == hashlib.sha256(client_key).digest()
    assert base64.b64decode(kept.server_key) == hmac.digest(secret, b"Server Key", "sha256")
    assert base64.b64encode(secret).decode() not in repr(kept)
    (found,) = log.request(a.DescribeUserScramCredentialsRequest()).results
    assert [(one.mechanism, one.iterations) for one in found.credential_infos] == [(1, 4096)]


def test_users_that_can_not_be_altered(start: Any) -> None:
    log = start()
    up, down = a.ScramCredentialUpsertion, a.ScramCredentialDeletion
    request = a.AlterUserScramCredentialsRequest(
        [down("none", 1), down("gone", 9)],
        [up("few", 1, 4095), up("many", 1, 16385), up("", 1, 8192), up("odd", 0, 8192), up("twice", 1, 8192),
         up("twice", 2, 8192), up("low", 1, 4096, b"s", b"p"), up("high", 2, 16384, b"s", b"p")],
    )  # fmt: skip
    codes = {row.user: row.error_code for row in log.request(request).results}
    assert codes == {
        "none": e.ResourceNotFound.code, "gone": e.UnsupportedSaslMechanism.code, "few": e.UnacceptableCredential.code,
        "many": e.UnacceptableCredential.code, "": e.UnacceptableCredential.code,
        "odd": e.UnsupportedSaslMechanism.code, "twice": e.DuplicateResource.code, "low": 0, "high": 0,
    }  # fmt: skip
    asked = [a.UserName("low"), a.UserName("none"), a.UserName("high"), a.UserName("high")]
    rows = log.request(a.DescribeUserScramCredentialsRequest(asked)).results
    assert [(row.user, row.error_code) for row in rows] == [
        ("low", 0), ("none", e.ResourceNotFound.code), ("high", e.DuplicateResource.code),
    ]  # fmt: skip
    (row,) = log.request(a.AlterUserScramCredentialsRequest([down("low", 1)])).results
    assert row.error_code == 0
    assert [row.user for row in start().request(a.DescribeUserScramCredentialsRequest()).results] == ["high"]


# ---------------------------------------------------------------- quotas


def entity(**parts: str | None) -> list[a.AlterClientQuotasRequestEntryDataEntityData]:
    return [a.AlterClientQuotasRequestEntryDataEntityData(kind.replace("_", "-"), name) for kind, name in parts.items()]


def set_quota(log: Any, parts: list[Any], dry: bool = False, **values: float | None) -> int:
    ops = [a.OpData(key, value or 0.0, value is None) for key, value in values.items()]
    request = a.AlterClientQuotasRequest([a.AlterClientQuotasRequestEntryData(parts, ops)], dry)
    (row,) = log.request(request).entries
    return row.error_code  # type: ignore[no-any-return]


def quotas(log: Any, *components: a.ComponentData, strict: bool = False) -> list[tuple[Any, Any]]:
    response = log.request(a.DescribeClientQuotasRequest(list(components), strict))
    assert response.error_code == 0
    return sorted(
        (sorted((one.entity_type, one.entity_name or "<default>") for one in entry.entity),
         sorted((value.key, value.value) for value in entry.values))
        for entry in response.entries
    )  # fmt: skip


def test_quotas_are_kept_and_found(start: Any) -> None:
    log = start()
    assert set_quota(log, entity(user="ann"), producer_byte_rate=1000.0, request_percentage=0.5) == 0
    assert set_quota(log, entity(user=None, client_id="c"), consumer_byte_rate=5.0) == 0
    assert set_quota(log, entity(ip="::1"), connection_creation_rate=3.0) == 0
    assert set_quota(log, entity(user="dry"), True, producer_byte_rate=1.0) == 0
    log = start()
    ann = ([("user", "ann")], [("producer_byte_rate", 1000.0), ("request_percentage", 0.5)])
    both = ([("client-id", "c"), ("user", "<default>")], [("consumer_byte_rate", 5.0)])
    ip = ([("ip", "::1")], [("connection_creation_rate", 3.0)])
    assert quotas(log) == sorted([ann, both, ip])
    assert quotas(log, a.ComponentData("user", 2)) == sorted([ann, both])
    assert quotas(log, a.ComponentData("user", 2), strict=True) == [ann]
    assert quotas(log, a.ComponentData("user", 1)) == [both]
    assert quotas(log, a.ComponentData("user", 0, "ann")) == [ann]
    assert set_quota(log, entity(user="ann"), producer_byte_rate=None, request_percentage=None) == 0
    assert quotas(start()) == sorted([both, ip])


@pytest.mark.parametrize(
    ("parts", "key", "value"),
    [
        (entity(planet="mars"), "producer_byte_rate", 1.0),
        (entity(), "producer_byte_rate", 1.0),
        (entity(user=""), "producer_byte_rate", 1.0),
        (entity(user="a") + entity(user="b"), "producer_byte_rate", 1.0),
        (entity(user=None) + entity(user="b"), "producer_byte_rate", 1.0),
        (entity(ip="127.0.0.1", user="a"), "connection_creation_rate", 1.0),
        (entity(ip="127.0.0.1"), "producer_byte_rate", 1.0),
        (entity(ip="no address"), "connection_creation_rate", 1.0),
        (entity(ip="127.0.0.1"), "connection_creation_rate", 2.0**31),
        (entity(user="a"), "speed", 1.0),
        (entity(user="a"), "producer_byte_rate", 0.0),
        (entity(user="a"), "producer_byte_rate", -1.0),
        (entity(user="a"), "producer_byte_rate", 1.5),
        (entity(user="a"), "producer_byte_rate", float("nan")),
        (entity(user="a"), "request_percentage", float("inf")),
        (entity(user="a"), "producer_byte_rate", 1e300),
    ],
)
def test_quotas_that_make_no_sense(start: Any, parts: list[Any], key: str, value: float) -> None:
    log = start()
    assert set_quota(log, parts, **{key: value}) == e.InvalidRequest.code
    assert quotas(log) == []


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([a.ComponentData("", 2)], e.InvalidRequest.code),
        ([a.ComponentData("user", 2), a.ComponentData("user", 1)], e.InvalidRequest.code),
        ([a.ComponentData("user", 9)], e.InvalidRequest.code),
        ([a.ComponentData("user", 0, None)], e.InvalidRequest.code),
        ([a.ComponentData("user", 1, "ann")], e.InvalidRequest.code),
        ([a.ComponentData("ip", 2), a.ComponentData("user", 2)], e.InvalidRequest.code),
        ([a.ComponentData("planet", 2)], e.UnsupportedVersion.code),
    ],
)
def test_filters_that_make_no_sense(start: Any, components: list[Any], code: int) -> None:
    response = start().request(a.DescribeClientQuotasRequest(components))
    assert (response.error_code, response.entries) == (code, None)


# ---------------------------------------------------------------- SASL, tokens


def test_nobody_authenticates_here(start: Any) -> None:
    log = start()
    assert log.request(a.SaslHandshakeRequest("PLAIN")).error_code == e.IllegalSaslState.code
    assert log.request(a.SaslAuthenticateRequest(b"\0u\0p")).error_code == e.IllegalSaslState.code
    for request in (
        a.CreateDelegationTokenRequest(),
        a.RenewDelegationTokenRequest(b"x"),
        a.ExpireDelegationTokenRequest(b"x"),
        a.DescribeDelegationTokenRequest(),
    ):
        assert log.request(request).error_code == e.DelegationTokenRequestNotAllowed.code


# ---------------------------------------------------------------- not enforced, and said so


def test_answers_on_rules_and_users_say_that_nothing_is_enforced(start: Any) -> None:
    log = start()
    everything = {"resource_type_filter": 1, "pattern_type_filter": 1, "operation": 1, "permission_type": 1}
    upsertion = a.ScramCredentialUpsertion("ann", 1, 4096, b"salt", salted(b"pencil", b"salt", 4096))
    users = log.request(a.AlterUserScramCredentialsRequest([], [upsertion])).results
    described = log.request(a.DescribeUserScramCredentialsRequest())
    told = [
        *log.request(a.CreateAclsRequest([rule("orders")])).results,
        log.request(a.DescribeAclsRequest(**everything)),
        *log.request(a.DeleteAclsRequest([a.DeleteAclsFilter(**everything)])).filter_results,
        *users,
        described,
        *described.results,
    ]
    assert len(told) == 6
    assert all(row.error_code == 0 and "NOT enforced" in row.error_message for row in told), told


def test_refusals_keep_their_own_message(start: Any) -> None:
    (row,) = start().request(a.CreateAclsRequest([rule("")])).results
    assert row.error_code
    assert "enforced" not in row.error_message


def test_answers_on_quotas_have_no_message_as_sarama_takes_it_for_a_failure(start: Any) -> None:
    log = start()
    entity = [a.AlterClientQuotasRequestEntryDataEntityData("user", "ann")]
    entry = a.AlterClientQuotasRequestEntryData(entity, [a.OpData("producer_byte_rate", 1024.0)])
    (row,) = log.request(a.AlterClientQuotasRequest([entry])).entries
    described = log.request(a.DescribeClientQuotasRequest())
    assert [(one.error_code, one.error_message) for one in (row, described)] == [(0, None)] * 2
