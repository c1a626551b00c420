"""Transactions of clients that add partitions themselves."""

from __future__ import annotations

from .asks import Producer, Steps

NAME = "one"


def transactions_v1(do: Steps) -> None:
    do.create("v1", 2)
    who = do.init("1 init", NAME)
    empty(do, who)
    adds(do, who)
    ongoing(do, who)
    offsets(do, who)
    ends(do, who)
    complete(do, who)
    aborts(do, who)
    fenced(do, who)


def empty(do: Steps, who: Producer) -> None:
    do.transaction("1 is empty", NAME)
    do.end("1 commits nothing", NAME, who, True, 4)
    do.end("1 aborts nothing", NAME, who, False, 4)
    do.produce("1 writes what it did not add", who, 0, transactional_id=NAME, topic="v1", version=11)
    do.produce("1 writes what it did not add by v9", who, 0, transactional_id=NAME, topic="v1", version=9)
    do.produce("1 writes with another id", who, 0, transactional_id="other", topic="v1", version=11)


def adds(do: Steps, who: Producer) -> None:
    do.add("1 adds no topic", NAME, who, ("none", 0))
    do.add("1 adds no partition", NAME, who, ("v1", 7))
    do.add("1 adds a good and a bad one", NAME, who, ("v1", 0), ("none", 0))
    do.add("1 adds an internal topic", NAME, who, ("__consumer_offsets", 0))
    do.add("1 adds nothing", NAME, who)
    do.add("1 adds by no name", "", who, ("v1", 0))
    do.add("1 adds as a stranger", "stranger", who, ("v1", 0))
    do.add("1 adds as another", NAME, (who[0] + 100_000, who[1]), ("v1", 0))
    do.add("1 adds with an old epoch", NAME, (who[0], who[1] - 1), ("v1", 0))
    do.add("1 adds with a coming epoch", NAME, (who[0], who[1] + 1), ("v1", 0))
    do.add("1 adds with a coming epoch v1", NAME, (who[0], who[1] + 1), ("v1", 0), version=1)
    do.transaction("1 is empty still", NAME)


def ongoing(do: Steps, who: Producer) -> None:
    do.add("1 adds", NAME, who, ("v1", 0))
    do.add("1 adds again", NAME, who, ("v1", 0))
    do.transaction("1 is ongoing", NAME)
    do.produce("1 writes", who, 0, transactional_id=NAME, topic="v1", version=11)
    do.produce("1 repeats", who, 0, transactional_id=NAME, topic="v1", version=11)
    do.produce("1 writes elsewhere", who, 0, transactional_id=NAME, topic="v1", partition=1, version=11)
    do.produce("1 writes plainly", who, 1, topic="v1", version=11)
    do.ends("1 holds readers", "v1", 0)
    do.producers_of("1 is seen", "v1", 0)
    do.add("1 verified", NAME, who, ("v1", 0), version=4, verify=True)
    do.add("1 not verified", NAME, who, ("v1", 1), version=4, verify=True)


def offsets(do: Steps, who: Producer) -> None:
    do.add_offsets("1 adds offsets as a stranger", "stranger", who, "g1")
    do.add_offsets("1 adds offsets with an old epoch", NAME, (who[0], who[1] - 1), "g1")
    do.add_offsets("1 adds offsets of no name", NAME, who, "")
    do.offsets_in("1 commits what it did not add", NAME, "g1", who, version=4)
    do.add_offsets("1 adds offsets", NAME, who, "g1")
    do.offsets_in("1 commits offsets", NAME, "g1", who, version=3)
    do.offsets_in("1 commits offsets of no topic", NAME, "g1", who, topic="none", version=3)
    do.offsets_in("1 commits offsets of no group", NAME, "", who, version=3)
    do.offsets_in("1 commits with a generation of nobody", NAME, "g1", who, 3, "who", version=3)
    do.offsets_in("1 commits with a member of nobody", NAME, "g1", who, -1, "who", version=3)
    do.fetched("1 offsets are not seen", "g1", ("t", 0))
    do.fetched("1 offsets are unstable", "g1", ("t", 0), stable=True)
    do.fetched("1 all offsets are unstable", "g1", everything=True, stable=True)
    do.listed("1 group is listed", types=["classic"], states=["empty"])
    do.transactions("1 is listed", state_filters=["Ongoing"])


def ends(do: Steps, who: Producer) -> None:
    do.end("1 ends as a stranger", "stranger", who, True, 4)
    do.end("1 ends as another", NAME, (who[0] + 100_000, who[1]), True, 4)
    do.end("1 ends with an old epoch", NAME, (who[0], who[1] - 1), True, 4)
    do.end("1 ends with a coming epoch", NAME, (who[0], who[1] + 1), True, 4)
    do.end("1 ends with a coming epoch v1", NAME, (who[0], who[1] + 1), True, 1)
    do.end("1 commits", NAME, who, True, 4)
    do.settled(NAME)


def complete(do: Steps, who: Producer) -> None:
    do.end("1 commits again", NAME, who, True, 4)
    do.end("1 aborts what is committed", NAME, who, False, 4)
    do.transaction("1 is complete", NAME)
    do.fetched("1 offsets are seen", "g1", ("t", 0), stable=True)
    do.ends("1 lets readers pass", "v1", 0)
    do.produce("1 writes when it is over", who, 1, transactional_id=NAME, topic="v1", version=11)


def aborts(do: Steps, who: Producer) -> None:
    do.add("1 adds for the next", NAME, who, ("v1", 0))
    do.produce("1 writes the next", who, 1, transactional_id=NAME, topic="v1", version=11)
    do.end("1 aborts", NAME, who, False, 4)
    do.settled(NAME)
    do.end("1 aborts again", NAME, who, False, 4)
    do.end("1 commits what is aborted", NAME, who, True, 4)
    do.aborted("1 abort is told", "v1", 0)


def fenced(do: Steps, who: Producer) -> None:
    """A successor takes the transaction back, and whoever had it is told so."""
    do.add("1 adds for the third", NAME, who, ("v1", 0))
    do.produce("1 writes the third", who, 2, transactional_id=NAME, topic="v1", version=11)
    do.init("1 successor asks at once", NAME, patient=False)
    heir = do.init("1 successor", NAME)
    do.transaction("1 successor is empty", NAME)
    do.produce("1 is fenced when it writes", who, 3, transactional_id=NAME, topic="v1", version=11)
    do.add("1 is fenced when it adds", NAME, who, ("v1", 0))
    do.add("1 is fenced when it adds by v1", NAME, who, ("v1", 0), version=1)
    do.add_offsets("1 is fenced when it adds offsets", NAME, who, "g1")
    do.offsets_in("1 is fenced when it commits offsets", NAME, "g1", who, version=3)
    do.end("1 is fenced when it ends", NAME, who, True, 4)
    do.end("1 is fenced when it ends by v1", NAME, who, True, 1)
    do.init("1 is fenced when it begins anew", NAME, who)
    do.init("1 is fenced when it begins anew by v3", NAME, who, version=3)
    do.aborted("1 successor aborted it", "v1", 0)
    do.ends("1 lets readers pass again", "v1", 0)
    do.init("1 successor goes on", NAME, heir)
