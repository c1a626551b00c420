"""Share groups: members, fetches, offsets."""

from __future__ import annotations

from .asking import UNKNOWN_ID
from .asks import Steps

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"


def nobody_s_share_group(do: Steps) -> None:
    do.create("sh", 1)
    do.share_described("share of nobody", "sg")
    do.share_beat("share beat of nobody", "sg", "m1", 3)
    do.share_beat("share leave of nobody", "sg", "m1", -1)
    do.share_beat("share no name", "", "m1", 0, "sh")
    do.share_beat("share no member", "sg", "", 0, "sh")
    do.share_beat("share no topics", "sg", "m1", 0)
    do.share_beat("share epoch -2", "sg", "m1", -2, "sh")
    do.share_fetch("share fetch of no name", "", "m1", 0, ("sh", 0))
    do.share_fetch("share fetch before it joined", "sg", MEMBER, 0, ("sh", 0))


def share_members(do: Steps) -> None:
    do.share_beat("share joins", "sg", MEMBER, 0, "sh")
    do.share_beat("share beats", "sg", MEMBER, 1)
    do.share_beat("share beats ahead", "sg", MEMBER, 9)
    do.share_beat("share stranger beats", "sg", "AAAAAAAAAAAAAAAAAAAAAw", 1)
    do.share_alter("share alters while it is read", "sg", "sh", 0, 0)
    do.share_forget("share forgets while it is read", "sg", "sh")
    do.deleted("share is in use", "sg")
    do.commit("share commits as a classic group", "sg")
    do.fetched("share fetches as a classic group", "sg", everything=True)
    do.join("share joined as a classic group", "sg")
    do.consumer_beat("share joined as a consumer group", "sg", "m2", 0, "t", held=(), rebalance_ms=1000)
    do.offset_delete("share offsets deleted as of a classic group", "sg", ("sh", 0))
    do.described("share described as a classic group", "sg")
    do.listed("share listed", types=["share"])


def share_fetches(do: Steps) -> None:
    do.share_fetch("share session that is not there", "sg", MEMBER, 1, ("sh", 0))
    do.share_fetch("share unknown topic", "sg", MEMBER, 0, ("sh", 0), topic_id=UNKNOWN_ID, wait_ms=10)
    do.share_fetch("share session begins", "sg", MEMBER, 0, ("sh", 0), wait_ms=10)
    do.produce("share data", do.init("share data init", None), 0, topic="sh", count=10)
    do.share_fetch("share acquires", "sg", MEMBER, 1, until=True)
    do.share_fetch("share wrong epoch", "sg", MEMBER, 90)
    do.share_ack("share acknowledges without a session", "sg", "AAAAAAAAAAAAAAAAAAAABQ", 4, "sh", 0, (0, 1, [1]))
    do.share_described("share described", "sg")
    do.share_beat("share leaves", "sg", MEMBER, -1)
    do.share_described("share is empty", "sg")


def share_offsets(do: Steps) -> None:
    do.share_offsets("share offsets of nobody", "none", ("sh", 0))
    do.share_offsets("share offsets of no topic", "sg", ("none", 0))
    do.share_offsets("share offsets of all of nobody", "none", everything=True)
    do.share_alter("share alters nobody", "none", "sh", 0, 3)
    do.share_alter("share alters no topic", "sg", "none", 0, 3)
    do.share_alter("share alters no partition", "sg", "sh", 9, 3)
    do.share_alter("share alters", "sg", "sh", 0, 3)
    do.share_offsets("share offsets", "sg", ("sh", 0))
    do.share_offsets("share offsets of all", "sg", everything=True)
    do.share_forget("share forgets nobody", "none", "sh")
    do.share_forget("share forgets no topic", "sg", "none")
    do.share_forget("share forgets", "sg", "sh")
    do.share_forget("share forgets again", "sg", "sh")
    do.share_offsets("share offsets after", "sg", everything=True)
    do.deleted("share is deleted", "sg", "sg-none")
    do.share_described("share after", "sg")


SHARE_GROUPS = (nobody_s_share_group, share_members, share_fetches, share_offsets)
