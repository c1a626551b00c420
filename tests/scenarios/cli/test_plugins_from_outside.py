"""`logkernel plugin list|info|check|new`; and the project of each kind's template, installed and tested."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from outside_distribution import describe, lay_out

from logkernel.cli import main, plugin_hangs
from logkernel.cli.plugin_new import USES, files, kinds

BROKEN = """\
from logkernel import hookimpl


class First:
    def partition(self, key, value, partitions, available):
        return available[0]

    def on_batch_full(self, partition):
        pass


@hookimpl
def logkernel_partitioner(name):
    return First() if name == "first" else None


@hookimpl
def logkernel_names():
    return [("partitioner", "first")]
"""
CONFTEST = """\
from logkernel.testing.contracts import Kit

Kit.effort = 0.1
"""
"""Few examples: what is tested is that the projects work."""


def said(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main(["plugin", *words, "--json"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.fixture
def vip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    """A partitioner from the template, installed."""
    assert main(["plugin", "new", "partitioner", str(tmp_path / "acme-begun"), "--name", "vip"]) == 0
    lay_out(tmp_path / "acme-begun", tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delitem(sys.modules, "acme_begun", raising=False)
    capsys.readouterr()
    return tmp_path


def test_plugins_are_listed_with_where_they_come_from(vip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = said(capsys, "list")
    assert {"kind": "election", "name": "clean", "plugin": "election-clean", "distribution": "logkernel",
            "version": "0.1.0", "origin": "built-in", "state": "loaded"} in rows  # fmt: skip
    (mine,) = said(capsys, "list", "partitioner")[-1:]
    assert (mine["name"], mine["distribution"], mine["version"], mine["origin"]) == (
        "vip",
        "acme-begun",
        "0.1.0",
        "outside",
    )
    assert main(["plugin", "list", "cleanup-policy"]) == 0
    assert capsys.readouterr().out.split()[7:10] == ["cleanup", "policy", "compact"]


def test_a_file_says_what_is_allowed(vip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = vip / "logkernel.yaml"
    config.write_text("plugins: {allow: [], block: [election-unclean]}\n")
    states = {row["plugin"]: row["state"] for row in said(capsys, "list", "--config", str(config))}
    assert (states["acme-begun"], states["election-unclean"], states["election-clean"]) == (
        "not allowed", "blocked", "loaded",
    )  # fmt: skip


def test_a_plugin_that_cannot_be_loaded_is_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    describe(tmp_path, "acme-broken", {"logkernel": {"acme-broken": "acme_is_not_here"}})
    monkeypatch.syspath_prepend(str(tmp_path))
    (row,) = [row for row in said(capsys, "list") if row["plugin"] == "acme-broken"]
    assert row["state"].startswith("cannot be loaded: ModuleNotFoundError")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("import logkernel\n\n@logkernel.hookimpl\ndef logkernel_names():\n    return [1 / 0]\n",
         "plugin 'acme_hurt' in '{file}' failed in logkernel_names: ZeroDivisionError"),
        ("def logkernel_names():\n    return []\n",
         "plugin acme_hurt: function logkernel_names isn't marked; decorate it with @logkernel.hookimpl"),
    ],
    ids=["raises", "unmarked"],
)  # fmt: skip
def test_the_list_names_the_file_of_a_plugin_that_fails(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    body: str,
    problem: str,
) -> None:
    """It said "of distribution 'registered in this process'"."""
    describe(tmp_path, "acme-hurt", {"logkernel": {"acme-hurt": "acme_hurt"}})
    (tmp_path / "acme_hurt.py").write_text(body)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_hurt", raising=False)
    (row,) = [row for row in said(capsys, "list") if row["plugin"] == "acme-hurt"]
    assert row["state"].startswith(f"cannot be loaded: {problem.format(file=tmp_path / 'acme_hurt.py')}")
    assert "this process" not in row["state"]


@pytest.mark.parametrize("command", ["new", "check", "list"])
def test_help_names_the_kinds(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugin", command, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    _, _, kinds = told.partition("Kinds: ")
    assert {"assignor", "cleanup policy", "fetch filter"} <= set(kinds.removesuffix(".").split(", "))


def test_topics_that_choose_a_plugin_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    import logkernel

    with logkernel.open() as log:
        log.create_topic("orders", config={"partitioner": "keyed", "cleanup.policy": "compact,delete"})
        rows = said(capsys, "list", "-b", log.listen())
    topics = {(row["kind"], row["name"]): row["topics"] for row in rows}
    assert topics["partitioner", "keyed"] == topics["cleanup policy", "compact"] == ["orders"]
    assert topics["partitioner", "round_robin"] == []


def test_a_plugin_is_described(vip: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = said(capsys, "info", "partitioner/vip")
    assert row["module"] == "acme_begun"
    assert row["provides"] == [
        {"kind": "partitioner", "name": "vip", "origin": "outside", "hook": "logkernel_partitioner"}
    ]
    assert [(one["name"], one["default"], one["type"]) for one in row["settings"]] == [
        ("acme-begun.prefix.length", "4", "int")
    ]
    assert main(["plugin", "info", "acme-begun"]) == 0
    assert "owns the topic setting acme-begun.prefix.length=4" in capsys.readouterr().out
    assert main(["plugin", "info", "acme-begunp"]) == 2
    assert "did you mean 'acme-begun'?" in capsys.readouterr().err


def test_a_module_that_is_installed_is_checked_once(vip: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inherited = os.environ.get("PYTHONPATH")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(vip / "site"), inherited])))
    assert main(["plugin", "check", "acme_begun"]) == 0


def test_a_built_in_that_is_replaced_says_by_whom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "acme-thrifty"
    assert main(["plugin", "new", "codec", str(project)]) == 0
    lay_out(project, tmp_path / "site")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    capsys.readouterr()
    origins = {row["plugin"]: row["origin"] for row in said(capsys, "list", "codec") if row["name"] == "gzip"}
    assert origins == {"acme-thrifty": "outside", "codec-gzip": "built-in, replaced by acme-thrifty"}


def test_a_broken_promise_is_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "acme_first.py").write_text(BROKEN)
    monkeypatch.chdir(tmp_path)
    assert main(["plugin", "check", "acme_first"]) == 1
    out = capsys.readouterr().out
    assert "BROKEN  partitioner first: it answers also while no partition has a leader" in out
    assert "IndexError: list index out of range; " in out
    assert "available" not in out, "only what broke the promise is told"
    assert "steps=[" in out
    assert "ok      partitioner first: the seed is its only randomness" in out
    assert not (tmp_path / ".hypothesis").exists()


STUCK = """\
import threading

