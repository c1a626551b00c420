"""What a plugin decides is carried out only where it is allowed."""

from __future__ import annotations

import pytest

import logkernel
from logkernel.contracts import Candidates, DropBefore, Elected, FollowerFacts, GroupFacts, LogFacts, Rewrite
from logkernel.errors import PluginError
from logkernel.guards.cleanup import judged_plan
from logkernel.guards.election import judged_election
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.vocabulary import SegmentFacts


class Rule:
    def learn(self, batch):
        return None

    def keep(self, batch, end):
        return None


FACTS = LogFacts("t", 0, (SegmentFacts(0, 10, 100, 1, False), SegmentFacts(10, 15, 50, 1, True)), 0, 12, 1_000, {})


@pytest.mark.parametrize(
    "plan",
    [
        [],
        (DropBefore(0, "r"), DropBefore(12, "up to the watermark")),
        [Rewrite(0, 10, Rule(), "all closed segments"), Rewrite(10, 10, Rule(), "nothing")],
    ],
)
def test_a_plan_of_what_may_go_stands(plan):
    assert judged_plan("mine", FACTS, plan) == list(plan)


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
        judged_plan("mine", FACTS, plan)
    assert "cleanup policy mine planned" in str(refused.value)
    assert said in str(refused.value)


CANDIDATES = Candidates((1, 2, 3), (1, 2), frozenset({2, 3}))


@pytest.mark.parametrize("elected", [None, Elected(2, (2,)), Elected(3, (3,), clean=False)])
def test_a_live_replica_may_be_elected(elected):
    assert judged_election("mine", CANDIDATES, elected) is elected


@pytest.mark.parametrize(
    ("elected", "said"),
    [
        (Elected(1, (1,)), "no live replica"),
        (Elected(4, (4,), clean=False), "no live replica"),
        (Elected(2, (3,)), "must hold the leader"),
        (Elected(2, (2, 4)), "replicas alone"),
        (Elected(3, (3,)), "called clean, though it was not in sync"),
        (2, "returned 2; return Elected or None"),
    ],
)
def test_an_election_that_cannot_be_is_refused_by_name(elected, said):
    with pytest.raises(PluginError) as refused:
        judged_election("mine", CANDIDATES, elected)
    assert "election mine" in str(refused.value)
    assert said in str(refused.value)


class Rotten:
    """A plugin whose objects are wrong in every way."""

    name = "rotten"

    def plan(self, log):
        return [DropBefore(10**9, "everything")]

    def elect(self, candidates):
        raise RuntimeError("a bug of its author")

    def assign(self, group):
        return "all of it to me"

    def is_in_sync(self, follower):
        return "perhaps"

    @hookimpl
    def logkernel_cleanup(self, name):
        return self if name == "rotten" else None

    logkernel_election = hookimpl(lambda self, name: self if name == "rotten" else None, specname="logkernel_election")
    logkernel_isr = hookimpl(lambda self, name, settings: self if name == "rotten" else None, specname="logkernel_isr")
    logkernel_assignor = hookimpl(lambda self, name: self if name == "rotten" else None, specname="logkernel_assignor")


def test_what_the_kernel_hands_out_is_guarded_and_its_faults_are_kept():
    kernel = Kernel(plugins=[Rotten()])
    with pytest.raises(PluginError, match="DropBefore"):
        kernel.cleanup("rotten", {}).plan(FACTS)
    with pytest.raises(PluginError, match="a bug of its author; the partition has no leader"):
        kernel.election("rotten", {}).elect(CANDIDATES)
    with pytest.raises(PluginError, match="return a mapping"):
        kernel.assignor("rotten").assign(GroupFacts({}, {}))
    with pytest.raises(PluginError, match="'perhaps'; return True or False"):
        kernel.isr("rotten", {}).is_in_sync(FollowerFacts(2, True, 0, 0, 0, 1000))
    assert [fault.place for fault in kernel.faults] == [
        "cleanup policy rotten", "election rotten", "assignor rotten", "ISR policy rotten"
    ]  # fmt: skip
    assert {(fault.origin.distribution, fault.origin.file) for fault in kernel.faults} == {("", __file__)}


class Clumsy:
    def partition(self, key, value, partitions, available):
        return len(key)

    def on_batch_full(self, partition):
        raise ValueError("no more")

    @hookimpl
    def logkernel_partitioner(self, name, settings, seed):
        return self if name == "clumsy" else None

    @hookimpl
    def logkernel_names(self):
        return [("partitioner", "clumsy")]


def test_a_partitioner_that_raises_is_named():
    """Its traceback named no plugin."""
    partitioner = Kernel(plugins=[Clumsy()]).partitioner("clumsy", {}, 0)
    assert partitioner.partition(b"ab", None, 3, [0]) == 2
    named = f"^plugin 'Clumsy' in {__file__!r} failed in partitioner clumsy: "
    with pytest.raises(PluginError, match=f"{named}TypeError: object of type 'NoneType' has no len.*; the record is"):
        partitioner.partition(None, None, 3, [0])
    with pytest.raises(PluginError, match=f"{named}ValueError: no more; "):
        partitioner.on_batch_full(1)


def test_a_producer_and_a_log_say_which_partitioner_raised():
    with logkernel.open(plugins=[Clumsy()]) as log:
        log.create_topic("orders", partitioner="clumsy")
        with (
            log.producer() as producer,
            pytest.raises(PluginError, match=r"'Clumsy' .* failed in partitioner clumsy: "),
        ):
            producer.send("orders", b"1")
        with pytest.raises(PluginError, match=r"'Clumsy' .* failed in partitioner clumsy: "):
            log.append("orders", b"1")
