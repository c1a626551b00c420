"""Offsets of those who are in no group."""

from __future__ import annotations

from .asking import UNKNOWN_ID
from .asks import Steps


def commits(do: Steps) -> None:
    for version in (2, 5, 8, 9):
        do.commit(f"commit simple v{version}", "s", version=version, offset=version)
    do.commit("commit simple v10", "s", version=10, offset=10)
    do.commit("commit no topic", "s", topic="none")
    do.commit("commit no topic id", "s", version=10, topic_id=UNKNOWN_ID)
    do.commit("commit no partition", "s", partition=9)
    do.commit("commit negative partition", "s", partition=-1)
    do.commit("commit negative offset", "s", offset=-5, partition=1)
    do.commit("commit long metadata", "s", metadata="x" * 4097)
    do.commit("commit just metadata", "s", metadata="x" * 4096, partition=2)
    do.commit("commit no metadata", "s", metadata=None, partition=3)
    do.commit("commit member of simple", "s", member="who")
    do.commit("commit member and generation of simple", "s", 1, "who")
    do.commit("commit instance of simple", "s", instance="i")
    do.commit("commit generation of nothing", "nothing", 1, "who")
    do.commit("commit generation of nothing v8", "nothing", 1, "who", version=8)
    do.commit("commit member of nothing", "nothing2", -1, "who")
    do.commit("commit instance of nothing", "nothing3", -1, "", instance="i")
    do.commit("commit no name", "")
    do.commit("commit generation -2", "s", -2)
    do.commit("commit generation 0", "s", 0)


def fetches(do: Steps) -> None:
    for version in (1, 2, 7, 8, 9, 10):
        do.fetched(f"fetch v{version}", "s", ("t", 0), version=version)
    do.fetched("fetch all", "s", everything=True)
    do.fetched("fetch all v2", "s", everything=True, version=2)
    do.fetched("fetch all v10", "s", everything=True, version=10)
    do.fetched("fetch nothing", "s")
    do.fetched("fetch unknown partition", "s", ("t", 77))
    do.fetched("fetch unknown topic", "s", ("none", 0))
    do.fetched("fetch unknown topic id", "s", ("none", 0), version=10)
    do.fetched("fetch of nobody", "never", ("t", 0))
    do.fetched("fetch of nobody v1", "never", ("t", 0), version=1)
    do.fetched("fetch all of nobody", "never", everything=True)
    do.fetched("fetch of no name", "", ("t", 0))
    do.fetched("fetch with a member", "s", ("t", 0), member="who", epoch=3)


def descriptions(do: Steps) -> None:
    do.described("describe simple", "s")
    do.described("describe simple v5", "s", version=5)
    do.described("describe nobody", "never")
    do.described("describe nobody v5", "never", version=5)
    do.described("describe no name", "")
    do.listed("list")
    do.listed("list v3", version=3)
    do.listed("list empty", states=["empty"])
    do.listed("list stable", states=["Stable"])
    do.listed("list unknown state", states=["Nonsense"])
    do.listed("list classic", types=["Classic"])
    do.listed("list unknown type", types=["nonsense"])


def calls_of_members(do: Steps) -> None:
    """Of those who are none."""
    do.beat("beat simple", "s", 1, "who")
    do.sync("sync simple", "s", 1, "who")
    do.leave("leave simple", "s", ("who", None))
    do.leave("leave nobody", "never", ("who", None))
    do.leave("leave nobody v2", "never", ("who", None), version=2)
    do.leave("leave simple v2", "s", ("who", None), version=2)
    do.leave("leave no name", "", ("who", None))
    do.beat("beat nobody", "never", 1, "who")
    do.beat("beat no name", "", 1, "who")
    do.sync("sync nobody", "never", 1, "who")
    do.sync("sync no name", "", 1, "who")


def deletions(do: Steps) -> None:
    do.offset_delete("delete offset", "s", ("t", 2), ("t", 9), ("none", 0))
    do.offset_delete("delete offset again", "s", ("t", 2))
    do.offset_delete("delete offset of nobody", "never", ("t", 0))
    do.offset_delete("delete offset of no name", "", ("t", 0))
    do.fetched("fetch after delete", "s", everything=True)
    do.deleted("delete groups", "s", "never", "")
    do.deleted("delete twice named", "never", "never")
    do.described("describe deleted", "s")
    do.fetched("fetch deleted", "s", everything=True)
    do.listed("list after", types=["classic"])


OFFSETS = (commits, fetches, descriptions, calls_of_members, deletions)
