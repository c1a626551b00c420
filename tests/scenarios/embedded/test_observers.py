"""Plugins that observe: what they raise is logged with their name, and nothing else comes of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from logkernel.attrs_lite import evolve
from logkernel.broker.broker import Broker
from logkernel.broker.runtime import Runtime
from logkernel.config.broker import BrokerConfig
from logkernel.config.definitions import PluginDeclaration
from logkernel.embed import EmbeddedLog
from logkernel.errors import PluginError
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.vocabulary import Record

SEGMENT = 1 << 20


class Raises:
    """An observer that raises in each hook, the first time."""

    __name__ = "raises"

    def __init__(self) -> None:
        self.told: list[str] = []

    def _tell(self, hook: str) -> None:
        self.told.append(hook)
        if self.told.count(hook) == 1:
            raise ValueError(f"no {hook} today")

    @hookimpl
    def logkernel_segment_rolled(self, topic: str) -> None:
        self._tell("segment_rolled")

    @hookimpl
    def logkernel_topic_created(self, topic: str) -> None:
        self._tell("topic_created")

    @hookimpl
    def logkernel_topic_deleted(self, topic: str) -> None:
        self._tell("topic_deleted")

    @hookimpl
    def logkernel_cleanup_done(self, topic: str) -> None:
        self._tell("cleanup_done")

    @hookimpl
    def logkernel_broker_stopping(self) -> None:
        self._tell("broker_stopping")

    @hookimpl
    def logkernel_broker_started(self) -> None:
        self._tell("broker_started")


def opened(folder: Path, *plugins: object) -> EmbeddedLog:
    kernel = Kernel(plugins=plugins)
    runtime = Runtime(BrokerConfig.load(None, [f"log.dirs={folder}"], kernel.declarations()), kernel)
    return EmbeddedLog(Broker(runtime))


def faults(caplog: pytest.LogCaptureFixture, hook: str) -> list[str]:
    return [record.getMessage() for record in caplog.records if f"logkernel_{hook}" in record.getMessage()]


def test_an_observer_of_rolled_segments_that_raises_takes_no_write(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    plugin = Raises()
    with opened(tmp_path, plugin) as log:
        log.create_topic("t", segment_bytes=SEGMENT)
        offsets = [log.append("t", bytes(SEGMENT // 3)).offset for _ in range(12)]
        assert offsets == list(range(12))
        assert plugin.told.count("segment_rolled") > 1, "it is told of the next ones"
    assert len(faults(caplog, "segment_rolled")) == 1
    assert "plugin=raises" in faults(caplog, "segment_rolled")[0]


def test_every_hook_that_tells_is_safe(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    plugin = Raises()
    with opened(tmp_path, plugin) as log:
        log.listen()
        log.create_topic("t", segment_bytes=SEGMENT, retention_bytes=0)
        log.append_many("t", [Record(None, bytes(SEGMENT // 3)) for _ in range(2)])
        assert log.apply_retention("t")[0].policy == "delete"
        log.delete_topic("t")
        log.create_topic("t")
    for hook in ("broker_started", "topic_created", "cleanup_done", "topic_deleted", "broker_stopping"):
        assert hook in plugin.told
        assert len(faults(caplog, hook)) == 1, hook


class Policy:
    """A cleanup policy that plans nothing."""

    def plan(self, log: Any) -> list[Any]:
        return []


class Provides:
    @hookimpl
    def logkernel_cleanup(self, name: str) -> Policy | None:
        return Policy() if name == "nothing" else None

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("cleanup policy", "nothing")]


def test_a_topic_whose_plugin_is_gone_is_told_of_at_start(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    def warnings() -> list[str]:
        return [row.getMessage() for row in caplog.records if "no plugin provides" in row.getMessage()]

    with opened(tmp_path, Provides()) as log:
        for name in ("one", "two"):
            log.create_topic(name, cleanup_policy="nothing")
        log.create_topic("other")
    with opened(tmp_path, Provides()):
        assert warnings() == []
    with opened(tmp_path):
        (warning,) = warnings()
    assert "the cleanup policy 'nothing', which is set for topics one, two:" in warning
    assert "install the plugin" in warning


def test_a_topic_whose_codec_is_gone_is_told_of_at_start_and_served(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(tmp_path) as log:
        log.create_topic("packed", compression_type="gzip")

    def missing(kernel: Kernel, name: str, level: int | None = None) -> Any:
        raise PluginError(f"no plugin provides the codec {name!r}; install the plugin")

    of_all = Kernel.declarations

    def without_it(kernel: Kernel) -> list[PluginDeclaration]:
        return [evolve(each, names=tuple(row for row in each.names if row[1] != "gzip")) for each in of_all(kernel)]

    monkeypatch.setattr(Kernel, "declarations", without_it)
    monkeypatch.setattr(Kernel, "codec", missing)
    with opened(tmp_path) as log:
        log.append("packed", b"a")
    told = [row.getMessage() for row in caplog.records if "the codec 'gzip', which is set for" in row.getMessage()]
    assert len(told) == 1
    assert "topics packed: batches stay" in told[0]
