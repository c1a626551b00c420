"""A broker's session with its cluster's coordination: begun, announced in, polled, and begun again when it is lost.

begin             before anything is read: subscribe, so that no change falls between the read and the first poll
join              after the listeners are open: poll, be announced
_wakeup           from any thread: there is something to poll, in a turn of the broker's own
on_session_lost   begin again with a new session, as often as it takes
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from logkernel.broker.controller.controller_election import ControllerElection
from logkernel.broker.runtime import Runtime
from logkernel.broker.timers import Timer
from logkernel.broker.turn import Turn
from logkernel.contracts import SharedCoordination
from logkernel.controller.image import log_dirs_change
from logkernel.errors import DuplicateBrokerRegistration, KafkaError, KafkaStorageError

log = logging.getLogger("logkernel.cluster")

JOIN_AGAIN_MS: Final = 1_000
"""When a session could not be had."""
ANNOUNCE_AGAIN_MS: Final = 500
"""Back-off while an earlier incarnation of this broker is registered."""
LOG_AGAIN_MS: Final = 30_000
"""How often the log says that this broker is not announced yet."""


class Membership:
    """See the module."""

    def __init__(
        self,
        runtime: Runtime,
        turn: Turn,
        new_session: Callable[[], SharedCoordination],
        election: ControllerElection,
        registration: Callable[[], Mapping[str, Any]],
        joined: Callable[[], object],
    ) -> None:
        """`registration` gives the broker's fact, as of `image.BrokerRegistration`; `joined` is called each time that
        a session was begun."""
        self._runtime = runtime
        self._turn = turn
        self._new_session = new_session
        self._election = election
        self._registration = registration
        self._joined = joined
        self._session: SharedCoordination | None = None
        self._poll_timer: Timer | None = None
        self.refused: DuplicateBrokerRegistration | None = None
        """Why this broker cannot be a member: another one has its node id."""
        self._log_again_ms = 0
        """Monotonic ms before which the log says nothing more of an announcement that is still to come."""
        self._has_joined = self._closed = self._will_tell_log_dirs = False

    # ------------------------------------------------------------ life

    def session(self) -> SharedCoordination:
        """The session of now; the first one is begun when it is first asked for."""
        if self._session is None:
            self._session = self._new_session()
        return self._session

    def begin(self) -> SharedCoordination:
        """The first session. What is committed from now on is heard after `join`; what was before can be read."""
        session = self.session()
        self._election.begin(session, self._wakeup)
        return session

    def join(self) -> None:
        """Be announced, and stand for controller."""
        session = self.session()
        self._has_joined = True
        self._election.poll()
        self._announce(session, self._runtime.clock.mono_ms() + session.stale_ms)
        self._turn.end()
        self._joined()

    def _announce(self, session: SharedCoordination, until_ms: int) -> None:
        """A killed incarnation of this broker may stay registered for some time: retry until it is not."""
        try:
            self._election.announce(self._registration())
        except DuplicateBrokerRegistration as error:
            if self._runtime.clock.mono_ms() >= until_ms:
                self.refused = error
                raise
            self._announce_later(session, until_ms, error)
        except KafkaStorageError as error:  # no answer, or the session is unsure, or over: then another begins
            self._announce_later(session, until_ms, error)
        else:
            self._log_again_ms = 0

    def _announce_later(self, session: SharedCoordination, until_ms: int, why: KafkaError) -> None:
        self._log_seldom(logging.WARNING, "not announced yet, and tried again", why)
        self._runtime.after(ANNOUNCE_AGAIN_MS, partial(self._announce_again, session, until_ms))

    def _announce_again(self, session: SharedCoordination, until_ms: int) -> None:
        if self._closed or session is not self._session:
            return
        try:
            self._announce(session, until_ms)
        except KafkaError as error:
            if self.refused is not None:
                log.error("not announced: node_id=%d error=%s", self._runtime.node_id, error)
            else:
                self._log_seldom(logging.ERROR, "not announced, and tried again", error)
                self._runtime.after(ANNOUNCE_AGAIN_MS, partial(self._announce_again, session, until_ms))

    def _log_seldom(self, level: int, what: str, error: KafkaError) -> None:
        now_ms = self._runtime.clock.mono_ms()
        if now_ms >= self._log_again_ms:
            self._log_again_ms = now_ms + LOG_AGAIN_MS
            log.log(level, "%s: node_id=%d error=%s", what, self._runtime.node_id, error)

    def close(self) -> None:
        """Close the session cleanly."""
        self.abandon()
        if self._session is not None:
            self._session.close()

    def abandon(self) -> None:
        """Process no more events; the caller may end the session."""
        self._closed = True

    def on_session_lost(self) -> None:
        if self._closed:
            return
        log.warning("the session is over, and a new one begins: node_id=%d", self._runtime.node_id)
        self._begin_again("")

    def _begin_again(self, told: str) -> None:
        """`told` is the last error logged; it is not logged again."""
        if self._closed:
            return
        try:
            self._session = self._new_session()
            self.begin()
            self.join()
        except KafkaError as error:
            if str(error) != told:
                log.error("no new session: node_id=%d error=%s", self._runtime.node_id, error)
            self._runtime.after(JOIN_AGAIN_MS, partial(self._begin_again, str(error)))
        else:
            epoch = self._election.view.broker_epoch
            log.info("a new session: node_id=%d broker_epoch=%d", self._runtime.node_id, epoch)

    # ------------------------------------------------------------ a failed log directory

    def log_dir_failed(self) -> None:
        """A log directory of this broker failed: have the controller ask which replicas are lost with it."""
        if not self._will_tell_log_dirs and not self._closed:
            self._will_tell_log_dirs = True
            self._runtime.after(0, self._tell_log_dirs)

    def _tell_log_dirs(self) -> None:
        if self._closed:
            return
        try:
            self.session().commit([log_dirs_change(self._runtime.node_id)])
        except KafkaError as error:
            log.warning("a failed log directory could not be told: error=%s", error)
            self._runtime.after(JOIN_AGAIN_MS, self._tell_log_dirs)
        else:
            self._will_tell_log_dirs = False
            self._election.poll_soon()

    # ------------------------------------------------------------ polling

    def _wakeup(self) -> None:
        """Called from any thread when there are events: process them in a turn of this broker, once it has joined."""
        self._runtime.workers.call(self._poll_soon)

    def _poll_soon(self) -> None:
        if self._poll_timer is None and self._has_joined and not self._closed:
            self._poll_timer = self._runtime.after(0, self._poll)

    def _poll(self) -> None:
        self._poll_timer = None
        if not self._closed:
            self._election.poll()
