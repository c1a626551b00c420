"""What brokers of Apache Kafka 3.9.2 said to one another, by `record_frames.py`: read, and written as it was."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import frozen

from logkernel.plugins.transport.tcp import registry
from logkernel.plugins.transport.tcp.frames import MIN_REQUEST, REQUEST_HEAD, read_client_id, skip_tags
from logkernel.requests.data import FetchRequest
from logkernel.requests.replication import AlterPartitionRequest

FILES = ("orders", "asked")
SPOKEN = {
    "orders": {"UpdateMetadata 8", "LeaderAndIsr 7", "StopReplica 4", "Fetch 17"},
    "asked": {
        "UpdateMetadata 8", "LeaderAndIsr 7", "StopReplica 4", "Fetch 17", "AllocateProducerIds 0", "AlterPartition 3",
        "AddPartitionsToTxn 5", "WriteTxnMarkers 1", "ControlledShutdown 3",
    },
}  # fmt: skip
"""What is in each file: the versions that Kafka chose."""


@frozen
class Spoken:
    name: str
    version: int
    request: bytes
    response: bytes

    @property
    def api(self) -> Any:
        return registry.load(registry.BY_REQUEST[f"{self.name}Request"].key)

    @property
    def request_body(self) -> memoryview:
        view = memoryview(self.request)
        assert REQUEST_HEAD.unpack_from(view)[:2] == (self.api.key, self.version)
        _, pos = read_client_id(view, MIN_REQUEST)
        return view[skip_tags(view, pos) :]

    @property
    def response_body(self) -> memoryview:
        assert self.response[:4] == self.request[4:8]
        return memoryview(self.response)[skip_tags(memoryview(self.response), 4) :]


def spoken(file: str) -> list[Spoken]:
    found = []
    for line in (Path(__file__).parent / f"{file}.txt").read_text().splitlines():
        if not line.startswith("#"):
            _, name, version, request, response = line.split()
            found.append(Spoken(name, int(version), bytes.fromhex(request), bytes.fromhex(response)))
    return found


@pytest.mark.parametrize("file", FILES)
def test_kafka_speaks_these_versions(file: str) -> None:
    assert {f"{each.name} {each.version}" for each in spoken(file)} == SPOKEN[file]


@pytest.mark.parametrize("file", FILES)
def test_every_request_is_read_and_written_as_it_was(file: str) -> None:
    for each in spoken(file):
        request = each.api.request_decoder(each.version)(each.request_body)
        assert b"".join(each.api.encode_request_parts(each.version)(request)) == each.request_body, each.name


@pytest.mark.parametrize("file", FILES)
def test_every_response_is_read_and_written_as_it_was(file: str) -> None:
    for each in spoken(file):
        response = each.api.decode_response(each.version)(each.response_body)
        assert b"".join(each.api.response_encoder(each.version)(response)) == each.response_body, each.name


def test_a_follower_tells_its_broker_epoch_and_a_leader_proposes_without() -> None:
    """With ZooKeeper, too: so a fetch of a follower's earlier life can be told (KIP-903)."""
    fetches = [each for each in spoken("asked") if each.name == "Fetch"]
    epochs = set()
    for each in fetches:
        request: FetchRequest = each.api.request_decoder(each.version)(each.request_body)
        assert request.replica_id in (1, 2)
        epochs.add(request.replica_state.replica_epoch)
    assert len(epochs) > 1
    assert min(epochs) > 0
    proposals = [each for each in spoken("asked") if each.name == "AlterPartition"]
    for each in proposals:
        asked: AlterPartitionRequest = each.api.request_decoder(each.version)(each.request_body)
        assert asked.broker_epoch in epochs
        members = [member for topic in asked.topics for row in topic.partitions for member in row.new_isr_with_epochs]
        assert {member.broker_epoch for member in members} == {-1}
