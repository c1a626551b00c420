"""Transactions of clients whose partitions are added by what they write, and whose every end bumps the epoch."""

from __future__ import annotations

from .asks import Producer, Steps

NAME = "two"


def transactions_v2(do: Steps) -> None:
    do.create("v2", 2)
    who = do.init("2 init", NAME)
    do.end("2 commits nothing", NAME, who, True)
    who = do.end("2 aborts nothing", NAME, who, False)
    do.settled(NAME)
    do.transaction("2 aborted nothing", NAME)
    writes(do, who)
    offsets(do, who)
    aborts(do, commits(do, who))
    fenced(do, mixes(do))


def writes(do: Steps, who: Producer) -> None:
    do.produce("2 writes", who, 0, transactional_id=NAME, topic="v2")
    do.produce("2 writes more", who, 1, transactional_id=NAME, topic="v2")
    do.produce("2 begins badly", who, 5, transactional_id=NAME, topic="v2", partition=1)
    do.produce("2 writes as another", who, 0, transactional_id="other", topic="v2", partition=1)
    do.produce("2 writes as one who is known", who, 0, transactional_id="one", topic="v2", partition=1)
    do.produce("2 writes with an old epoch", (who[0], who[1] - 1), 0, transactional_id=NAME, topic="v2", partition=1)
    do.produce("2 writes with a coming epoch", (who[0], who[1] + 1), 0, transactional_id=NAME, topic="v2", partition=1)
    do.transaction("2 is ongoing", NAME)


def offsets(do: Steps, who: Producer) -> None:
    do.offsets_in("2 commits offsets", NAME, "g2", who)
    do.offsets_in("2 commits offsets as a stranger", "stranger", "g2b", who)
    do.offsets_in("2 commits offsets with an old epoch", NAME, "g2b", (who[0], who[1] - 1))
    do.offsets_in("2 commits offsets with a coming epoch", NAME, "g2b", (who[0], who[1] + 1))
    do.offsets_in("2 commits offsets of no topic", NAME, "g2", who, topic="none")
    do.offsets_in("2 commits offsets of no partition", NAME, "g2", who, partition=77)
    do.offsets_in("2 commits with a generation of nobody", NAME, "g2", who, 3, "who")


def commits(do: Steps, who: Producer) -> Producer:
    """Gives who goes on."""
    nxt = do.end("2 commits", NAME, who, True)
    do.settled(NAME)
    do.transaction("2 is complete", NAME)
    do.end("2 commits again", NAME, who, True)
    do.end("2 aborts what is committed", NAME, who, False)
    do.produce("2 writes late", who, 2, transactional_id=NAME, topic="v2")
    do.produce("2 repeats late", who, 1, transactional_id=NAME, topic="v2")
    do.end("2 commits nothing again", NAME, nxt, True)
    do.fetched("2 offsets are seen", "g2", ("t", 0), stable=True)
    return nxt


def aborts(do: Steps, who: Producer) -> None:
    do.produce("2 writes the next", who, 0, transactional_id=NAME, topic="v2")
    third = do.end("2 aborts", NAME, who, False)
    do.settled(NAME)
    do.end("2 aborts again", NAME, who, False)
    do.end("2 commits what is aborted", NAME, who, True)
    do.end("2 aborts nothing in between", NAME, third, False)
    do.aborted("2 abort is told", "v2", 0)


def mixes(do: Steps) -> Producer:
    """One who speaks as an old client in between; gives who goes on."""
    who = do.init("2 begins anew", NAME)
    do.produce("2 writes before it mixes", who, 0, transactional_id=NAME, topic="v2")
    do.add("2 adds as an old client", NAME, who, ("v2", 1))
    do.produce("2 writes as an old client", who, 0, transactional_id=NAME, topic="v2", partition=1, version=11)
    do.end("2 ends as an old client", NAME, who, True, 4)
    do.settled(NAME)
    do.transaction("2 ended as an old client", NAME)
    do.add("2 adds the next as an old client", NAME, who, ("v2", 1))
    do.produce("2 writes the next as an old client", who, 1, transactional_id=NAME, topic="v2", partition=1, version=11)
    after = do.end("2 ends as a new client", NAME, who, True)
    do.settled(NAME)
    do.transaction("2 ended as a new client", NAME)
    do.end("2 ends again as an old client", NAME, who, True, 4)
    do.produce("2 goes on", after, 0, transactional_id=NAME, topic="v2")
    return after


def fenced(do: Steps, after: Producer) -> None:
    do.init("2 successor asks at once", NAME, patient=False)
    do.init("2 successor", NAME)
    do.end("2 is fenced when it ends", NAME, after, True)
    do.produce("2 is fenced when it writes", after, 1, transactional_id=NAME, topic="v2")
    do.offsets_in("2 is fenced when it commits offsets", NAME, "g2", after)
    do.init("2 is fenced when it begins anew", NAME, after)
    do.producers_of("2 producers", "v2", 0)
    do.ends("2 lets readers pass", "v2", 0)
