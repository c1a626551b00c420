"""What is listed, described, and ended from outside; and topics that go."""

from __future__ import annotations

import time

from logkernel.requests.groups import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)

from .asking import PATIENCE_S
from .asks import Producer, Steps


def operators(do: Steps) -> None:
    do.create("op", 1)
    a, b = do.init("op a", "op-a"), do.init("op b", "op-b")
    do.produce("op a writes", a, 0, transactional_id="op-a", topic="op")
    listings(do, a)
    descriptions(do, a)
    markers(do, a)
    do.end("op a ends what was ended", "op-a", a, True)
    do.settled("op-a")
    do.end("op b aborts nothing", "op-b", b, False)
    do.ends("op lets readers pass", "op", 0)


def listings(do: Steps, a: Producer) -> None:
    mine = {"transactional_id_pattern": "op-.*"}
    do.transactions("op by pattern", **mine)
    do.transactions("op by another pattern", transactional_id_pattern="op-a")
    do.transactions("op by part of a name", transactional_id_pattern="op")
    do.transactions("op by an empty pattern", transactional_id_pattern="", state_filters=["Ongoing"])
    do.transactions("op by a bad pattern", transactional_id_pattern="(")
    do.transactions("op by state", **mine, state_filters=["Empty"])
    do.transactions("op by two states", **mine, state_filters=["Empty", "Ongoing"])
    do.transactions("op by an unknown state", **mine, state_filters=["Nonsense"])
    do.transactions("op by a known and an unknown state", **mine, state_filters=["Empty", "Nonsense"])
    do.transactions("op by a state in small letters", **mine, state_filters=["empty"])
    do.transactions("op by dead", **mine, state_filters=["Dead"])
    do.transactions("op by fence", **mine, state_filters=["PrepareEpochFence"])
    do.transactions("op by producer", **mine, producer_id_filters=[a[0]])
    do.transactions("op by unknown producer", **mine, producer_id_filters=[-5])
    do.transactions("op by duration", **mine, duration_filter=0)
    do.transactions("op by a long duration", **mine, duration_filter=3_600_000)
    do.transactions("op by no duration", **mine, duration_filter=-1)
    do.transactions("op by a negative duration", **mine, duration_filter=-7)
    do.transactions("op by v0", version=0, state_filters=["Ongoing"])


def descriptions(do: Steps, a: Producer) -> None:
    do.transaction("op described", "op-a", "op-b")
    do.transaction("op described twice", "op-b", "op-b")
    do.transaction("op described unknown", "nobody")
    do.transaction("op described no name", "")
    do.add("op verify by v5", "op-a", a, ("op", 0), version=5, verify=True)
    do.add("op verify unknown", "nobody", a, ("op", 0), version=5, verify=True)


def markers(do: Steps, a: Producer) -> None:
    do.marker("op marker of no topic", a, "none", 0)
    do.marker("op marker of no partition", a, "op", 9)
    do.marker("op marker of an unknown producer", (a[0] + 200_000, 0), "op", 0)
    do.producers_of("op before", "op", 0)
    do.marker("op marker as v2 with the same epoch", a, "op", 0, level=2)
    do.marker("op marker ends it", a, "op", 0, coordinator=7)
    do.marker("op marker again", a, "op", 0, coordinator=7)
    do.marker("op marker of an older coordinator", a, "op", 0, coordinator=3)
    do.marker("op marker by v1", a, "op", 0, coordinator=7, version=1)
    do.producers_of("op after", "op", 0)
    do.aborted("op abort is told", "op", 0)


def topics_that_go(do: Steps) -> None:
    """A topic goes while a group and a transaction use it."""
    do.create("gone", 1)
    do.create("stays", 1)
    who = do.init("gone init", "gone")
    do.produce("gone writes", who, 0, transactional_id="gone", topic="gone")
    do.produce("stays writes", who, 0, transactional_id="gone", topic="stays")
    do.offsets_in("gone commits offsets", "gone", "g-gone", who, topic="gone")
    do.commit("gone commit", "g-gone", topic="gone")
    do.commit("stays commit", "g-gone", topic="stays")
    do.delete("gone")
    deadline = time.monotonic() + PATIENCE_S
    while True:
        answer = do.ask(9, OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g-gone", None)]))
        if len(answer.groups[0].topics) == 1 or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    do.fetched("gone offsets", "g-gone", everything=True)
    do.commit("gone commit again", "g-gone", topic="gone")
    do.offset_delete("gone offset delete", "g-gone", ("gone", 0))
    do.transaction("gone is ongoing", "gone")
    do.end("gone ends", "gone", who, True)
    do.settled("gone")
    do.transaction("gone is complete", "gone")
    do.ends("stays is readable", "stays", 0)
    do.fetched("gone offsets after", "g-gone", everything=True)
