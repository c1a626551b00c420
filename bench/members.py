"""A cluster whose brokers are processes of their own: ours on a ZooKeeper, or Kafka's."""

from __future__ import annotations

from collections.abc import Sequence

import clients
from server import Server

MEMBERS = (1, 2, 3)
"""Node ids."""


class MemberCluster:
    def __init__(self, members: Sequence[Server]) -> None:
        self.members = members

    @property
    def bootstrap(self) -> str:
        return ",".join(member.bootstrap for member in self.members)

    @property
    def pids(self) -> list[int]:
        """Of the brokers; ZooKeeper's work is not theirs."""
        return [member.pid for member in self.members]

    def member(self, node_id: int) -> Server:
        return self.members[node_id - 1]

    def start(self) -> None:
        """All at once; returns when each answers and all are known."""
        for member in self.members:
            member.prepare()
        for member in self.members:
            member.launch()
        for member in self.members:
            member.wait_for_answer()
        clients.wait_for_brokers(self.bootstrap, len(self.members))

    def stop(self) -> None:
        for member in self.members:
            member.stop()
