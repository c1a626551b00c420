"""The cluster: where replicas lie, its features, who may do what."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from administering import Bench
from doors import way_into

import logkernel
from logkernel.client.admin.access import AclBinding, AclFilter, ScramDeletion, ScramUpsertion, entity
from logkernel.errors import (
    BrokerIdNotRegistered,
    ConfigError,
    InvalidRequest,
    LogkernelError,
    ResourceNotFound,
    UnsupportedVersion,
)
from logkernel.vocabulary import TopicPartition

# ---------------------------------------------------------------- placement


def test_log_directories_and_a_move_between_them(way: str, tmp_path: Path) -> None:
    paths = [str(tmp_path / "one"), str(tmp_path / "two")]
    name = TopicPartition("a", 0)
    with logkernel.open(",".join(paths)) as log, way_into(log, way) as far, far.admin() as admin:
        admin.create_topics("a")
        log.append("a", b"v" * 100)

        def where() -> list[str]:
            rows = admin.describe_log_dirs([1], ["a"])[1]
            return [path for path, row in rows.items() if name in row.replicas and not row.replicas[name].future]

        (old,) = where()
        assert sorted(admin.describe_log_dirs()[1]) == sorted(paths)
        assert admin.describe_log_dirs()[1][old].replicas[name].size_bytes > 100
        (new,) = (path for path in paths if path != old)
        admin.alter_replica_log_dirs({("a", 0, 1): new})
        end_s = time.monotonic() + 180
        while where() != [new]:
            assert time.monotonic() < end_s
            log.step()
            time.sleep(0.01)
        with pytest.raises(LogkernelError):
            admin.alter_replica_log_dirs({("a", 0, 1): "/nowhere"})


def test_leaders_and_reassignments(bench: Bench) -> None:
    admin = bench.admin
    admin.create_topics("a")
    assert admin.elect_leaders([("a", 0)]) == {("a", 0): False}
    with pytest.raises(ConfigError, match="preferred"):
        admin.elect_leaders(election="fair")
    assert admin.list_partition_reassignments() == {}
    admin.alter_partition_reassignments({("a", 0): [1]})
    assert admin.list_partition_reassignments([("a", 0)]) == {}
    with pytest.raises(LogkernelError):
        admin.alter_partition_reassignments({("a", 0): [1, 2]})
    with pytest.raises(LogkernelError):
        admin.alter_partition_reassignments({("a", 0): None})


# ---------------------------------------------------------------- cluster


def test_the_cluster_and_its_features(bench: Bench) -> None:
    admin = bench.admin
    cluster = admin.describe_cluster()
    assert [broker.id for broker in cluster.brokers] == [1] == [cluster.controller]
    assert len(cluster.id) == 22
    level = admin.describe_features()["group.version"]
    assert (level.min_level, level.max_level, level.level) == (0, 1, 1)
    admin.update_features({"group.version": 0}, upgrade_type="unsafe-downgrade", validate_only=True)
    assert admin.describe_features()["group.version"].level == 1
    admin.update_features({"group.version": 0}, upgrade_type="unsafe-downgrade")
    assert admin.describe_features()["group.version"].level == 0
    with pytest.raises(LogkernelError):
        admin.update_features({"warp.version": 9})
    with pytest.raises(UnsupportedVersion, match="quorum"):
        admin.describe_quorum()
    with pytest.raises(BrokerIdNotRegistered):
        admin.unregister_broker(9)
    with pytest.raises(InvalidRequest):
        admin.unregister_broker(1)


# ---------------------------------------------------------------- access


def test_acls_are_created_filtered_and_deleted(bench: Bench) -> None:
    admin = bench.admin
    read = AclBinding("topic", "orders", "User:ann", "read")
    deny = AclBinding("group", "g", "User:bob", "all", "deny", "10.0.0.1", "prefixed")
    admin.create_acls([read, deny])
    assert set(admin.describe_acls()) == {read, deny}
    assert admin.describe_acls(AclFilter("topic", "orders", pattern="match")) == [read]
    assert admin.describe_acls(AclFilter(principal="User:bob")) == [deny]
    assert admin.delete_acls(AclFilter("topic")) == [read]
    assert admin.delete_acls([AclFilter(operation="all"), AclFilter("user")]) == [deny]
    assert admin.describe_acls() == []
    with pytest.raises(ConfigError, match="topic"):
        admin.describe_acls(AclFilter("table"))
    with pytest.raises(InvalidRequest):
        admin.create_acls(AclBinding("topic", "", "User:ann", "read"))


def test_scram_credentials_are_set_described_and_deleted(bench: Bench) -> None:
    admin = bench.admin
    admin.alter_user_scram_credentials(
        [ScramUpsertion("ann", "secret"), ScramUpsertion("bob", "secret", "SCRAM-SHA-512", 8192)]
    )
    found = admin.describe_user_scram_credentials()
    assert {user: (rows[0].mechanism, rows[0].iterations) for user, rows in found.items()} == {
        "ann": ("SCRAM-SHA-256", 4096),
        "bob": ("SCRAM-SHA-512", 8192),
    }
    admin.alter_user_scram_credentials(ScramDeletion("ann"))
    assert set(admin.describe_user_scram_credentials()) == {"bob"}
    with pytest.raises(ResourceNotFound):
        admin.describe_user_scram_credentials(["ann"])


def test_quotas_are_set_per_entity_and_found_by_filter(bench: Bench) -> None:
    admin = bench.admin
    ann, everyone = entity({"user": "ann", "client-id": None}), entity({"user": None})
    admin.alter_client_quotas({ann: {"producer_byte_rate": 1024}, everyone: {"request_percentage": 50.5}})
    assert admin.describe_client_quotas() == {
        ann: {"producer_byte_rate": 1024.0},
        everyone: {"request_percentage": 50.5},
    }
    assert set(admin.describe_client_quotas({"user": "*"}, strict=True)) == {everyone}
    assert set(admin.describe_client_quotas({"user": None})) == {everyone}
    assert set(admin.describe_client_quotas({"user": "ann"})) == {ann}
    admin.alter_client_quotas({ann: {"producer_byte_rate": None}}, validate_only=True)
    admin.alter_client_quotas({everyone: {"request_percentage": None}})
    assert set(admin.describe_client_quotas()) == {ann}
    with pytest.raises(InvalidRequest):
        admin.alter_client_quotas({ann: {"speed": 1}})
