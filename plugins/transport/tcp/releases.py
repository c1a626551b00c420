"""What releases of Apache Kafka advertised, for a broker that is to look like one (`logkernel.as.version`).

An API counts as a release's where a broker of it served it as it came: KIP-848 groups (behind a switch before 4.0),
share groups and Streams groups (before 4.2) and the APIs of KRaft's early access (before 3.3) are not among them.
Versions below those that `registry` has are left out: Kafka 4 dropped them. Facts from the message definitions of the
releases 2.8 to 3.9, and from answers of brokers 2.8 to 4.3 to ApiVersions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from logkernel.attrs_lite import evolve, frozen

from . import registry
from .api import Row

ABSENT: Final = -1
SHARE_GROUPS: Final = (
    "ShareGroupHeartbeat", "ShareGroupDescribe", "ShareFetch", "ShareAcknowledge", "InitializeShareGroupState",
    "ReadShareGroupState", "WriteShareGroupState", "DeleteShareGroupState", "ReadShareGroupStateSummary",
    "DescribeShareGroupOffsets", "AlterShareGroupOffsets", "DeleteShareGroupOffsets",
)  # fmt: skip
STREAMS_GROUPS: Final = ("StreamsGroupHeartbeat", "StreamsGroupDescribe")

STEPS_BACK: Final[tuple[tuple[str, Mapping[str, int]], ...]] = (
    ("4.3", {}),
    ("4.2", {"DescribeLogDirs": 4}),
    (
        "4.1",
        {
            "ListOffsets": 10, "OffsetCommit": 9, "OffsetFetch": 9, "WriteTxnMarkers": 1,
            **dict.fromkeys((*SHARE_GROUPS, *STREAMS_GROUPS), ABSENT),
        },
    ),
    ("4.0", {"Produce": 12, "Fetch": 17, "AlterPartitionReassignments": 0, "ListTransactions": 1,
             "ListConfigResources": 0}),
    (
        "3.9",
        {
            "Produce": 11, "ListOffsets": 9, "Metadata": 12, "DescribeGroups": 5, "EndTxn": 4, "TxnOffsetCommit": 4,
            "UpdateFeatures": 1, "DescribeCluster": 1, "ConsumerGroupHeartbeat": ABSENT,
            "ConsumerGroupDescribe": ABSENT,
        },
    ),
    ("3.8", {"Fetch": 16, "ListOffsets": 8, "FindCoordinator": 5, "ApiVersions": 3, "DescribeQuorum": 1}),
    (
        "3.7",
        {
            "Produce": 10, "FindCoordinator": 4, "ListGroups": 4, "InitProducerId": 4, "AddPartitionsToTxn": 4,
            "AddOffsetsToTxn": 3, "EndTxn": 3, "TxnOffsetCommit": 3, "ListTransactions": 0,
            "DescribeTopicPartitions": ABSENT,
        },
    ),
    ("3.6", {"Produce": 9, "Fetch": 15, "OffsetCommit": 8, "OffsetFetch": 8, "DescribeCluster": 0,
             "ListConfigResources": ABSENT}),
    ("3.5", {"AddPartitionsToTxn": 3}),
    ("3.4", {"Fetch": 13, "ListOffsets": 7}),
    ("3.3", {}),
    (
        "3.2",
        {
            "DescribeAcls": 2, "CreateAcls": 2, "DeleteAcls": 2, "DescribeLogDirs": 3, "CreateDelegationToken": 2,
            "DescribeDelegationToken": 2, "DescribeQuorum": ABSENT, "UpdateFeatures": 0, "UnregisterBroker": ABSENT,
        },
    ),
    ("3.1", {"JoinGroup": 7, "LeaveGroup": 4, "DescribeLogDirs": 2}),
    ("3.0", {"Fetch": 12, "Metadata": 11}),
    ("2.8", {"ListOffsets": 6, "OffsetFetch": 7, "FindCoordinator": 3, "DescribeTransactions": ABSENT,
             "ListTransactions": ABSENT}),
)  # fmt: skip
"""Release, the newest first → API → the highest version that it had, where that is less than in the release above."""

FEATURES_SINCE: Final = {"transaction.version": "4.0", "group.version": "4.0", "share.version": "4.2",
                         "streams.version": "4.2"}  # fmt: skip
RELEASES: Final = tuple(release for release, _ in STEPS_BACK)


@frozen
class Release:
    """What a listener speaks."""

    rows: Mapping[int, Row]
    """API key → its line of the registry, with the versions that are served."""
    features: frozenset[str] | None = None
    """The features that clients are shown; None: all."""

    def shown(self, features: Mapping[str, tuple[int, int, int]]) -> Mapping[str, tuple[int, int, int]]:
        """Those of `BrokerDoor.features` that this release knows."""
        if self.features is None:
            return features
        return {name: levels for name, levels in features.items() if name in self.features}


NEWEST: Final = Release(MappingProxyType(registry.BY_KEY))
"""Everything that is spoken here."""


def release(name: str) -> Release:
    """What Kafka `name` ("2.8" … "4.3") spoke, as far as it is spoken here. Raises `KeyError` for another."""
    at = RELEASES.index(name) if name in RELEASES else None
    if at is None:
        raise KeyError(name)
    highest: dict[str, int] = {}
    for _, step in STEPS_BACK[: at + 1]:
        highest.update(step)
    rows = {}
    for key, row in registry.BY_KEY.items():
        newest = min(row.max_version, highest.get(row.name, row.max_version))
        if newest >= row.min_version:
            rows[key] = evolve(row, max_version=newest)
    return Release(rows, frozenset(name for name, since in FEATURES_SINCE.items() if RELEASES.index(since) >= at))
