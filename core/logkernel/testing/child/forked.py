"""Starts test servers by forking a process that has everything imported (`forking`). There is one for each process that
starts any; it ends with that.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final

from logkernel.errors import LogkernelError
from logkernel.testing.server.needed import check_werkzeug

PROGRAM: Final = "logkernel.testing.child.forking"
CHUNK_BYTES: Final = 4096
SIGNALS: Final = {each.value: each.name for each in signal.Signals}
STOPS_S: Final = 10.0
"""How long a broker that was asked to end may take before it is killed."""


class Forking:
    """The process that is forked."""

    def __init__(self) -> None:
        self.owner = os.getpid()
        self._lock = threading.Lock()
        self._stderr: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", PROGRAM, str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=self._stderr,
                pass_fds=[theirs.fileno()], start_new_session=True, env=_environ(),
            )  # fmt: skip

    @property
    def ended(self) -> bool:
        return self._socket.fileno() < 0 or self._process.poll() is not None

    def run(self, options: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        """Start a test server with these as its standard input, output and error; returns its pid."""
        message = {"run": options, "path": sys.path, "environ": dict(os.environ)}
        pid: int = self._ask(message, descriptors)["pid"]
        return pid

    def wait(self, pid: int, within_s: float) -> int | None:
        """The exit code of a test server that ended within that time, negative for a signal; None while it runs. Not
        to be asked again after it has."""
        code: int | None = self._ask({"wait": pid, "within_s": within_s})["ended"]
        return code

    def _ask(self, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> Any:
        with self._lock:
            data = json.dumps(message).encode() + b"\n"
            answer = b""
            try:
                sent = socket.send_fds(self._socket, [data], descriptors) if descriptors else 0
                self._socket.sendall(data[sent:])
                while not answer.endswith(b"\n"):
                    part = self._socket.recv(CHUNK_BYTES)
                    if not part:
                        break
                    answer += part
            except OSError:
                answer = b""
            except BaseException:  # an interrupt: what is answered now would be taken for the next answer
                self._socket.close()
                raise
        if not answer:
            self._process.wait()
            self._stderr.seek(0)
            said = self._stderr.read().decode(errors="replace")
            raise LogkernelError(f"the process that starts brokers has ended; see why:\n{said}")
        return json.loads(answer)

    def close(self) -> None:
        if self.owner == os.getpid():
            self._socket.close()
            self._process.wait()
            self._stderr.close()


class Forked:
    """A test server that was started so. Methods may be called from any thread."""

    def __init__(self, options: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        """These become its standard input, output and error. Raises `ConfigError`, `LogkernelError`."""
        self._forking = forking()
        self.pid = self._forking.run(options, descriptors)
        self._how = ""
        self._lock = threading.Lock()

    def ended(self, within_s: float = 0) -> str:
        """How it ended, if it does within that time; "" while it runs."""
        with self._lock:
            if not self._how:
                self._how = self._looked(within_s)
            return self._how

    def _looked(self, within_s: float) -> str:
        try:
            code = self._forking.wait(self.pid, within_s)
        except LogkernelError:
            return f"the broker's process {self.pid} ended with the process that starts brokers"
        if code is None:
            return ""
        how = f"exited with code {code}" if code >= 0 else f"was killed by {SIGNALS.get(-code, f'signal {-code}')}"
        return f"the broker's process {self.pid} {how}"

    def end(self, how: signal.Signals) -> None:
        """It is gone when this returns."""
        self._signal(how)
        self._signal(signal.SIGCONT)  # a test may have stopped it
        if not self.ended(STOPS_S):
            self._signal(signal.SIGKILL)
            self.ended(STOPS_S)

    def _signal(self, which: signal.Signals) -> None:
        """Until it was looked for and found ended, the pid is its own."""
        with self._lock:
            if not self._how:
                with suppress(ProcessLookupError):
                    os.kill(self.pid, which)


_forking: Forking | None = None
_lock = threading.Lock()


def forking() -> Forking:
    """That of this process; it is started at the first call. Raises `ConfigError` without werkzeug."""
    global _forking
    check_werkzeug()
    with _lock:
        if _forking is None or _forking.owner != os.getpid() or _forking.ended:
            _forking = Forking()
            atexit.register(_forking.close)
        return _forking


def _environ() -> dict[str, str]:
    """Where this process found logkernel, so does that one."""
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
    found = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(found)}
