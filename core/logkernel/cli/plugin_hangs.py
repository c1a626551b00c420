"""Tells who checks plugins which call of one does not return, while it does not.

A thread looks at the stacks of all others every `LOOK_S`. The outermost frame of a plugin, which ours called, is the
hook or method; if it is there at two looks or more, it has lasted from the first of them to the last, at least.
`broker/hang_watch.py` does this for a broker, whose kernel notes calls; a kit calls a plugin's objects itself.

This is also a plugin of pytest: `-p logkernel.cli.plugin_hangs`, with the file descriptor to tell in `VARIABLE`.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Self

LOOK_S = 1.0
FIRST_S = 5.0
"""When a call is told of first; then again whenever it has lasted twice as long."""
VARIABLE: Final = "LOGKERNEL_PLUGIN_CHECK_TELLS"
OURS: Final = sys.stdlib_module_names | {"logkernel", "pluggy", "pytest", "_pytest", "hypothesis", "click"}
"""Packages whose frames are no plugin's; but `logkernel.plugins` are plugins."""
GENERATED: Final = "hypothesis_temporary_module_"
"""How hypothesis calls the modules that it writes."""


class CallWatch:
    """See the module. `look` is one look, for tests and for the thread."""

    def __init__(self, tell: Callable[[str], object]) -> None:
        self.doing = ""
        """What is checked now."""
        self._tell = tell
        self._seen: dict[int, tuple[FrameType, float, float]] = {}
        """Thread → the plugin's frame at the last look, for how long it was seen, and when it is told of next, in s."""
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="logkernel-call-watch", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(LOOK_S):
            self.look()

    def look(self) -> list[str]:
        """Look once; tell of the calls that are due, and return what was told."""
        seen, self._seen = self._seen, {}
        told = []
        for thread, inner in sys._current_frames().items():
            called = _called(inner) if thread != threading.get_ident() else None
            if called is None:
                continue
            before, for_s, due_s = seen.get(thread, (None, 0.0, FIRST_S))
            for_s, due_s = (for_s + LOOK_S, due_s) if before is called else (0.0, FIRST_S)
            if for_s >= due_s:
                due_s = 2 * for_s
                told.append(self._text(called, inner, for_s))
            self._seen[thread] = (called, for_s, due_s)
        for text in told:
            self._tell(text)
        return told

    def _text(self, called: FrameType, inner: FrameType, for_s: float) -> str:
        doing = f" ({self.doing})" if self.doing else ""
        at = f"{inner.f_code.co_filename}:{inner.f_lineno} in {inner.f_code.co_name}"
        return (
            f"logkernel: plugin {_module(called)} has not returned from {called.f_code.co_qualname} for {for_s:.0f} s"
            f"{doing}, and is at {at}; press Ctrl-C to stop"
        )


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "?"))


def _called(inner: FrameType) -> FrameType | None:
    """The outermost frame of a plugin below one of ours; None where no plugin runs."""
    frames = []
    frame: FrameType | None = inner
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    below = False
    for each in reversed(frames):
        name = _module(each)
        top = name.partition(".")[0]
        if top == "logkernel" and not name.startswith("logkernel.plugins."):
            below = True
        elif below and (top not in OURS or name.startswith("logkernel.plugins.")) and not top.startswith(GENERATED):
            return each
    return None


# ---------------------------------------------------------------- in the pytest that runs the kits


class _Suites:
    """Says what is checked, and watches until pytest ends."""

    def __init__(self, descriptor: int) -> None:
        self._watch = CallWatch(lambda text: os.write(descriptor, f"{text}\n".encode()))

    def pytest_sessionstart(self) -> None:
        self._watch.__enter__()

    def pytest_runtest_setup(self, item: Any) -> None:
        promise = item.name.removeprefix("test_").replace("_", " ")
        self._watch.doing = f"{item.cls.kind} {item.cls.name}: {promise}"

    def pytest_sessionfinish(self) -> None:
        self._watch.__exit__()


def pytest_configure(config: Any) -> None:
    config.pluginmanager.register(_Suites(int(os.environ[VARIABLE])))
