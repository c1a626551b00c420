"""Calls of a test server's control port."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final
from urllib.parse import quote, urlencode

from logkernel import errors
from logkernel.errors import LogkernelError
from logkernel.testing.kafka.broker import NOT_RUNNING

WAITS_S: Final = 120.0
"""Longer than a call takes, if the process was not stopped by a signal."""


class ControlClient:
    """Calls are made on the thread that wants them; each has a connection of its own."""

    def __init__(self, how_it_ended: Callable[[], str] = str) -> None:
        """`how_it_ended` says how the broker's process ended by itself, "" where it runs. It is asked when a call
        fails."""
        self._how_it_ended = how_it_ended
        self._address: str | None = None
        self._timeout_s = WAITS_S

    @contextmanager
    def in_a_hurry(self, timeout_s: float) -> Iterator[None]:
        """Meanwhile, do not wait longer than that for a process that does not answer."""
        self._timeout_s = timeout_s
        try:
            yield
        finally:
            self._timeout_s = WAITS_S

    def reach(self, url: str) -> None:
        """A broker runs, and `url` is its control port."""
        self._address = url.removeprefix("http://")

    def lose(self) -> None:
        """There is no broker."""
        self._address = None

    @property
    def reaches(self) -> bool:
        """Whether there is a broker."""
        return self._address is not None

    def call(self, method: str, *path: str, body: Any = None, **query: Any) -> Any:
        """What the call is answered. `path` are its parts.

        Raises what the call raised there: `AssertionError`, `ValueError` and errors of `logkernel.errors`; and
        `LogkernelError` where no broker answers.
        """
        if self._address is None:
            raise LogkernelError(f"this log is closed; {NOT_RUNNING}")
        where = "/" + "/".join(quote(part, safe="") for part in path)
        given = {name: value for name, value in query.items() if value is not None}
        connection = http.client.HTTPConnection(self._address, timeout=self._timeout_s)
        try:
            data = None if body is None else json.dumps(body).encode()
            connection.request(method, f"{where}?{urlencode(given)}" if given else where, data)
            response = connection.getresponse()
            answer = json.loads(response.read())
        except (OSError, http.client.HTTPException) as error:
            how = self._how_it_ended()
            raise LogkernelError(
                f"{how}: start() it again; its log is process_log"
                if how
                else f"the broker's process does not answer: {error!r}; its log is process_log, and kill() and start()"
                " begin a new one"
            ) from error
        finally:
            connection.close()
        if response.status == http.client.OK:
            return answer
        raise raised(answer["error"], answer["message"])


def raised(name: str, message: str) -> Exception:
    """The exception of that name."""
    if name == "AssertionError":
        return AssertionError(message)
    if name == "ValueError":
        return ValueError(message)
    kind = getattr(errors, name, None)
    if isinstance(kind, type) and issubclass(kind, LogkernelError):
        return kind(message)
    return LogkernelError(f"{name}: {message}")
