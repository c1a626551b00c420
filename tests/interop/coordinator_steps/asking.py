"""One connection to a broker, and a line a step of what it answered."""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from logkernel.plugins.transport.tcp import registry
from logkernel.requests.cluster import MetadataRequest, MetadataRequestTopic
from logkernel.requests.groups import (
    FindCoordinatorRequest,
)
from logkernel.requests.topics import CreatableTopic, CreateTopicsRequest, DeleteTopicsRequest
from logkernel.vocabulary import NO_ID

LATER = frozenset((14, 15, 16, 51))
"""COORDINATOR_LOAD_IN_PROGRESS, COORDINATOR_NOT_AVAILABLE, NOT_COORDINATOR, CONCURRENT_TRANSACTIONS."""
PATIENCE_S = 120.0
ANSWER_S = 120.0
"""Longer than any rebalance timeout of the steps (60 s): a JoinGroup is answered when it ends."""
UNKNOWN_ID = UUID(int=7)
HEAD = struct.Struct(">hhih")


class Connection:
    """One connection; requests by version, one at a time or several under way."""

    def __init__(self, bootstrap: str) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), ANSWER_S)
        self.under_way: list[tuple[Any, int]] = []

    def send(self, version: int, request: Any) -> None:
        row = registry.BY_REQUEST[type(request).__name__]
        api = registry.load(row.key)
        head = HEAD.pack(row.key, version, 0, 5) + b"steps" + (b"\0" if version >= row.flexible_from else b"")
        body = bytes(api.encode_request(version)(request))
        self.socket.sendall(struct.pack(">i", len(head) + len(body)) + head + body)
        self.under_way.append((api, version))

    def receive(self) -> Any:
        api, version = self.under_way.pop(0)
        (size,) = struct.unpack(">i", self._exactly(4))
        frame = memoryview(self._exactly(size))[4:]
        if version >= api.row.flexible_from:
            frame = frame[1:]
        return api.decode_response(version)(frame)

    def _exactly(self, size: int) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            part = self.socket.recv(size - len(parts))
            if not part:
                raise ConnectionError("the broker hung up")
            parts += part
        return bytes(parts)


class Asking:
    """Asks, tells, and gives names to the ids that the broker chose."""

    def __init__(self, bootstrap: str, tell: Callable[[str], None]) -> None:
        self.bootstrap = bootstrap
        self.tell = tell
        self.line = Connection(bootstrap)
        self.producers: dict[int, str] = {-1: "-"}
        self.members: dict[str, str] = {}
        self.topics: dict[str, UUID] = {}
        self.names: dict[UUID, str] = {NO_ID: "", UNKNOWN_ID: "unknown"}

    def ask(self, version: int, request: Any, codes: Callable[[Any], Sequence[int]] | None = None) -> Any:
        """The answer; where `codes` finds one of LATER in it, asked again for a while."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            self.line.send(version, request)
            answer = self.line.receive()
            if codes is None or LATER.isdisjoint(codes(answer)) or time.monotonic() > deadline:
                return answer
            time.sleep(0.05)

    def note(self, name: str, *told: Any) -> None:
        self.tell(name + "\t" + " ".join(map(str, told)))

    def pid(self, producer_id: int) -> str:
        return self.producers.setdefault(producer_id, f"P{len(self.producers) - 1}")

    def member(self, member_id: str | None) -> str | None:
        return self.members.setdefault(member_id, f"G{len(self.members)}") if member_id else member_id

    def create(self, name: str, partitions: int) -> UUID:
        self.ask(7, CreateTopicsRequest([CreatableTopic(name, partitions, 1)]))
        deadline = time.monotonic() + PATIENCE_S
        while True:
            (row,) = self.ask(12, MetadataRequest([MetadataRequestTopic(name=name)], False)).topics
            if row.error_code == 0 and all(one.leader_id >= 0 for one in row.partitions):
                break
            assert time.monotonic() < deadline, name
            time.sleep(0.05)
        self.topics[name], self.names[row.topic_id] = row.topic_id, name
        topic_id: UUID = row.topic_id
        return topic_id

    def delete(self, name: str) -> None:
        self.ask(5, DeleteTopicsRequest(topic_names=[name], timeout_ms=10_000))
        deadline = time.monotonic() + PATIENCE_S
        while self.ask(12, MetadataRequest([MetadataRequestTopic(name=name)], False)).topics[0].error_code != 3:
            assert time.monotonic() < deadline, name
            time.sleep(0.05)

    def coordinator(self, name: str, kind: int, *keys: str, version: int = 6) -> None:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
        answer = self.ask(version, request, lambda a: [r.error_code for r in a.coordinators])
        told = [(r.error_code, r.node_id, bool(r.host), r.port > 0) for r in answer.coordinators]
        self.note(name, told)
