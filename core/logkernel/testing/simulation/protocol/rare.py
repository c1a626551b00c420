"""States that a run of many seeds has to reach: one that stays at zero means that nothing looks there any more."""

from __future__ import annotations

from typing import Final

RARE: Final = (
    # followers
    "diverging", "full truncation", "restarted empty", "out of range", "answer to an older fetch",
    # leaders
    "fenced fetch", "unknown epoch", "zombie write", "duplicate", "too few in sync", "torn leader",
    # in-sync replicas
    "expanded", "shrunk", "proposal repeated", "reverted proposal", "refusal of an older attempt", "stuck proposal",
    "proposal of an earlier life",
    # the controller
    "controller loaded", "controller died", "answer to a commit lost", "changed while nobody was controller",
    "offline partition", "unclean election",
    # brokers
    "session lost", "bounced", "clock jumped", "order for an earlier life", "order of an earlier controller",
    "older order",
    # network and clients
    "overtaken", "another life of a producer", "lawful loss",
)  # fmt: skip
ENOUGH: Final = 1_000
"""Seeds of which each state has to be seen; the rarest is seen about 40 times in them."""
