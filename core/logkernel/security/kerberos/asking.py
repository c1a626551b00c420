"""Whoever asks a KDC waits for a bounded time, whatever the library does.

MIT's library waits up to a minute for a KDC that accepts connections and says nothing, and locks the credentials
meanwhile: logins that share them queue up in it. So a login does that on a thread of its own. One that does not return
in time is left behind; while it still runs, other logins of the same client begin no further thread.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Final, TypeVar

from logkernel.security.sasl.gssapi import UNREACHABLE, GssError

WAIT_S: Final = 8.0
"""Less than a connection has for its setup (`socket.connection.setup.timeout.ms`, 10 s): the error names the KDC."""

T = TypeVar("T")

log = logging.getLogger("logkernel.security")


class Asking:
    """Of one client; its logins take turns."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._turn = threading.Lock()
        self._is_told = False
        """The log has it already that no KDC answers."""

    def run(self, ask: Callable[[], T]) -> T:
        """Return what `ask` returns, or raise what it raises. Raises `GssError` where it does not end in time, or
        cannot begin. That no KDC answers is logged, once until one does."""
        try:
            found = self._in_time(ask)
        except GssError as error:
            if error.unreachable and not self._is_told:
                self._is_told = True
                log.warning("no login by Kerberos: %s; %s", error, UNREACHABLE)
            raise
        self._is_told = False
        return found

    def _in_time(self, ask: Callable[[], T]) -> T:
        deadline_s = time.monotonic() + self._wait_s
        answer: Future[T] = Future()
        if not self._turn.acquire(timeout=self._wait_s):
            raise self._late()

        def work() -> None:
            try:
                answer.set_result(ask())
            except BaseException as error:
                answer.set_exception(error)
            finally:
                self._turn.release()

        try:
            threading.Thread(target=work, name="logkernel-kerberos", daemon=True).start()
        except RuntimeError as error:  # the system has no more threads
            self._turn.release()
            raise GssError(f"no thread to ask a KDC on ({error})", unreachable=True) from error
        try:
            return answer.result(deadline_s - time.monotonic())
        except TimeoutError:
            raise self._late() from None

    def _late(self) -> GssError:
        return GssError(f"no KDC answers within {self._wait_s:g} s", unreachable=True)
