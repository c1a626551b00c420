"""Services keep the contract: a small right one, committed offsets, and producer ids."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from wrong_plugins.service import Service, requests

from logkernel.requests.groups import (
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from logkernel.requests.producers import InitProducerIdRequest
from logkernel.testing import ClusterStub
from logkernel.testing.contracts import ServiceContract


def commit(group: str, offset: int) -> OffsetCommitRequest:
    topic = OffsetCommitRequestTopic("t", partitions=[OffsetCommitRequestPartition(0, offset)])
    return OffsetCommitRequest(group, -1, "", topics=[topic])


class TestSums(ServiceContract):
    def make(self) -> Any:
        return Service()

    def requests(self) -> st.SearchStrategy[Any]:
        return requests(self)


class TestGroups(ServiceContract):
    """What consumers without members commit and fetch."""

    name = "groups"
    effort = 0.4

    def cluster(self) -> ClusterStub:
        return ClusterStub({"t": 1})

    def requests(self) -> st.SearchStrategy[Any]:
        names = st.sampled_from(["g", "h", "i"])
        fetches = names.map(lambda name: OffsetFetchRequest(groups=[OffsetFetchRequestGroup(name)]))
        return st.builds(commit, names, st.integers(0, 9)) | fetches | st.just(ListGroupsRequest())

    def test_groups_are_listed_alike_after_a_compaction(self) -> None:
        """They came in the order of the oldest record of each, which a compaction takes away."""
        calm, struck = self._harness(), self._harness()
        for harness in (calm, struck):
            for group in ("i", "g", "i"):
                harness.ask(commit(group, 0))
        struck.compact()
        struck.restart()
        found = [[row.group_id for row in harness.ask(ListGroupsRequest()).groups] for harness in (calm, struck)]
        assert found == [["g", "i"], ["g", "i"]]


class TestTransactions(ServiceContract):
    name = "transactions"
    effort = 0.4
    soft_state = True

    def cluster(self) -> ClusterStub:
        return ClusterStub(features={"transaction.version": 2})

    def requests(self) -> st.SearchStrategy[Any]:
        return st.builds(InitProducerIdRequest, st.sampled_from([None, "a", "b"]), st.just(60_000))
