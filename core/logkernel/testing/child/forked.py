"""Starts test servers by forking a process that has everything imported (`forking`). There is one for each process that
starts any; it ends with that.
"""

from __future__ import annotations

import atexit
import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from typing import IO, Any, Final

from logkernel.errors import LogkernelError
from logkernel.testing.server.needed import check_werkzeug

PROGRAM: Final = "logkernel.testing.child.forking"
CHUNK_BYTES: Final = 4096


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

    def wait(self, pid: int, within_s: float) -> bool:
        """Whether a test server ended within that time. Not to be asked again after it has."""
        ended: bool = self._ask({"wait": pid, "within_s": within_s})["ended"]
        return ended

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
