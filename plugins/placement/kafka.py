"""Placement `kafka`: as Apache Kafka places, so that load spreads over brokers and racks.

Partition 0 leads on a broker drawn at random, the next one on the next broker, and so on, round by round. The followers
of a partition come after its leader, a shift apart; the shift is drawn, too, and grows by one with each round. So the
brokers that share a partition with a broker change from round to round, and a dead broker's load goes to many.

| 5 brokers, factor 3, both draws 0 | 0 | 1 | 2 | 3 | 4 | 5 | 6 |
|---|---|---|---|---|---|---|---|
| leads | 0 | 1 | 2 | 3 | 4 | 0 | 1 |
| follows | 1 | 2 | 3 | 4 | 0 | 2 | 3 |
| follows | 2 | 3 | 4 | 0 | 1 | 3 | 4 |

Where every broker names its rack, brokers are taken in turns from the racks, and a follower is passed over while its
rack holds the partition already and another rack does not. A topic that grows goes on from the leader of its partition
0, with that leader's number as both draws.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from logkernel.contracts import PlacementFacts, PlacementStrategy
from logkernel.hookspecs import hookimpl


class Kafka:
    """`contracts.PlacementStrategy`; stateless."""

    def place(self, facts: PlacementFacts) -> Sequence[Sequence[int]]:
        racks = {node: rack for node, rack in facts.brokers if rack is not None}
        nodes = [node for node, _ in facts.brokers]
        start = shift = None
        if facts.leader_of_first is not None:
            start = shift = nodes.index(facts.leader_of_first) if facts.leader_of_first in nodes else 0
        if len(racks) == len(nodes):
            nodes = _by_turns(racks)
        count = len(nodes)
        start = facts.draw(count) if start is None else start
        shift = facts.draw(count) if shift is None else shift
        rows = []
        for index in range(facts.first, facts.first + facts.partitions):
            if index and index % count == 0:
                shift += 1
            leader = (start + index) % count
            rows.append(_replicas(nodes, leader, shift, facts.factor, racks if len(racks) == count else {}))
        return rows


def _by_turns(racks: dict[int, str]) -> list[int]:
    """Brokers, one of each rack in turn, racks and brokers in order."""
    by_rack: dict[str, list[int]] = {}
    for node, rack in sorted(racks.items()):
        by_rack.setdefault(rack, []).append(node)
    columns = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(len(column) for column in columns)
    return [column[row] for row in range(longest) for column in columns if row < len(column)]


def _replicas(nodes: list[int], leader: int, shift: int, factor: int, racks: dict[int, str]) -> list[int]:
    """The replicas of one partition that is led by number `leader` of the brokers."""
    count, all_racks = len(nodes), set(racks.values())
    found = [nodes[leader]]
    step = shift * len(all_racks) if racks else shift
    number = 0
    while len(found) < factor:
        node = nodes[(leader + 1 + (step + number) % (count - 1)) % count]
        number += 1
        held = {racks[other] for other in found} if racks else set()
        if node not in found and (not racks or racks[node] not in held or held == all_racks):
            found.append(node)
    return found


@hookimpl
def logkernel_placement(name: str) -> PlacementStrategy | None:
    return Kafka() if name == "kafka" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("placement", "kafka")]
