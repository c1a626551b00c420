"""A plugin that does not return is told of while it does not: in the log, and by `logkernel status`."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from logkernel.broker import hang_watch
from logkernel.broker.build import build
from logkernel.broker.hang_watch import AGAIN_MS, LOOK_MS, HangWatch
from logkernel.cli import main
from logkernel.embed import EmbeddedLog
from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from logkernel.plugin_faults import SLOW_MS, Hang, Origin, PluginFaults


class Sleeper:
    """Holds up every call until it is woken."""

    def __init__(self) -> None:
        self.called, self.woken = threading.Event(), threading.Event()

    def hang(self) -> None:
        self.called.set()
        assert self.woken.wait(300)

    @hookimpl
    def logkernel_topic_created(self, topic: str, partitions: int) -> None:
        self.hang()

    @hookimpl
    def logkernel_election(self, name: str) -> Any:
        if name == "slow":
            self.hang()


@pytest.fixture
def sleeper() -> Iterator[Sleeper]:
    made = Sleeper()
    yield made
    made.woken.set()


def watched(kernel: Kernel, work: Any, sleeper: Sleeper, looks: int) -> list[list[Hang]]:
    """What so many looks find while `work` hangs on another thread."""
    thread = threading.Thread(target=work)
    thread.start()
    assert sleeper.called.wait(60)
    watch = HangWatch(kernel.faults.running, lambda hangs: None)
    found = [watch.look() for _ in range(looks)]
    sleeper.woken.set()
    thread.join(60)
    assert watch.look() == []
    assert kernel.faults.running.by_thread == {}
    return found


def test_a_hook_that_hangs_is_logged_while_it_hangs(sleeper: Sleeper, caplog: pytest.LogCaptureFixture) -> None:
    """It was told only after it had returned, and one that never returned, never."""
    kernel = Kernel(plugins=[sleeper])
    first = SLOW_MS // LOOK_MS
    found = watched(
        kernel, lambda: kernel.tell("logkernel_topic_created", topic="t", partitions=1), sleeper,
        looks=2 * AGAIN_MS // LOOK_MS + 1,
    )  # fmt: skip
    assert found[:first] == [[]] * first
    (hang,) = found[first]
    assert (hang.origin.plugin, hang.place, hang.for_ms) == ("Sleeper", "logkernel_topic_created", SLOW_MS)
    assert "threading.py:" in hang.at
    told = [message for message in caplog.messages if "plugin hangs" in message]
    assert [message.split("for_s=")[1].split()[0] for message in told] == ["1", "10", "20"]
    assert f"plugin=Sleeper file={__file__} in=logkernel_topic_created" in told[0]


def test_a_hook_that_provides_and_hangs_is_named(sleeper: Sleeper) -> None:
    """pluggy asks one plugin after the other: the one that runs is found by its frame."""
    kernel = Kernel(plugins=[sleeper])
    found = watched(kernel, lambda: _refused(kernel), sleeper, looks=6)
    (hang,) = found[-1]
    assert (hang.origin.plugin, hang.place) == ("Sleeper", "logkernel_election")


def _refused(kernel: Kernel) -> None:
    with pytest.raises(Exception, match="no plugin provides the election 'slow'"):
        kernel.election("slow", {})


def test_a_call_that_imports_one_module_after_the_other_does_not_hang(
    sleeper: Sleeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a busy machine, the first request of groups accused the service, or the assignor, that it imported."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "hanging_plugins_sleeper", sleeper, raising=False)
    monkeypatch.delitem(sys.modules, "slow_to_import", raising=False)
    (tmp_path / "slow_to_import.py").write_text("import sys\nsys.hanging_plugins_sleeper.hang()\n")
    kernel = Kernel(plugins=[sleeper])
    thread = threading.Thread(target=_imported, args=(kernel,))
    thread.start()
    assert sleeper.called.wait(60)
    watch = HangWatch(kernel.faults.running, lambda hangs: None)
    found = []
    for number in range(20):
        monkeypatch.setitem(sys.modules, f"further_module_{number}", sys)
        found.append(watch.look())
    stuck = [watch.look() for _ in range(SLOW_MS // LOOK_MS)]
    sleeper.woken.set()
    thread.join(60)
    assert found == [[]] * 20
    assert [len(hangs) for hangs in stuck] == [0, 0, 0, 1], "a module that does not come to its end is told of"


def _imported(kernel: Kernel) -> None:
    outer = kernel.faults.running.begin(lambda key: key, (Origin("plugin", "theirs"), "place"))
    import_module("slow_to_import")
    kernel.faults.running.end(outer)


def test_a_call_that_goes_on_is_told_from_the_next_one() -> None:
    """Only the same call at two looks has lasted from one to the other."""
    running = PluginFaults().running
    watch = HangWatch(running, lambda hangs: None)
    for _ in range(20):
        outer = running.begin(tuple, ("origin", "place"))
        assert watch.look() == []
        running.end(outer)


def test_status_names_the_plugin_that_holds_up_the_broker(
    sleeper: Sleeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`logkernel status` got no answer, as the broker's loop accepted nobody."""
    monkeypatch.setattr(hang_watch, "LOOK_MS", 10)
    monkeypatch.setattr(hang_watch, "SLOW_MS", 20)
    with EmbeddedLog(build(None, [f"log.dirs={tmp_path}"], kernel=Kernel(plugins=[sleeper]))) as log:
        log.listen()
        creating = threading.Thread(target=lambda: log.create_topic("t", partitions=1))
        creating.start()
        assert sleeper.called.wait(60)
        assert main(["status", "--data", str(tmp_path)]) == 1
        error = capsys.readouterr().err
        assert f"plugin 'Sleeper' in {__file__!r} has not returned from" in error
        assert "logkernel_topic_created" in error
        sleeper.woken.set()
        creating.join(60)
        assert main(["status", "--data", str(tmp_path)]) == 0
