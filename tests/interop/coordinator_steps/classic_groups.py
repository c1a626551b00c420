"""Groups of the classic protocol: one member, two, static ones."""

from __future__ import annotations

import time

from logkernel.requests.groups import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)

from .asking import PATIENCE_S, Connection
from .asking_groups import subscription
from .asks import Steps


def classic_group(do: Steps) -> None:
    refused_joins(do)
    first = do.join("join asks", "g").member_id
    only_an_id(do, first)
    generation = joined(do, first)
    stable(do, first, generation)
    by_others(do)
    left(do, first, generation)
    emptied(do, first)


def refused_joins(do: Steps) -> None:
    do.join("join no name", "")
    do.join("join short session", "g", session_ms=10)
    do.join("join long session", "g", session_ms=2_000_000_000)
    do.join("join no protocols", "g", protocols=())
    do.join("join no type", "g", kind="")
    do.join("join unknown member", "g", "who")
    do.join("join unknown member of nobody", "fresh", "who")
    do.described("describe after bad joins", "g")


def only_an_id(do: Steps, first: str) -> None:
    """Who was told an id, and did not come back with it."""
    do.beat("beat with an id that did not join", "g", -1, first)
    do.sync("sync with an id that did not join", "g", 0, first)
    do.commit("commit with an id that did not join", "g", 0, first)
    do.commit("commit with an id alone", "g", -1, first)
    do.described("describe with an id that did not join", "g")


def joined(do: Steps, first: str) -> int:
    answer = do.join("join", "g", first)
    generation = answer.generation_id
    do.described("describe completing", "g")
    do.beat("beat completing", "g", generation, first)
    do.commit("commit completing", "g", generation, first)
    do.join("join again completing", "g", first)
    do.sync("sync wrong protocol", "g", generation, first, b"a", protocol="other")
    do.sync("sync wrong type", "g", generation, first, b"a", kind="other")
    do.sync("sync old generation", "g", generation - 1, first, b"a")
    do.sync("sync unknown", "g", generation, "who", b"a")
    do.sync("sync", "g", generation, first, b"assigned")
    do.sync("sync again", "g", generation, first)
    do.sync("sync v4", "g", generation, first, version=4)
    return generation


def stable(do: Steps, first: str, generation: int) -> None:
    do.described("describe stable", "g")
    do.beat("beat", "g", generation, first)
    do.beat("beat old generation", "g", generation - 1, first)
    do.beat("beat next generation", "g", generation + 1, first)
    do.beat("beat unknown", "g", generation, "who")
    do.beat("beat with an instance", "g", generation, first, "i")
    do.commit("commit", "g", generation, first)
    do.commit("commit old generation", "g", generation - 1, first)
    do.commit("commit unknown", "g", generation, "who")
    do.commit("commit nobody in a group", "g")
    do.commit("commit no generation in a group", "g", -1, first)
    do.commit("commit with an instance", "g", generation, first, instance="i")
    do.fetched("fetch of a group", "g", everything=True)
    do.offset_delete("delete offset that is read", "g", ("t", 0), ("u", 0))
    do.deleted("delete group in use", "g")


def by_others(do: Steps) -> None:
    do.join("join other protocol", "g", protocols=("other",))
    do.join("join other type", "g", kind="connect")
    do.listed("list classic stable", types=["classic"], states=["stable"])
    do.leave("leave unknown", "g", ("who", None))
    do.leave("leave unknown instance", "g", ("", "i"))
    do.leave("leave nobody at all", "g")


def left(do: Steps, first: str, generation: int) -> None:
    do.leave("leave", "g", (first, None))
    do.described("describe left", "g")
    do.beat("beat left", "g", generation, first)
    do.commit("commit left", "g", generation, first)
    do.commit("commit left alone", "g", -1, first)


