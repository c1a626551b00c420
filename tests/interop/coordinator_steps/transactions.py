"""Transactions that take too long, and those that commit offsets of a group's members."""

from __future__ import annotations

import time

from logkernel.requests.transactions import (
    DescribeTransactionsRequest,
)

from .asking import PATIENCE_S
from .asks import Steps


def timeouts(do: Steps) -> None:
    """What a producer is told whose transaction took too long."""
    do.create("late", 1)

    def timed_out(name: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while do.ask(0, DescribeTransactionsRequest([name])).transaction_states[0].transaction_state != "CompleteAbort":
            assert time.monotonic() < deadline, name
            time.sleep(0.05)

    old = do.init("late init old", "late-old", timeout_ms=2_000)
    do.add("late adds old", "late-old", old, ("late", 0))
    do.produce("late writes old", old, 0, transactional_id="late-old", topic="late", version=11)
    timed_out("late-old")
    do.transaction("late old", "late-old")
    do.produce("late writes more old", old, 1, transactional_id="late-old", topic="late", version=11)
    do.add("late adds more old", "late-old", old, ("late", 0))
    do.end("late commits old", "late-old", old, True, 4)
    do.end("late aborts old", "late-old", old, False, 4)
    do.init("late goes on old", "late-old", old, timeout_ms=2_000)
    for how in ("commits", "aborts", "writes", "goes on"):
        name = f"late-{how}"
        new = do.init(f"late init who {how}", name, timeout_ms=2_000)
        do.produce(f"late writes who {how}", new, 0, transactional_id=name, topic="late")
        timed_out(name)
        do.transaction(f"late who {how}", name)
        if how == "writes":
            do.produce("late writes more", new, 1, transactional_id=name, topic="late")
            do.offsets_in("late commits offsets", name, "g-late", new)
        elif how == "goes on":
            do.init("late goes on", name, new, timeout_ms=2_000)
        else:
            do.end(f"late {how}", name, new, how == "commits")
    do.ends("late lets readers pass", "late", 0)


def classic_member_in_transactions(do: Steps) -> None:
    who = do.init("m init", "m")
    first = do.join("m joins", "gm", do.join("m asks", "gm").member_id)
    do.offsets_in("m commits before it is assigned", "m", "gm", who, first.generation_id, first.member_id)
    do.sync("m syncs", "gm", first.generation_id, first.member_id, b"all")
    do.offsets_in("m commits", "m", "gm", who, first.generation_id, first.member_id)
    do.offsets_in("m commits with an old generation", "m", "gm", who, first.generation_id - 1, first.member_id)
    do.offsets_in("m commits as another", "m", "gm", who, first.generation_id, "who")
    do.offsets_in("m commits as nobody", "m", "gm", who)
    do.offsets_in("m commits with no generation", "m", "gm", who, -1, first.member_id)
    do.offsets_in("m commits as an instance", "m", "gm", who, first.generation_id, first.member_id, instance="i")
    do.deleted("m group is in use", "gm")
    do.leave("m leaves", "gm", (first.member_id, None))
    do.offsets_in("m commits when it has left", "m", "gm", who, first.generation_id, first.member_id)
    do.fetched("m offset waits", "gm", ("t", 0), stable=True)
    do.deleted("m group with an open transaction is deleted", "gm")
    do.fetched("m offset is gone", "gm", ("t", 0), stable=True)
    do.end("m commits the transaction", "m", who, True)
    do.settled("m")
    do.fetched("m offset stays gone", "gm", ("t", 0), stable=True)


def new_member_in_transactions(do: Steps) -> None:
    who = do.init("n init", "n")
    epoch = do.consumer_beat("n joins", "gn", "member-n", 0, "t", held=(), rebalance_ms=10_000)
    do.offsets_in("n commits", "n", "gn", who, epoch, "member-n")
    do.offsets_in("n commits with a stale epoch", "n", "gn", who, epoch - 1, "member-n")
    do.offsets_in("n commits with a coming epoch", "n", "gn", who, epoch + 1, "member-n")
    do.offsets_in("n commits as another", "n", "gn", who, epoch, "who")
    do.offsets_in("n commits as nobody", "n", "gn", who)
    do.commit("n commits plainly with a stale epoch", "gn", epoch - 1, "member-n")
    do.commit("n commits plainly with a stale epoch v8", "gn", epoch - 1, "member-n", version=8)
    do.commit("n commits plainly with a coming epoch", "gn", epoch + 1, "member-n")
    do.commit("n commits plainly as nobody", "gn")
    do.commit("n commits plainly as another", "gn", epoch, "who")
    do.offset_delete("n deletes what is read", "gn", ("t", 0))
    do.offset_delete("n deletes what is not read", "gn", ("u", 0))
    do.deleted("n group is in use", "gn")
    do.consumer_beat("n leaves", "gn", "member-n", -1)
    do.end("n aborts the transaction", "n", who, False)
    do.settled("n")
    do.fetched("n offset is not there", "gn", ("t", 0), stable=True)
    do.commit("n commits into what is empty", "gn")
    do.deleted("n group is deleted", "gn")
