"""For tests that kill what drives Spark: a program with all that it started, and what of its streams is under way."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

TASKS = "worker"
COMMIT = "sql.worker.python_streaming_sink_runner"


class Driver:
    """A program in a session of its own, what it says in `log`."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True
            )

    @property
    def running(self) -> bool:
        return self.process.poll() is None

    def kill(self, chance: random.Random | None = None) -> None:
        """Driver and JVM. With `chance`, tasks may go on for a while: nobody told them."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        if chance is None or chance.random() < 0.5:
            kill_all(self.session())

    def session(self) -> dict[int, int]:
        """The processes of this driver's session, with their parents."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError, IndexError):
                    fields = (entry / "stat").read_text().rpartition(")")[2].split()
                    if int(fields[3]) == self.process.pid:
                        found[int(entry.name)] = int(fields[1])
        return found

    def workers(self, what: str = TASKS) -> list[int]:
        """Python processes that do this for the driver: children of a daemon of its kind."""
        found = self.session()
        kind = b"pyspark.daemon\0pyspark." + what.encode()
        daemons = [pid for pid in found if kind in _command(pid) and kind not in _command(found[pid])]
        return [pid for pid, parent in found.items() if parent in daemons]


def busy(pids: Sequence[int], look_s: float = 0.03) -> list[int]:
    """Those that use a processor just now."""
    before = {pid: _ticks(pid) for pid in pids}
    time.sleep(look_s)
    return [pid for pid in pids if _ticks(pid) > before[pid]]


def _ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])


def kill_all(pids: Sequence[int] | dict[int, int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


class Progress:
    """A stream by its checkpoint."""

    def __init__(self, checkpoint: Path) -> None:
        self._checkpoint = checkpoint

    @property
    def batch(self) -> int:
        """The micro-batch that is under way, -1 where none is: begun by its offsets, ended by its commit."""
        begun = self._last("offsets")
        return begun if begun > self._last("commits") else -1

    def _last(self, name: str) -> int:
        folder = self._checkpoint / name
        if not folder.is_dir():
            return -1
        return max((int(path.name) for path in folder.iterdir() if path.name.isdigit()), default=-1)


class Aim(Progress):
    """Tells, too, when tasks have begun to write: the sink's journal, in a broker's folder, grows by their tokens."""

    def __init__(self, checkpoint: Path, data: Path) -> None:
        super().__init__(checkpoint)
        self._data = data
        self.again()

    def again(self) -> None:
        """What was written up to now counts no more."""
        self._of, self._size = -1, 0

    @property
    def written(self) -> bool:
        batch, size = self.batch, sum(path.stat().st_size for path in self._data.glob("__logkernel_spark-*/*.log"))
        if batch != self._of:
            self._of, self._size = batch, size
        return batch >= 0 and size > self._size


class Strikes:
    """Kills a task, the driver, its commit or the broker, kind after kind as `kinds` say. Every kill falls into a
    micro-batch that is being written, every other one into the same as the last."""

    def __init__(
        self, kinds: Sequence[str], chance: random.Random, aim: Aim, restart: Callable[[], None], log: Path
    ) -> None:
        self.left = list(kinds)
        self.struck: Counter[tuple[str, int]] = Counter()
        """By kind and micro-batch."""
        self._chance = chance
        self._aim = aim
        self._restart = restart
        self._log = log
        self._after = -1
        """Micro-batches up to this one are spared."""

    def at(self, driver: Driver, pause_s: float) -> bool:
        """Until the driver ends; says whether it was killed itself. `pause_s` pass before a kill, at most."""
        awake = False
        self._aim.again()
        while driver.running:
            awake = awake or bool(driver.workers())
            if not (self.left and awake and self._aim.written):
                time.sleep(0.02)
            elif self._strike(driver, pause_s) == "driver":
                return True
        return False

    def _strike(self, driver: Driver, pause_s: float) -> str | None:
        """Kill what comes next; None where the batch was quicker, or has had its share."""
        kind = self.left[0]
        if kind == "commit":
            workers = busy(driver.workers(COMMIT))
        else:
            time.sleep(self._chance.uniform(0.0, pause_s))
            workers = driver.workers()
        batch = self._aim.batch
        if batch <= self._after or not self._kill(kind, driver, workers):
            return None
        with self._log.open("a") as noted:
            print(time.strftime("%X"), "killed:", kind, "in micro-batch", batch, file=noted)
        self.struck[self.left.pop(0), batch] += 1
        self._after = self._chance.choice((-1, batch))
        self._aim.again()
        return kind

    def _kill(self, kind: str, driver: Driver, workers: Sequence[int]) -> bool:
        if kind == "driver":
            driver.kill(self._chance)
        elif kind == "broker":
            self._restart()
        elif workers:
            kill_all(workers if self._chance.random() < 0.5 else [self._chance.choice(workers)])
        else:
            return False
        return True