def emptied(do: Steps, first: str) -> None:
    do.commit("commit by nobody into what is empty", "g", offset=7)
    do.fetched("fetch of what is empty", "g", everything=True)
    do.join("join unknown into what is empty", "g", first)
    old = do.join("join v3 into what is empty", "g", version=3)
    do.sync("sync v3", "g", old.generation_id, old.member_id, b"", version=3)
    do.leave("leave v2", "g", (old.member_id, None), version=2)
    do.listed("list empty classic", types=["classic"], states=["empty"])
    do.offset_delete("delete offset of what is empty", "g", ("t", 0))
    do.deleted("delete what is empty", "g")
    do.deleted("delete what is deleted", "g")


def two_classic_members(do: Steps) -> None:
    """What those in a group are told while it rebalances."""
    a = do.join("a asks", "two").member_id
    one = do.join("a joins", "two", a).generation_id
    do.sync("a syncs", "two", one, a, b"all")
    b = do.join("b asks", "two").member_id
    other = Connection(do.bootstrap)
    rows = [JoinGroupRequestProtocol("range", subscription("t")), JoinGroupRequestProtocol("extra", b"")]
    other.send(9, JoinGroupRequest("two", 60_000, b, "consumer", rows, 60_000))
    deadline = time.monotonic() + PATIENCE_S
    while do.ask(4, HeartbeatRequest("two", one, a)).error_code == 0:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    do.beat("a beats while b waits", "two", one, a)
    do.commit("a commits while b waits", "two", one, a)
    do.offsets_in("a commits in no transaction while b waits", "no", "two", (77, 0), one, a)
    do.sync("a syncs while b waits", "two", one, a)
    do.described("described while b waits", "two")
    do.join("a joins again", "two", a)
    do.joined("b is in", other.receive())
    two = one + 1
    other.send(5, SyncGroupRequest("two", two, b, [], None, "consumer", "range"))
    time.sleep(0.2)
    do.described("described before the sync", "two")
    do.commit("b commits before the sync", "two", two, b)
    parts = [SyncGroupRequestAssignment(a, b"for a"), SyncGroupRequestAssignment(b, b"for b")]
    answer = do.ask(5, SyncGroupRequest("two", two, a, parts, None, "consumer", "range"))
    do.note("a syncs for both", answer.error_code, bytes(answer.assignment))
    do.note("b is told", bytes(other.receive().assignment))
    do.described("described stable", "two")
    do.join("b joins again as it is", "two", b, protocols=("range", "extra"), metadata=subscription("t"))
    do.leave("both leave, and one who is not there", "two", (a, None), (b, None), ("who", None), (a, None))
    do.described("described empty", "two")


def static_members(do: Steps) -> None:
    first = do.join("static joins", "st", instance="i")
    do.sync("static syncs", "st", first.generation_id, first.member_id, b"one", instance="i")
    again = do.join("static comes back", "st", instance="i")
    do.described("static is described", "st")
    do.beat("old id beats", "st", again.generation_id, first.member_id, "i")
    do.beat("old id beats without its instance", "st", again.generation_id, first.member_id)
    do.commit("old id commits", "st", again.generation_id, first.member_id, instance="i")
    do.sync("old id syncs", "st", again.generation_id, first.member_id, instance="i")
    do.join("old id joins", "st", first.member_id, instance="i")
    do.leave("old id leaves", "st", (first.member_id, "i"))
    do.offsets_in(
        "old id commits in a transaction", "no", "st", (77, 0), again.generation_id, first.member_id, instance="i"
    )
    do.sync("new id syncs", "st", again.generation_id, again.member_id, instance="i")
    do.beat("new id beats", "st", again.generation_id, again.member_id, "i")
    do.beat("another instance beats", "st", again.generation_id, again.member_id, "j")
    do.commit("new id commits", "st", again.generation_id, again.member_id, instance="i")
    old = do.join("static comes back by v8", "st", instance="i", version=8)
    do.sync("v8 syncs", "st", old.generation_id, old.member_id, instance="i")
    changed = do.join("static comes back changed", "st", instance="i", metadata=subscription("t", "u"))
    do.described("changed is described", "st")
    do.sync("changed syncs", "st", changed.generation_id, changed.member_id, b"two", instance="i")
    do.leave("an operator removes it", "st", ("", "i"))
    do.described("nobody is left", "st")
    do.deleted("static group is deleted", "st")
