"""A plugin's strategy says which record of a key stays; a wrong one leaves the log as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from logkernel.broker.build import build
from logkernel.contracts import BatchView
from logkernel.embed import EmbeddedLog
from logkernel.errors import InvalidConfig, PluginError
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel


class Plugin:
    def __init__(self, versions: Callable[[BatchView], Any] | None = None) -> None:
        self.given = versions
        self.settings: list[Any] = []

    @hookimpl
    def logkernel_compaction_strategy(self, name: str, settings: Mapping[str, Any]) -> object:
        if name != "longest":
            return None
        self.settings.append(settings.get("compaction.strategy"))
        return self

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("compaction strategy", "longest")]

    def versions(self, batch: BatchView) -> Any:
        if self.given is not None:
            return self.given(batch)
        return [len(record.value or b"") for record in batch.records()]


def opened(plugin: Plugin) -> EmbeddedLog:
    settings = ["log.cleaner.enable=false"]
    log = EmbeddedLog(build(None, settings, in_memory=True, kernel=Kernel(plugins=[plugin])))
    log.create_topic("t", config={"cleanup.policy": "compact", "compaction.strategy": "longest"})
    for value in (b"ab", b"abc", b"", b"a"):
        log.append("t", value, key=b"k")
    return log


def values(log: EmbeddedLog) -> list[bytes | None]:
    return [record.value for record in log.read("t")]


def test_the_record_that_it_ranks_highest_stays() -> None:
    plugin = Plugin()
    with opened(plugin) as log:
        log.compact("t")
        assert values(log) == [b"abc"]
        log.append("t", b"xy", key=b"k")
        log.append("t", b"xyz", key=b"k")
        log.compact("t")
        assert values(log) == [b"xyz"], "the last of equal ones; an old record beat the first new one"
        assert plugin.settings == ["longest", "longest"], "asked once for each rewrite"


@pytest.mark.parametrize(
    ("versions", "said"),
    [
        (lambda batch: 1 // 0, "failed in compaction strategy longest: ZeroDivisionError"),
        (lambda batch: [1] * (batch.count + 1), "returned 2 versions for the 1 records from offset 0"),
        (lambda batch: [2**63], "failed in compaction strategy longest: OverflowError"),
        (lambda batch: None, "failed in compaction strategy longest: TypeError"),
        (lambda batch: b"1234", "returned 0.5 versions for the 1 records"),
    ],
)
def test_one_that_fails_leaves_the_log_as_it_is(versions: Callable[[BatchView], Any], said: str) -> None:
    with opened(Plugin(versions)) as log:
        with pytest.raises(PluginError, match=said) as failed:
            log.compact("t")
        assert f"plugin 'Plugin' in {__file__!r}" in str(failed.value)
        assert values(log) == [b"ab", b"abc", b"", b"a"]
        assert [str(name) for name in log.broker.cleaner.uncleanable] == ["t-0"]


def test_a_topic_names_one_that_is_installed() -> None:
    with opened(Plugin()) as log, pytest.raises(InvalidConfig, match="one of: offset, timestamp, header, longest"):
        log.create_topic("u", config={"compaction.strategy": "shortest"})
