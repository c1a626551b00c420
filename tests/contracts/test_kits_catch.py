"""Each contract kit can fail: for every promise there is a wrong plugin that its test catches, in plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from wrong_plugins import Wrong

from logkernel.hookspecs import KINDS
from logkernel.kernel import Kernel
from logkernel.testing import contracts
from logkernel.testing.contracts import ContractBroken, Kit, PartitionerContract, kits

KITS: dict[str, type[Kit[Any]]] = {kit.__module__.rpartition(".")[2]: kit for kit in kits().values()}
WITHOUT_KIT = {"connector"}
"""Kinds of plugins without a kit."""


def rows() -> Iterator[Any]:
    for home in ["kit", *KITS]:
        for number, wrong in enumerate(wrongs(home)):
            yield pytest.param(KITS.get(home, PartitionerContract), wrong, id=f"{home}-{number}-{wrong.breaks[5:]}")


def wrongs(home: str) -> list[Wrong]:
    found: list[Wrong] = import_module(f"wrong_plugins.{home}").WRONG
    return found


def promises(kit: type[Kit[Any]]) -> set[str]:
    return {name for name in vars(kit) if name.startswith("test_")}


def told(error: BaseException) -> str:
    """All that an error says, also as the reason of another."""
    inner = filter(None, [error.__cause__, error.__context__])
    return "\n".join([str(error), *map(told, inner)])


@pytest.mark.parametrize(("kit", "wrong"), list(rows()))
def test_a_wrong_plugin_is_caught(kit: type[Kit[Any]], wrong: Wrong) -> None:
    suite = type("Suite", (kit,), {"quick": True, **wrong.suite})()
    with pytest.raises(ContractBroken) as caught:
        getattr(suite, wrong.breaks)()
    assert re.search(wrong.says, told(caught.value)), told(caught.value)


@pytest.mark.parametrize("home", ["kit", *KITS])
def test_every_promise_has_a_plugin_that_breaks_it(home: str) -> None:
    kit = KITS.get(home, Kit)
    assert promises(kit) == {wrong.breaks for wrong in wrongs(home)}
    assert promises(kit)


def test_every_kind_of_plugins_has_a_kit() -> None:
    assert set(kits()) | WITHOUT_KIT == set(KINDS)
    assert not set(kits()) & WITHOUT_KIT


def test_a_suite_without_a_plugin_says_so() -> None:
    class Empty(PartitionerContract):
        """Neither a name nor an object."""

    with pytest.raises(TypeError, match="Empty tests nothing; set `name`, or override `make`"):
        Empty().make()


def test_a_suite_takes_plugins_that_are_not_installed() -> None:
    from logkernel.hookspecs import hookimpl

    class Plugin:
        @hookimpl
        def logkernel_partitioner(self, name: str) -> object:
            return Kernel().partitioner("keyed", {}, 1) if name == "mine" else None

        @hookimpl
        def logkernel_names(self) -> list[tuple[str, str]]:
            return [("partitioner", "mine")]

    class Mine(PartitionerContract):
        name = "mine"
        plugins = (Plugin(),)

    suite = Mine()
    for promise in promises(Kit):
        getattr(suite, promise)()
    assert suite.kernel.names("partitioner").count("mine") == 1


def test_what_breaks_now_and_then_is_told_as_such() -> None:
    class Moody:
        """Its first answer is wrong."""

        asked = 0

        def partition(self, *facts: Any) -> int:
            Moody.asked += 1
            return -1 if Moody.asked == 1 else 0

        def on_batch_full(self, partition: int) -> None:
            """Nothing sticks here."""

    class Suite(PartitionerContract):
        def make(self) -> Any:
            return Moody()

    with pytest.raises(ContractBroken, match=r"partition\(\) returned -1") as caught:
        Suite().test_every_answer_is_a_partition_of_the_topic()
    assert "depends on chance, time or earlier calls" in "".join(caught.value.__notes__)


def test_what_the_kits_need_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contracts, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"need pytest and hypothesis; pip install 'logkernel\[kits\]'"):
        contracts.CodecContract  # noqa: B018
