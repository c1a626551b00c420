"""Every administrative API at every advertised version: asked, answered and told in that version's own bytes.

Each row says what must come back; none of it holds of a response that is all defaults.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from logkernel import errors as e
from logkernel.plugins.transport.tcp import registry
from logkernel.requests import access as a
from logkernel.requests import cluster, configs, placement, quorum

Check = Callable[[Any, int], bool]
ACL = a.AclCreation(2, "orders", 3, "User:ann", "*", 3, 3)
ENTITY = [a.AlterClientQuotasRequestEntryDataEntityData("user", "ann")]
FLUSH = configs.AlterableConfig("flush.ms", "77")
RENEWER = [a.CreatableRenewers("User", "x")]


def only(rows: list[Any]) -> Any:
    (row,) = rows
    return row


def names(rows: list[Any]) -> set[str]:
    return {row.resource_name for row in rows}


CASES: dict[str, tuple[Any, Check]] = {
    "SaslHandshake": (a.SaslHandshakeRequest("PLAIN"), lambda r, v: r.error_code == e.IllegalSaslState.code),
    "SaslAuthenticate": (a.SaslAuthenticateRequest(b"x"), lambda r, v: r.error_code == e.IllegalSaslState.code),
    "DescribeAcls": (
        a.DescribeAclsRequest(1, "orders", 2, None, None, 1, 1),
        lambda r, v: only(only(r.resources).acls).principal == "User:ann" and only(r.resources).pattern_type == 3,
    ),
    "CreateAcls": (a.CreateAclsRequest([ACL]), lambda r, v: only(r.results).error_code == 0),
    "DeleteAcls": (
        a.DeleteAclsRequest([a.DeleteAclsFilter(2, "orders", 3, None, None, 1, 1)]),
        lambda r, v: only(only(r.filter_results).matching_acls).principal == "User:ann",
    ),
    "DescribeConfigs": (
        configs.DescribeConfigsRequest([configs.DescribeConfigsResource(2, "t", ["flush.ms"])], True, True),
        lambda r, v: (row := only(only(r.results).configs)).value == "77"
        and row.config_source == 1
        and only(row.synonyms).value == "77"
        and (v < 3 or (row.config_type == 5 and bool(row.documentation))),
    ),
    "AlterConfigs": (
        configs.AlterConfigsRequest([configs.AlterConfigsResource(2, "t", [FLUSH])]),
        lambda r, v: only(r.responses).resource_name == "t" and only(r.responses).error_code == 0,
    ),
    "IncrementalAlterConfigs": (
        configs.IncrementalAlterConfigsRequest(
            [
                configs.IncrementalAlterConfigsAlterConfigsResource(
                    8, "1", [configs.IncrementalAlterConfigsAlterableConfig("root", 0, "LOUD")]
                )
            ]
        ),
        lambda r, v: only(r.responses).error_code == e.InvalidConfig.code and "LOUD" in only(r.responses).error_message,
    ),
    "ListConfigResources": (
        configs.ListConfigResourcesRequest([16]),
        lambda r, v: names(r.config_resources) == {"m"},
    ),
    "AlterReplicaLogDirs": (
        placement.AlterReplicaLogDirsRequest(
            [placement.AlterReplicaLogDir("/none", [placement.AlterReplicaLogDirTopic("t", [0])])]
        ),
        lambda r, v: only(only(r.results).partitions).error_code == e.LogDirNotFound.code,
    ),
    "DescribeLogDirs": (
        placement.DescribeLogDirsRequest(),
        lambda r, v: len(r.results) == 2
        and [topic.name for row in r.results for topic in row.topics] == ["t"]
        and (v < 4 or r.results[0].total_bytes > 0),
    ),
    "CreateDelegationToken": (
        a.CreateDelegationTokenRequest(renewers=RENEWER),
        lambda r, v: r.error_code == e.DelegationTokenRequestNotAllowed.code,
    ),
    "RenewDelegationToken": (
        a.RenewDelegationTokenRequest(b"x"), lambda r, v: r.error_code == e.DelegationTokenRequestNotAllowed.code
    ),
    "ExpireDelegationToken": (
        a.ExpireDelegationTokenRequest(b"x"), lambda r, v: r.error_code == e.DelegationTokenRequestNotAllowed.code
    ),
    "DescribeDelegationToken": (
        a.DescribeDelegationTokenRequest(), lambda r, v: r.error_code == e.DelegationTokenRequestNotAllowed.code
    ),
    "ElectLeaders": (
        placement.ElectLeadersRequest(0, [placement.TopicPartitions("t", [0])]),
        lambda r, v: only(only(r.replica_election_results).partition_result).error_code == e.ElectionNotNeeded.code,
    ),
    "AlterPartitionReassignments": (
        placement.AlterPartitionReassignmentsRequest(
            topics=[placement.ReassignableTopic("t", [placement.ReassignablePartition(0, [1, 2])])]
        ),
        lambda r, v: only(only(r.responses).partitions).error_code == e.InvalidReplicaAssignment.code,
    ),
    "ListPartitionReassignments": (
        placement.ListPartitionReassignmentsRequest(), lambda r, v: r.error_code == 0 and r.topics == []
    ),
    "DescribeClientQuotas": (
        a.DescribeClientQuotasRequest([a.ComponentData("user", 0, "ann")]),
        lambda r, v: [(row.key, row.value) for row in only(r.entries).values] == [("request_percentage", 12.5)],
    ),
    "AlterClientQuotas": (
        a.AlterClientQuotasRequest([a.AlterClientQuotasRequestEntryData(ENTITY, [a.OpData("speed", 1.0)])]),
        lambda r, v: only(r.entries).error_code == e.InvalidRequest.code
        and only(only(r.entries).entity).entity_name == "ann",
    ),
    "DescribeUserScramCredentials": (
        a.DescribeUserScramCredentialsRequest(),
        lambda r, v: only(r.results).user == "ann" and only(only(r.results).credential_infos).iterations == 4096,
    ),
    "AlterUserScramCredentials": (
        a.AlterUserScramCredentialsRequest([a.ScramCredentialDeletion("none", 1)]),
        lambda r, v: only(r.results).error_code == e.ResourceNotFound.code,
    ),
    "DescribeQuorum": (quorum.DescribeQuorumRequest(), lambda r, v: r.error_code == e.UnsupportedVersion.code),
    "UpdateFeatures": (
        quorum.UpdateFeaturesRequest(feature_updates=[quorum.FeatureUpdateKey("no.such", 1, 1)]),
        lambda r, v: r.error_code == e.InvalidUpdateVersion.code and "no.such" in r.error_message,
    ),
    "DescribeCluster": (
        cluster.DescribeClusterRequest(True),
        lambda r, v: only(r.brokers).broker_id == r.controller_id == 1 and r.cluster_authorized_operations > 0,
    ),
    "UnregisterBroker": (
        quorum.UnregisterBrokerRequest(7), lambda r, v: r.error_code == e.BrokerIdNotRegistered.code
    ),
}  # fmt: skip
VERSIONS = [
    (row.name, version)
    for row in registry.ROWS
    if row.name in CASES
    for version in range(row.min_version, row.max_version + 1)
]


@pytest.fixture
def asked(start: Any) -> Any:
    log = start("node.id=1")
    log.create_topic("t", flush_ms=77)
    log.request(a.CreateAclsRequest([ACL]))
    log.request(a.AlterUserScramCredentialsRequest([], [a.ScramCredentialUpsertion("ann", 1, 4096, b"s", b"p")]))
    ops = [a.OpData("request_percentage", 12.5)]
    log.request(a.AlterClientQuotasRequest([a.AlterClientQuotasRequestEntryData(ENTITY, ops)]))
    rows = [configs.IncrementalAlterConfigsAlterableConfig("interval.ms", 0, "5000")]
    subscription = configs.IncrementalAlterConfigsAlterConfigsResource(16, "m", rows)
    log.request(configs.IncrementalAlterConfigsRequest([subscription]))

    def ask(name: str, version: int) -> Any:
        api = registry.load(next(row.key for row in registry.ROWS if row.name == name))
        request = api.request_decoder(version)(memoryview(bytes(api.request_encoder(version)(CASES[name][0]))))
        body = b"".join(bytes(part) for part in api.response_encoder(version)(log.request(request)))
        return api.response_decoder(version)(memoryview(body))

    return ask


@pytest.mark.parametrize(("name", "version"), VERSIONS)
def test_it_is_answered(asked: Any, name: str, version: int) -> None:
    assert CASES[name][1](asked(name, version), version)


@pytest.mark.parametrize("name", sorted(set(CASES) - {"ListPartitionReassignments"}))
def test_a_default_is_no_answer(name: str) -> None:
    """The checks above can fail."""
    response = type(CASES[name][0]).__name__.replace("Request", "Response")
    module = __import__(type(CASES[name][0]).__module__, fromlist=["x"])
    with contextlib.suppress(ValueError, IndexError, TypeError):
        assert not CASES[name][1](getattr(module, response)(), 9)


def test_the_level_of_a_feature_may_fall_as_version_0_says_it() -> None:
    api = registry.load(57)
    row = quorum.FeatureUpdateKey("f", 1, 1, allow_downgrade=True)
    for version, kind in ((0, 2), (1, 1)):
        data = bytes(api.request_encoder(version)(quorum.UpdateFeaturesRequest(feature_updates=[row])))
        (seen,) = api.request_decoder(version)(memoryview(data)).feature_updates
        assert seen.upgrade_type == kind
    response = quorum.UpdateFeaturesResponse(results=[quorum.UpdatableFeatureResult("f")])
    for version, count in ((0, 1), (1, 1), (2, 0)):
        body = b"".join(bytes(part) for part in api.response_encoder(version)(response))
        assert len(api.response_decoder(version)(memoryview(body)).results) == count


def test_list_config_resources_has_no_other_kinds_in_version_0() -> None:
    """It is ListClientMetricsResources: asked for topics it must not seem that there are none."""
    api = registry.load(registry.BY_REQUEST["ListConfigResourcesRequest"].key)
    assert api.request_encoder(0)(configs.ListConfigResourcesRequest([16])) == b"\x00"
    for kinds in ([], [2], [2, 16]):
        with pytest.raises(e.UnsupportedVersion):
            api.request_encoder(0)(configs.ListConfigResourcesRequest(kinds))
        assert api.request_encoder(1)(configs.ListConfigResourcesRequest(kinds))