from logkernel import hookimpl
from logkernel.cli import plugin_hangs

plugin_hangs.LOOK_S, plugin_hangs.FIRST_S = 0.01, 0.02
told = threading.Event()
look = plugin_hangs.CallWatch.look


def looked(self):
    if any({said} in text for text in look(self)):  # not another one, that a slow machine holds up
        told.set()


plugin_hangs.CallWatch.look = looked


class Stuck:
    def partition(self, key, value, partitions, available):
        told.wait(60)
        return 0

    def on_batch_full(self, partition):
        pass


@hookimpl
def logkernel_partitioner(name):
    return Stuck() if name == "stuck" else None


@hookimpl
def logkernel_names():
    {wait}
    return [("partitioner", "stuck")]
"""
"""It waits in a call, of its object or of a hook, until it was told of."""


@pytest.mark.parametrize(
    ("wait", "told"),
    [
        ("pass", "plugin acme_stuck has not returned from Stuck.partition for 0 s (partitioner stuck: "),
        ("told.wait(60)", "plugin acme_stuck has not returned from logkernel_names for 0 s, and is at "),
    ],
    ids=["object", "hook"],
)
def test_a_call_that_hangs_is_named_while_it_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], wait: str, told: str
) -> None:
    """A check said nothing for as long as a hook slept."""
    (tmp_path / "acme_stuck.py").write_text(
        STUCK.replace("{wait}", wait).replace("{said}", repr(told.partition(" for ")[0]))
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "acme_stuck", raising=False)
    for name in ("LOOK_S", "FIRST_S"):
        monkeypatch.setattr(plugin_hangs, name, getattr(plugin_hangs, name))
    monkeypatch.setattr(plugin_hangs.CallWatch, "look", plugin_hangs.CallWatch.look)
    main(["plugin", "check", "acme_stuck"])
    assert f"logkernel: {told}" in capfd.readouterr().err


def test_what_has_no_kit_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugin", "check", "logkernel.plugins.spark"]) == 0
    assert "skipped connector spark: its kind has no contract kit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("partitioner", "keyyed"), "did you mean 'keyed'?"),
        (("partitoner", "keyed"), "did you mean 'partitioner'?"),
        (("connector", "spark"), "its kind has no contract kit"),
        (("cleanup-policy", "delete", "--set", "retention.mss=1"), "did you mean 'retention.ms'?"),
        (
            ("cleanup-policy", "delete", "--set", "retention.ms=long"),
            "Invalid value long for configuration retention.ms",
        ),
        (("acme_nowhere",), "acme_nowhere: cannot be imported"),
        (("json",), "plugin json has no hook"),
    ],
)
def test_a_check_of_nothing_is_refused(
    words: tuple[str, ...], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["plugin", "check", *words]) == 2
    assert problem in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("partitoner", "a"), "did you mean 'partitioner'?"),
        (("wheel", "a"), "use one of assignor"),
        (("partitioner", "9"), "no name of a distribution"),
        (("partitioner", "a", "--name", "a'b"), "use letters"),
        (("codec", "a", "--name", "brotli"), "leave --name out"),
        (("partitioner", "full"), "is not empty"),
    ],
)
def test_a_project_is_not_written_where_it_cannot_be(
    words: tuple[str, ...],
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    assert main(["plugin", "new", *words]) == 2
    assert problem in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]


def test_every_kind_of_projects_says_how_it_is_chosen() -> None:
    assert set(kinds()) == set(USES)


def test_the_project_of_each_kind_passes_its_tests(tmp_path: Path) -> None:
    """All are installed together, as a stranger's would be."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "conftest.py").write_text(CONFTEST)
    (tests / "pytest.ini").write_text("[pytest]\naddopts = --import-mode=importlib\n")
    for kind in kinds():
        project = tmp_path / f"acme-{kind.replace(' ', '-')}"
        assert main(["plugin", "new", kind, str(project)]) == 0
        assert set(files(kind, project.name, "x")) == {path.name for path in project.iterdir()}
        lay_out(project, tmp_path / "site")
        for test in project.glob("test_*.py"):
            (tests / test.name).write_text(test.read_text())
    inherited = os.environ.get("PYTHONPATH")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(tests / "pytest.ini"), str(tests)],
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [str(tmp_path / "site"), inherited])),
            "HYPOTHESIS_STORAGE_DIRECTORY": str(tmp_path / "hypothesis"),
        },
        cwd=tmp_path, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(kinds())} passed" not in done.stdout, "each has several tests"
