"""Share sessions (KIP-932): which partitions a member reads, kept by the broker so that a request names changes only.

    epoch of the request   no session                   session
    0                      a new one                    a new one in place of the old
    -1                     SHARE_SESSION_NOT_FOUND      its end
    as expected            SHARE_SESSION_NOT_FOUND      goes on, one epoch further (after 2**31 - 1 comes 1)
    other                  SHARE_SESSION_NOT_FOUND      INVALID_SHARE_SESSION_EPOCH

It also ends with its connection, and when its member is gone without a word. A member that says that it leaves keeps
it until then: it says so on the connection to its coordinator, while its last acknowledgements may still be under way
on this one. Where the limit is reached, a session that was idle for two minutes makes room, else
SHARE_SESSION_LIMIT_REACHED.
"""

from __future__ import annotations

from typing import Final, NamedTuple
from uuid import UUID

from logkernel.attrs_lite import field, mutable
from logkernel.errors import InvalidShareSessionEpoch, ShareSessionLimitReached, ShareSessionNotFound

INITIAL: Final = 0
FINAL: Final = -1
MAX_EPOCH: Final = 2**31 - 1
IDLE_MS: Final = 120_000
Connection = tuple[str, int]
"""Listener and number."""


class Holder(NamedTuple):
    group_id: str
    member_id: str


@mutable
class ShareSession:
    """`partitions` are in the order in which they came; `epoch` is the one that the next request must have."""

    epoch: int = 1
    partitions: dict[tuple[UUID, int], None] = field(factory=dict)
    used_ms: int = 0
    connection: Connection = ("", 0)
    """The connection of the last request; the session ends with it."""

    def rotated(self) -> list[tuple[UUID, int]]:
        """Return the partitions, starting with another one each epoch, so that none starves."""
        rows = list(self.partitions)
        turn = self.epoch % len(rows) if rows else 0
        return rows[turn:] + rows[:turn]


class ShareSessions:
    """All share sessions of one broker, at most `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._sessions: dict[Holder, ShareSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def begin(self, holder: Holder, now_ms: int, connection: Connection = ("", 0)) -> Holder | None:
        """Begin a session. Return the holder whose idle session was ended to make room, or None. Raises
        `ShareSessionLimitReached`."""
        gone = None
        if holder not in self._sessions and len(self._sessions) >= self._limit:
            oldest = min(self._sessions, key=lambda one: self._sessions[one].used_ms)
            if self._sessions[oldest].used_ms + IDLE_MS > now_ms:
                raise ShareSessionLimitReached(f"there are {self._limit} share sessions already")
            gone = oldest
            del self._sessions[oldest]
        self._sessions[holder] = ShareSession(used_ms=now_ms, connection=connection)
        return gone

    def go_on(self, holder: Holder, epoch: int, now_ms: int, connection: Connection = ("", 0)) -> ShareSession:
        """Raises `ShareSessionNotFound`, `InvalidShareSessionEpoch`."""
        session = self._sessions.get(holder)
        if session is None:
            raise ShareSessionNotFound(f"member {holder.member_id} has no share session; begin one with epoch 0")
        if epoch != session.epoch:
            raise InvalidShareSessionEpoch(f"the epoch of this share session is {session.epoch}, not {epoch}")
        session.epoch = 1 if epoch == MAX_EPOCH else epoch + 1
        session.used_ms, session.connection = now_ms, connection
        return session

    def get(self, holder: Holder) -> ShareSession:
        """Raises `ShareSessionNotFound`."""
        session = self._sessions.get(holder)
        if session is None:
            raise ShareSessionNotFound(f"member {holder.member_id} has no share session")
        return session

    def end(self, holder: Holder) -> ShareSession | None:
        return self._sessions.pop(holder, None)

    def on_connection(self, connection: Connection) -> list[Holder]:
        return [holder for holder, session in self._sessions.items() if session.connection == connection]

    def of_group(self, group_id: str) -> list[Holder]:
        return [holder for holder in self._sessions if holder.group_id == group_id]
