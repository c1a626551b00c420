"""The simulation's door: `logkernel.testing.simulate` and `logkernel simulate`, and what a failure says."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest

from logkernel.cli import main
from logkernel.contracts import Candidates, Elected, FollowerFacts
from logkernel.errors import PluginError
from logkernel.hookspecs import hookimpl
from logkernel.partition.producers import ProducerStates
from logkernel.testing import SimulationFailed, simulate
from logkernel.testing.simulation.shrink import shrink

SEEDS = 40
"""About a second and a half: a first look, in each run of the tests."""


class Nobody:
    def elect(self, candidates: Candidates) -> Elected | None:
        return None


class LastInSync:
    def elect(self, candidates: Candidates) -> Elected | None:
        isr = tuple(node for node in candidates.isr if node in candidates.alive)
        return Elected(isr[-1], isr) if isr else None


class Nothing:
    """Counts nobody in sync."""

    def is_in_sync(self, follower: FollowerFacts) -> bool:
        return False


class Moody:
    """Depends on chance, and errs at times."""

    def __init__(self) -> None:
        self.random = Random(0)

    def is_in_sync(self, follower: FollowerFacts) -> bool:
        draw = self.random.random()
        if draw < 0.1:
            raise RuntimeError("a bug of its author")
        return draw < 0.9


class Plugin:
    @hookimpl
    def logkernel_isr(self, name: str, settings: Mapping[str, Any]) -> Nothing | Moody | None:
        return {"nothing": Nothing, "moody": Moody}[name]() if name in ("nothing", "moody") else None

    @hookimpl
    def logkernel_election(self, name: str) -> Nobody | LastInSync | None:
        return {"nobody": Nobody(), "last": LastInSync()}.get(name)


def test_the_built_in_elections_keep_every_promise() -> None:
    report = simulate(SEEDS)
    assert report.histories == SEEDS
    assert report.rare["expanded"] > 0
    assert report.unseen == [], "only many seeds have to see every rare state"


def test_an_election_of_a_plugin_is_simulated() -> None:
    assert simulate(10, first=20, election="last", plugins=[Plugin()]).histories == 10
    with pytest.raises(PluginError):
        simulate(1, election="unheard of")


def test_isr_policies_keep_every_promise_the_built_in_ones_and_a_moody_one() -> None:
    """Whatever a policy says, and be it by chance: nothing that was acknowledged is lost."""
    few = {"replica.lag.max.messages": "2"}
    assert simulate(15, isr="messages", settings=few).rare["shrunk"] > simulate(15).rare["shrunk"]
    assert simulate(15, isr="moody", plugins=[Plugin()]).rare["shrunk"] > 0
    with pytest.raises(PluginError):
        simulate(1, isr="unheard of")


def test_an_isr_policy_that_counts_nobody_keeps_no_cluster_whole() -> None:
    with pytest.raises(SimulationFailed, match="healed, but not whole") as failed:
        simulate(1, isr="nothing", plugins=[Plugin()], settings={"replica.lag.max.messages": "7"})
    assert failed.value.command.endswith("--isr nothing --set replica.lag.max.messages=7")


def test_a_failure_names_its_seed_few_faults_and_the_command_that_replays_it() -> None:
    with pytest.raises(SimulationFailed, match="Replay it: logkernel simulate --replay ") as failed:
        simulate(1, election="nobody", plugins=[Plugin()])
    assert failed.value.what.startswith("healed, but not whole")
    assert failed.value.faults == (), "it needs none of them"
    assert f"--replay {failed.value.seed} --election nobody" in str(failed.value)
    assert failed.value.trace[-1].endswith(failed.value.what)


def test_time_ends_a_run() -> None:
    assert simulate(range(10**9), seconds=0.2).histories < 1_000


def test_the_command_counts_and_replays(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", "--seeds", "3", "--from", "7", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["histories"] == 3
    hashes = []
    for _ in range(2):
        assert main(["simulate", "--replay", "7", "--json"]) == 0
        hashes.append(json.loads(capsys.readouterr().out)["hash"])
    assert hashes[0] == hashes[1]


def test_the_command_fails_with_the_seed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ProducerStates, "check_append", lambda self, facts, guard=None: None)
    assert main(["simulate", "--seeds", "20", "--json"]) == 1
    failed = json.loads(capsys.readouterr().out)
    assert failed["replay"] == f"logkernel simulate --replay {failed['seed']}"
    assert 1 <= len(failed["faults"]) <= 3
    assert main(["simulate", "--replay", str(failed["seed"])]) == 1
    assert failed["what"] in capsys.readouterr().out


@pytest.mark.parametrize("needed", [set(), {3}, {3, 17}, {0, 1, 2}, {0, 50, 99}])
def test_shrinking_finds_what_is_needed(needed: set[int]) -> None:
    assert set(shrink(range(100), needed.issubset, 1_000)) == needed


def test_shrinking_ends_after_so_many_tries() -> None:
    tries = []

    def fails(part: tuple[int, ...]) -> bool:
        tries.append(part)
        return {3, 17, 40}.issubset(part)

    assert fails(shrink(range(100), fails, 10))
    assert len(tries) <= 13
