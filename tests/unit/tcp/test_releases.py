"""What a broker that is to look like a release of Kafka speaks."""

from __future__ import annotations

import pytest

from logkernel.config.table_broker import AS_VERSIONS
from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.releases import NEWEST, RELEASES, STEPS_BACK, release

broker_versions = pytest.importorskip("kafka.protocol.broker_version_data")
OLDEST_KNOWN = broker_versions.BROKER_API_VERSIONS
"""kafka-python's table: what brokers of each release answered to ApiVersions, those up to 3.9 over ZooKeeper."""

COMMANDS = {4, 5, 6, 7, 56, 67}
BEHIND_A_SWITCH = {
    **dict.fromkeys((76, 77, 78, 79, 83, 84, 85, 86, 87, 88, 89, 90, 91, 92), "4.2"),
    **dict.fromkeys((68, 69), "4.0"),
}
"""API of share groups, Streams groups and KIP-848 groups → the first release that served it as it came."""
OF_KRAFT = {55, 64, 74, 75}
"""APIs that brokers over ZooKeeper lack."""


def test_the_setting_knows_the_releases() -> None:
    assert tuple(reversed(RELEASES)) == AS_VERSIONS


@pytest.mark.parametrize("name", RELEASES)
def test_versions_are_those_that_brokers_told_of(name: str) -> None:
    major, minor = map(int, name.split("."))
    told = OLDEST_KNOWN[major, minor]
    rows = release(name).rows
    at = RELEASES.index(name)
    for key, row in registry.BY_KEY.items():
        off = key in BEHIND_A_SWITCH and RELEASES.index(BEHIND_A_SWITCH[key]) < at
        if key in COMMANDS or (key in OF_KRAFT and key not in told):
            continue
        if off or key not in told:
            assert key not in rows, row.name
        else:
            assert rows[key].max_version == min(told[key][1], row.max_version), row.name
            assert rows[key].min_version == row.min_version


def test_steps_name_apis_and_go_down() -> None:
    newest = {row.name: row.max_version for row in registry.ROWS}
    for _, step in STEPS_BACK:
        for api, version in step.items():
            assert version < newest[api]
            newest[api] = version


def test_features_came_with_releases() -> None:
    levels = {
        "transaction.version": (0, 2, 2),
        "group.version": (0, 1, 1),
        "share.version": (0, 1, 1),
        "streams.version": (0, 1, 1),
        "own": (1, 1, 1),
    }
    assert dict(NEWEST.shown(levels)) == levels
    assert set(release("4.3").shown(levels)) == {
        "transaction.version",
        "group.version",
        "share.version",
        "streams.version",
    }
    assert set(release("4.1").shown(levels)) == {"transaction.version", "group.version"}
    assert set(release("3.9").shown(levels)) == set()


def test_another_release_is_not_known() -> None:
    with pytest.raises(KeyError):
        release("1.0")
