"""For tests that kill what drives Spark: a program with all that it started, and what of its streams is under way."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

TASKS = "worker"
COMMIT = "sql.worker.python_streaming_sink_runner"


class Driver:
    """A program in a session of its own, what it says in `log`."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        environment = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        with log.open("ab") as out:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment, start_new_session=True
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
