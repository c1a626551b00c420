"""`python -m logkernel.testing.child.forking FD`: a process that has imported a broker, and is forked for each server.

So a server is ready in the time that a broker needs, not in that of an interpreter and its imports.

It is asked over the socket FD: messages are lines of JSON.

| message | answer |
|---|---|
| `{"run": {options of Kafka}, "path": sys.path, "environ": {…}}`, with 3 descriptors | `{"pid": N}` |
| `{"wait": N, "within_s": 5}` | `{"ended": CODE}`, -9 for SIGKILL; null while it runs. CODE is told once |

The descriptors are a server's standard input, output and error. On its output it says where it is, as `logkernel
test-server` does, or `{"error": NAME, "message": TEXT}`. When the socket ends, so does this process, and as its parent
is gone then, each server.
"""

from __future__ import annotations

import gc
import json
import logging
import os
import socket
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from logkernel.config.sources import RawSetting
from logkernel.errors import LogkernelError
from logkernel.testing.child.control import ControlClient
from logkernel.testing.http_server import HttpServer
from logkernel.testing.kafka.kafka import Kafka
from logkernel.testing.server.main import run
from logkernel.testing.server.one_broker import BrokerControl

STANDARD: Final = 3
"""Descriptors of a process: input, output, error."""
CHUNK_BYTES: Final = 65_536
LOOK_S: Final = 0.001


def main(descriptor: int) -> None:
    """Serve until the socket ends."""
    asked = socket.socket(fileno=descriptor)
    _warm_up()
    gc.collect()
    gc.freeze()
    while True:
        message, descriptors = _receive(asked)
        if not message:
            return
        if "run" in message:
            answer: dict[str, Any] = {"pid": _fork(asked, message, descriptors)}
        else:
            answer = {"ended": _wait(message["wait"], message["within_s"])}
        asked.sendall(json.dumps(answer).encode() + b"\n")


def _warm_up() -> None:
    """Have made what is made once in a process. No thread is left."""
    with tempfile.TemporaryDirectory() as folder, Kafka(path=folder) as kafka:
        server = HttpServer(BrokerControl(kafka))
        control = ControlClient()
        control.reach(server.url)
        control.call("POST", "topics", body={"a": 1})
        control.call("GET", "topics")
        server.close()


def _receive(asked: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """A message and its descriptors; an empty one at the end."""
    data, descriptors, _, _ = socket.recv_fds(asked, CHUNK_BYTES, STANDARD)
    while data and not data.endswith(b"\n"):
        more = asked.recv(CHUNK_BYTES)
        data = data + more if more else b""
    return (json.loads(data) if data else {}), descriptors


def _wait(pid: int, within_s: float) -> int | None:
    deadline_s = time.monotonic() + within_s
    while (found := os.waitpid(pid, os.WNOHANG)) == (0, 0):
        if time.monotonic() >= deadline_s:
            return None
        time.sleep(LOOK_S)
    return os.waitstatus_to_exitcode(found[1])


def _fork(asked: socket.socket, message: Mapping[str, Any], descriptors: Sequence[int]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            asked.close()
            for number, descriptor in enumerate(descriptors):
                os.dup2(descriptor, number)
                os.close(descriptor)
            code = _serve(message)
        finally:
            os._exit(code)
    for descriptor in descriptors:
        os.close(descriptor)
    return pid


def _serve(message: Mapping[str, Any]) -> int:
    """The new process."""
    sys.path[:] = message["path"]
    os.environ.clear()
    os.environ.update(message["environ"])
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(name)s %(message)s", force=True
    )
    try:
        run(_options(message["run"]), ready=_say)
    except (LogkernelError, OSError) as error:
        _say(json.dumps({"error": type(error).__name__, "message": str(error)}))
        return 2
    except BaseException:
        logging.exception("the test server failed")
        return 1
    return 0


def _options(given: Mapping[str, Any]) -> dict[str, Any]:
    plugins = []
    for name in given["plugins"]:
        try:
            plugins.append(import_module(name))
        except ImportError as error:
            raise LogkernelError(f"plugin {name} cannot be imported: {error}; name a module on sys.path") from None
    settings = {name: RawSetting(name, text, where) for name, text, where in given["settings"]}
    return {**given, "plugins": plugins, "settings": settings}


def _say(line: str) -> None:
    os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    main(int(sys.argv[1]))
