"""A `logkernel test-server` that a test starts, and its control port."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from typing import Any

STARTS_S = 300.0


class Server:
    """A test server that a test started."""

    def __init__(self, *arguments: str, **given: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "logkernel", "test-server", *arguments],
            **{"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **given},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            _, said = self.process.communicate()
            raise AssertionError(said.decode())
        self.ready = json.loads(line)
        self.bootstrap = self.ready["bootstrap_servers"]

    def call(self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None) -> Any:
        """The answer of a call that succeeds."""
        status, answer = self.answer(method, path, body, headers=headers)
        assert status == 200, answer
        return answer

    def answer(
        self, method: str, path: str, body: Any = None, *, headers: dict[str, str] | None = None
    ) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.ready["control"].removeprefix("http://"), timeout=STARTS_S)
        try:
            data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
            connection.request(method, path, data, headers or {})
            response = connection.getresponse()
            return response.status, json.loads(response.read())
        finally:
            connection.close()

    def end(self) -> None:
        self.process.kill()
        self.process.communicate()
