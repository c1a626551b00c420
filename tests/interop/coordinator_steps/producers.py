"""Producer ids, where they are asked for, and what keeps a record from coming twice."""

from __future__ import annotations

from .asking_shares import share_key
from .asks import Steps


def producer_ids(do: Steps) -> None:
    do.init("init plain", None)
    do.init("init plain v0", None, version=0)
    do.init("init plain v5 no timeout", None, timeout_ms=0)
    do.init("init no name", "")
    do.init("init timeout 0", "x", timeout_ms=0)
    do.init("init timeout negative", "x", timeout_ms=-1)
    do.init("init timeout large", "x", timeout_ms=900_001)
    do.init("init timeout largest", "x", timeout_ms=900_000)
    do.init("init half known", "x", (5, -1))
    do.init("init other half known", "x", (-1, 5))
    do.init("init unknown of a stranger", "y", (12345, 3))
    one = do.init("init again", "x")
    do.init("init goes on", "x", one)
    do.init("init goes on again", "x", one)
    do.init("init far behind", "x", (one[0], one[1] - 1))
    do.init("init far ahead", "x", (one[0], one[1] + 9))
    do.init("init other producer", "x", (999_999, one[1]))
    do.init("init plain of a known producer", None, one)


def coordinators(do: Steps) -> None:
    do.coordinator("coordinator of a group", 0, "g")
    do.coordinator("coordinator of no name", 0, "")
    do.coordinator("coordinator of a transaction", 1, "x")
    do.coordinator("coordinator of no transaction", 1, "")
    do.coordinator("coordinator of two", 1, "x", "y")
    do.coordinator("coordinator of a share", 2, share_key("g", do.topics["t"], 0))
    do.coordinator("coordinator of a share by v5", 2, share_key("g", do.topics["t"], 0), version=5)
    do.coordinator("coordinator of no share", 2, "x")
    do.coordinator("coordinator of nothing known", 9, "x")
    do.coordinator("coordinator by v3", 1, "x", version=3)


def idempotence(do: Steps) -> None:
    do.create("i", 1)
    me = do.init("i init", None)
    do.produce("i first", me, 0, topic="i")
    do.produce("i repeats", me, 0, topic="i")
    do.produce("i next", me, 1, topic="i", count=3)
    do.produce("i repeats what comes before", me, 0, topic="i")
    do.produce("i gap", me, 9, topic="i")
    do.produce("i overlaps", me, 2, topic="i")
    for number in range(4, 10):
        do.produce(f"i number {number}", me, number, topic="i")
    do.produce("i repeats what is forgotten", me, 0, topic="i")
    do.produce("i next epoch begins badly", (me[0], 1), 3, topic="i")
    do.produce("i next epoch", (me[0], 1), 0, topic="i")
    do.produce("i old epoch", me, 10, topic="i")
    do.produce("i unknown producer", (987_654, 4), 7, topic="i")
    do.produce("i unknown producer goes on", (987_654, 4), 8, topic="i")
    do.produce("i transactional batch without an id", me, 0, topic="i", transactional=True)
    do.produce("i plain batch with an id", (me[0], 1), 1, topic="i", transactional_id="i", transactional=False)
    do.produce("i wraps", (111_111, 0), 2**31 - 1, topic="i")
    do.produce("i wrapped", (111_111, 0), 0, topic="i")
    do.producers_of("i producers", "i", 0)
    do.producers_of("producers of no topic", "none", 0)
    do.producers_of("producers of no partition", "i", 7)
    do.producers_of("producers of a bad name", "a b", 0)
    do.producers_of("producers of no name", "", 0)
