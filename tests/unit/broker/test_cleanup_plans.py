"""No plan of a cleanup policy is carried out that takes what may not go."""

from __future__ import annotations

import pytest

from logkernel.broker.cleanup_plans import judge
from logkernel.contracts import DropBefore, LogFacts, Rewrite
from logkernel.errors import PluginError
from logkernel.vocabulary import SegmentFacts


class Rule:
    def learn(self, batch):
        return None

    def keep(self, batch, end):
        return None


FACTS = LogFacts(
    "t", 0, (SegmentFacts(0, 10, 100, 1, False), SegmentFacts(10, 15, 50, 1, True)), 0, 12, 1_000, {}
)


@pytest.mark.parametrize(
    "plan",
    [
        [],
        (DropBefore(0, "r"), DropBefore(12, "up to the watermark")),
        [Rewrite(0, 10, Rule(), "all closed segments"), Rewrite(10, 10, Rule(), "nothing")],
    ],
)
def test_a_plan_of_what_may_go_stands(plan):
    assert judge("mine", FACTS, plan) == list(plan)


@pytest.mark.parametrize(
    ("plan", "said"),
    [
        ([DropBefore(13, "r")], "below the high watermark 12 may go"),
        ([DropBefore(10**9, "r")], "DropBefore(1000000000) for t-0"),
        ([DropBefore(-1, "r")], "no offset"),
        ([DropBefore("9", "r")], "no offset"),
        ([DropBefore(True, "r")], "no offset"),
        ([Rewrite(0, 11, Rule(), "r")], "the active one begins at 10"),
        ([Rewrite(5, 4, Rule(), "r")], "no range of offsets"),
        ([Rewrite(-1, 4, Rule(), "r")], "no range of offsets"),
        ([Rewrite(0, 10, object(), "r")], "lacks learn() or keep()"),
        ([DropBefore(1, "fine"), "drop it all"], "neither DropBefore nor Rewrite"),
        (None, "planned None"),
        (7, "planned 7"),
    ],
)
def test_nonsense_is_refused_by_name(plan, said):
    with pytest.raises(PluginError) as refused:
        judge("mine", FACTS, plan)
    assert "cleanup policy mine planned" in str(refused.value)
    assert said in str(refused.value)
