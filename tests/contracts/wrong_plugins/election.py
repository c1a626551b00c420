"""Elections that break a promise."""

from __future__ import annotations

from itertools import count
from typing import Any

from logkernel.contracts import Candidates, Elected
from wrong_plugins import Wrong, made


def in_sync(known: Candidates) -> list[int]:
    return [node for node in known.assignment if node in known.isr and node in known.alive]


class Clean:
    """As it should be."""

    def elect(self, known: Candidates) -> Any:
        order = in_sync(known)
        return Elected(order[0], tuple(order)) if order else None


class Preferred(Clean):
    def elect(self, known: Candidates) -> Any:
        return Elected(known.assignment[0], known.assignment)


class Unpacker(Clean):
    def elect(self, known: Candidates) -> Any:
        first, *_ = in_sync(known)
        return Elected(first, (first,))


class Everyone(Clean):
    def elect(self, known: Candidates) -> Any:
        order = in_sync(known)
        return Elected(order[0], known.assignment) if order else None


class Turns(Clean):
    def __init__(self) -> None:
        self.turn = count()

    def elect(self, known: Candidates) -> Any:
        order = in_sync(known)
        return Elected(order[next(self.turn) % len(order)], tuple(order)) if order else None


class Never(Clean):
    def elect(self, known: Candidates) -> Any:
        return None


TURNS = Turns()
WRONG = [
    Wrong("test_the_leader_is_alive_and_a_replica", "which is no live replica", made(lambda _: Preferred())),
    Wrong(
        "test_the_leader_is_alive_and_a_replica", r"elect\(\) raised ValueError: not enough", made(lambda _: Unpacker())
    ),
    Wrong(
        "test_a_clean_election_adds_nobody_to_the_isr",
        "name only replicas that were in sync",
        made(lambda _: Everyone()),
    ),
    Wrong("test_equal_candidates_give_equal_results", "depend on the candidates alone", made(lambda _: TURNS)),
    Wrong("test_a_healthy_partition_gets_a_leader", "all alive and in sync; elect one", made(lambda _: Never())),
    Wrong(
        "test_a_simulated_cluster_keeps_its_promises",
        "a simulated cluster under faults breaks",
        made(lambda _: Everyone()),
    ),
]
