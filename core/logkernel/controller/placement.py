"""Which brokers hold a partition."""

from __future__ import annotations

from collections.abc import Sequence

from logkernel.errors import InvalidReplicaAssignment, InvalidReplicationFactor


def place(partitions: int, factor: int, brokers: Sequence[int], *, start: int = 0, first: int = 0) -> list[list[int]]:
    """Replicas of partitions `first`, `first` + 1, …: partition i starts on broker `start` + i, in turn.

    Each further round over the brokers shifts the followers by one, so that two brokers don't share all of
    their partitions. Raises InvalidReplicationFactor.
    """
    count = len(brokers)
    if factor > count:
        raise InvalidReplicationFactor(
            f"replication factor {factor} needs as many brokers, and {count} are registered; ask for at most {count}"
        )
    rows = []
    for index in range(first, first + partitions):
        leader = (start + index) % count
        shift = index // count
        others = [(leader + 1 + (shift + number) % (count - 1)) % count for number in range(factor - 1)]
        rows.append([brokers[leader], *(brokers[other] for other in others)])
    return rows


def check_assignment(replicas: Sequence[int], factor: int | None, brokers: Sequence[int]) -> None:
    """Check the replicas that a request names for a partition. `factor` is that of the partitions before it, None for
    the first one."""
    if not replicas:
        raise InvalidReplicaAssignment("a partition has no replica; name at least one broker for each")
    if len(set(replicas)) < len(replicas):
        raise InvalidReplicaAssignment(f"the replicas {list(replicas)} name a broker twice; name each once")
    for broker in replicas:
        if broker not in brokers:
            known = ", ".join(map(str, brokers))
            raise InvalidReplicaAssignment(f"broker {broker} is not registered; use some of {known}")
    if factor is not None and len(replicas) != factor:
        raise InvalidReplicaAssignment(
            f"the replicas {list(replicas)} are {len(replicas)}, other partitions have {factor}; give all as many"
        )
