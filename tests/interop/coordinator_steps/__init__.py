"""What is asked of coordinators, step by step over TCP, of any broker: groups, offsets, transactions, share groups,
groups of Kafka Streams.

`Steps` speaks to one broker at chosen versions and writes a line a step: its name, a tab, what was answered. Ids that
brokers choose are told in the order in which they come: producer ids as P0, P1 …, member ids as G0, G1 …
What a broker is not done with yet (CONCURRENT_TRANSACTIONS, a coordinator that loads) is asked for again.

`python -m coordinator_steps HOST:PORT`, in this package's folder, prints them; `record_coordinator_steps.py` asks
Apache Kafka. Step names are unique; the topics are made here, on a broker that is fresh. The rooms: `asking` and its
families say how one thing is asked, the others what is asked in which order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from logkernel.requests.groups import FindCoordinatorRequest

from .asked_twice import asked_twice
from .asking_shares import share_key
from .asks import Steps
from .classic_groups import classic_group, static_members, two_classic_members
from .offsets import OFFSETS
from .operators import operators, topics_that_go
from .producers import coordinators, idempotence, producer_ids
from .share_groups import SHARE_GROUPS
from .streams_groups import STREAMS_GROUPS
from .transactions import classic_member_in_transactions, new_member_in_transactions, timeouts
from .transactions_v1 import transactions_v1
from .transactions_v2 import transactions_v2

SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
"""Of a broker that takes the steps: it makes them fast."""
PARTS = (
    *OFFSETS, classic_group, two_classic_members, static_members, producer_ids, coordinators, idempotence,
    transactions_v1, transactions_v2, timeouts, classic_member_in_transactions, new_member_in_transactions, operators,
    topics_that_go, *SHARE_GROUPS, *STREAMS_GROUPS, asked_twice,
)  # fmt: skip


def find_coordinators(do: Steps) -> None:
    """Of every kind: Apache Kafka makes their topics when it is asked."""
    for kind, key in ((0, "g"), (1, "x"), (2, share_key("g", do.topics["t"], 0))):
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
        do.ask(6, request, lambda a: [r.error_code for r in a.coordinators])


def run(bootstrap: str, tell: Callable[[str], None]) -> None:
    do = Steps(bootstrap, tell)
    do.create("t", 4)
    do.create("u", 1)
    find_coordinators(do)
    for part in PARTS:
        part(do)


def settings() -> list[str]:
    """`SETTINGS` as words of `logkernel serve`."""
    return [word for name, value in SETTINGS.items() for word in ("--set", f"{name}={value}")]


def by_name(text: str) -> dict[str, str]:
    """Step → what was said."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, _, said = line.partition("\t")
        assert name not in found, name
        found[name] = said
    return found


def differing(found: dict[str, str], recorded: dict[str, str], otherwise: Mapping[str, str]) -> list[str]:
    """Steps that are not as they were recorded, and those that are though they should not be."""
    return [
        f"{step}\n  Kafka: {said}\n  here:  {found[step]}"
        for step, said in recorded.items()
        if (found[step] == said) is (step in otherwise)
    ]
