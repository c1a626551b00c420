"""Topics whose settings name a plugin that is gone: a line each in `logkernel status`, which ends with 1."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from logkernel.broker.build import build
from logkernel.broker.governance.missing_plugins import CONSEQUENCES, NAMED
from logkernel.cli import main
from logkernel.config.broker import BrokerConfig
from logkernel.embed import EmbeddedLog
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel

SETTINGS = {
    "cleanup policy": "cleanup.policy",
    "election": "election",
    "fetch filter": "fetch.filters",
    "isr": "isr",
    "partitioner": "partitioner",
    "placement": "placement",
    "produce interceptor": "produce.interceptors",
    "quota": "quotas",
}
"""Kind → the topic setting that chooses one."""


class Provides:
    """Gives the name `gone` to every kind, and nothing more."""

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [(kind, "gone") for kind in [*SETTINGS, "compaction strategy"]]


def opened(folder: Path, *plugins: object) -> EmbeddedLog:
    return EmbeddedLog(build(None, [f"log.dirs={folder}"], kernel=Kernel(plugins=plugins)))


@pytest.mark.parametrize("kind", SETTINGS)
def test_status_has_a_line_for_a_missing_plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    with opened(tmp_path, Provides()) as log:
        log.create_topic("t", partitions=1)
        log.create_topic("plain", partitions=1)
        with log.admin() as admin:
            admin.alter_configs({("topic", "t"): {SETTINGS[kind]: "gone"}})
        log.listen()
        assert main(["status", "--data", str(tmp_path)]) == 0
        assert "missing" not in capsys.readouterr().out
    with opened(tmp_path) as log:
        log.listen()
        assert main(["status", "--data", str(tmp_path)]) == 1
        line = f"missing: no plugin provides the {kind} 'gone', which is set for topics t: {CONSEQUENCES[kind]}\n"
        assert line in capsys.readouterr().out
        assert main(["status", "--json", "--data", str(tmp_path)]) == 1
        (row,) = json.loads(capsys.readouterr().out)["missing"]
        assert (row["kind"], row["name"], row["topics"], row["more"]) == (kind, "gone", ["t"], 0)


def test_a_compaction_strategy_is_missed_where_a_topic_is_compacted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with opened(tmp_path, Provides()) as log:
        for name, policy in (("kept", "delete"), ("packed", "compact")):
            log.create_topic(name, config={"cleanup.policy": policy, "compaction.strategy": "gone"})
    with opened(tmp_path) as log:
        log.listen()
        assert main(["status", "--json", "--data", str(tmp_path)]) == 1
    (row,) = json.loads(capsys.readouterr().out)["missing"]
    assert (row["kind"], row["topics"]) == ("compaction strategy", ["packed"])


def test_many_topics_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"t{number:02}" for number in range(NAMED + 3)]
    with opened(tmp_path, Provides()) as log:
        for name in names:
            log.create_topic(name, partitions=1, config={"quotas": "gone"})
    with opened(tmp_path) as log:
        log.listen()
        assert main(["status", "--data", str(tmp_path)]) == 1
    assert f"for topics {', '.join(names[:NAMED])} and 3 more: clients' requests" in capsys.readouterr().out


def test_every_kind_that_a_topic_chooses_has_a_consequence() -> None:
    chosen = {one.chooses for one in BrokerConfig.load().definitions.topic.values() if one.chooses}
    assert chosen <= set(CONSEQUENCES)
    assert set(SETTINGS) | {"codec", "compaction strategy"} == set(CONSEQUENCES)
