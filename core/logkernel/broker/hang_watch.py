"""Tells of plugins that do not return, while they do not: the broker's own thread can't, because it waits for them.

A thread looks at the running calls of plugins every `LOOK_MS`. A call that it finds at two looks or more has lasted
from the first of them to the last, at least:

    it lasts      then
    1 s           logged, with the plugin, the hook and the line; the control socket answers every command with that
    10 s, 20 s …  logged again
    returns       a call that took longer than a second is noted by whoever made it (`PluginFaults.took`)

Looks are counted, instead of asking for the time: a process that was stopped for a minute accuses nobody. A call that
has imported a further module since the last look is not one that hangs: the first request of a service imports a
hundred, which takes seconds where the machine is busy. One module that does not come to its end is told of.
"""

from __future__ import annotations

import logging
import sys
import threading
from collections.abc import Callable, Iterator, Sequence

from logkernel.plugin_faults import SLOW_MS, Hang, Namer, RunningCalls

LOOK_MS = 250
AGAIN_MS = 10_000
"""A call that hangs is logged again each time that it has lasted so much longer."""

log = logging.getLogger("logkernel.plugins")


class HangWatch:
    """See the module. `look` is one look, for tests and for the thread."""

    def __init__(self, running: RunningCalls, tell: Callable[[Sequence[Hang]], object]) -> None:
        """`tell` is called at each look at which something hangs, from the watch's own thread."""
        self._running = running
        self._tell = tell
        self._seen: dict[int, tuple[object, int]] = {}
        """Thread → its call at the last look, and for how many ms it was seen."""
        self._modules = 0
        """How many modules there were at the last look."""
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._run, name="logkernel-hang-watch", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(LOOK_MS / 1000):
            try:
                hangs = self.look()
                if hangs:
                    self._tell(hangs)
            except Exception:
                log.exception("running calls of plugins could not be looked at")

    def look(self) -> list[Hang]:
        """Look once; log what hangs, and return it."""
        seen, self._seen = self._seen, {}
        before, self._modules = self._modules, len(sys.modules)
        return list(self._hangs(seen, self._modules != before))

    def _hangs(self, seen: dict[int, tuple[object, int]], more_modules: bool) -> Iterator[Hang]:
        for thread, call in self._running.by_thread.copy().items():
            before, for_ms = seen.get(thread, (None, 0))
            goes_on = more_modules and _imports(thread)
            for_ms = for_ms + LOOK_MS if before is call and not goes_on else 0
            self._seen[thread] = (call, for_ms)
            if for_ms < SLOW_MS:
                continue
            hang = _hang(thread, call, for_ms)
            if for_ms - LOOK_MS < SLOW_MS or for_ms % AGAIN_MS < LOOK_MS:
                log.error(
                    "plugin hangs: %s in=%s for_s=%d at=%s; the broker answers no request until it returns",
                    *(hang.origin.logged, hang.place, for_ms // 1000, hang.at),
                )
            yield hang


def _imports(thread: int) -> bool:
    """Whether the thread is amid an import."""
    frame = sys._current_frames().get(thread)
    while frame is not None and not frame.f_code.co_filename.startswith("<frozen importlib"):
        frame = frame.f_back
    return frame is not None


def _hang(thread: int, call: tuple[Namer, object], for_ms: int) -> Hang:
    namer, key = call
    origin, place = namer(key)
    frame = sys._current_frames().get(thread)
    at = "?" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"
    return Hang(origin, place, for_ms, at)
