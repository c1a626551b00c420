"""A broker's session with the coordination of another process: `contracts.SharedCoordination` over its UNIX socket.

A call blocks for its answer, at most `ANSWER_S`, but for `read_topic_settings`. A thread reads: answers, and events,
which it keeps until `poll`. The same thread says every quarter of the session's timeout that the process lives.

The session lives as long as its connection. Where that breaks, or an answer is late, nobody knows whether the call was
carried out; the session is lost, and the broker learns in a new one what holds.
"""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from logkernel.broker.control_socket import address
from logkernel.cluster.processes.messages import (
    SOCKET,
    VERSION,
    Frames,
    Message,
    changes_of,
    error_of,
    pack,
    rows_of,
)
from logkernel.contracts import MetadataChange, SessionEvents, SettingsAnswered
from logkernel.errors import InvalidRequest, KafkaStorageError

ANSWER_S: Final = 30.0
"""How long a call waits: longer than a disk's worst sync."""
BEATS: Final = 4
"""Signs of life within a session's timeout."""
READ_BYTES: Final = 1 << 18

Wakeup = Callable[[], object]
Notification = Callable[[SessionEvents], object]


class SocketSession:
    """See the module. Calls come from one thread, that of its broker."""

    stale_ms = 0

    def __init__(
        self,
        folder: str,
        timeout_ms: int,
        *,
        answer_s: float = ANSWER_S,
        soon: Callable[[Wakeup], object] | None = None,
    ) -> None:
        """Begin a session with the coordination in `folder`, which ends it after `timeout_ms` of silence.

        `soon` has the broker's wakeup called on the broker's thread; without it, the reading thread calls it. Raises
        `KafkaStorageError` if there is no coordination.
        """
        self._folder = folder
        self._timeout_ms = timeout_ms
        self._soon = soon
        self._answer_s = answer_s
        self._beat_s = timeout_ms / 1000 / BEATS
        self._events: SessionEvents | None = None
        self._wakeup: Wakeup | None = None
        self._waiting: deque[Notification] = deque()
        self._news = threading.Condition()
        self._sending = threading.Lock()
        self._answer: Message | None = None
        self._calls = 0
        self._reads: dict[int, SettingsAnswered] = {}
        """Call that nobody waits for → who gets its answer."""
        self._ended = False
        self._socket = _connect(folder, answer_s)
        self._reader = threading.Thread(target=self._read, name="logkernel-session", daemon=True)
        self._reader.start()
        try:
            self._call("hello", v=VERSION, timeout_ms=timeout_ms)
        except BaseException:
            self._end(told=False)
            raise

    # ------------------------------------------------------------ contracts.Coordination

    def changes(self, kinds: Collection[str] | None = None) -> Iterator[MetadataChange]:
        """What was kept, then the brokers that are announced now."""
        return iter(changes_of(self._call("changes", kinds=None if kinds is None else sorted(kinds))))

    def commit(self, changes: Sequence[MetadataChange]) -> None:
        self._call("commit", changes=rows_of(changes))

    def kept(self) -> int:
        return int(self._call("kept"))

    def replace(self, changes: Sequence[MetadataChange]) -> None:
        self._call("replace", changes=rows_of(changes))

    def close(self) -> None:
        """The session ends at once, as one does that says goodbye."""
        with contextlib.suppress(KafkaStorageError):
            self._call("close")
        self._end(told=False)

    # ------------------------------------------------------------ contracts.SharedCoordination

    def renew(self) -> SocketSession:
        self.close()
        return SocketSession(self._folder, self._timeout_ms, answer_s=self._answer_s, soon=self._soon)

    def announce(self, node_id: int, value: Mapping[str, Any]) -> int:
        return int(self._call("announce", node=node_id, value=value))

    def campaign(self, node_id: int) -> int | None:
        term = self._call("campaign", node=node_id)
        return None if term is None else int(term)

    def resign(self) -> None:
        """A session that is over is the controller's no longer."""
        with contextlib.suppress(KafkaStorageError):
            self._call("resign")

    def commit_as_controller(self, changes: Sequence[MetadataChange], term: int) -> None:
        self._call("commit_as_controller", changes=rows_of(changes), term=term)

    def broker_epochs(self) -> Mapping[int, int]:
        return {int(node): int(epoch) for node, epoch in self._call("broker_epochs")}

    def read_controller(self) -> tuple[int | None, int]:
        node_id, term = self._call("read_controller")
        return None if node_id is None else int(node_id), int(term)

    def partition_count(self, topic: str) -> int | None:
        count = self._call("partition_count", topic=topic)
        return None if count is None else int(count)

    def read_topic_settings(self, topics: Collection[str], answered: SettingsAnswered) -> None:
        self._check()
        self._calls += 1
        self._reads[self._calls] = answered
        self._send(pack({"call": "topic_settings", "id": self._calls, "topics": sorted(topics)}))

    def subscribe(self, events: SessionEvents, wakeup: Wakeup) -> None:
        """Subscribe; the first notification names the controller."""
        self._check()
        self._waiting.clear()
        self._events, self._wakeup = events, wakeup
        self._call("subscribe")

    def poll(self) -> None:
        events = self._events
        while self._waiting and events is not None:
            self._waiting.popleft()(events)

    # ------------------------------------------------------------ calls

    def _call(self, name: str, **arguments: Any) -> Any:
        """The result of one call. Raises what the coordination raised, `KafkaStorageError` once the session is over."""
        self._check()
        self._calls += 1
        frame = pack({"call": name, "id": self._calls, **arguments})
        self._answer = None
        self._send(frame)
        with self._news:
            if not self._news.wait_for(lambda: self._answer is not None or self._ended, self._answer_s):
                self._end_within_news()
        answer = self._answer
        if answer is None:
            raise KafkaStorageError(
                f"the coordination gave {name} no answer, and may have carried it out; begin a new session to see"
            )
        if "error" in answer:
            raise error_of(answer)
        return answer.get("result")

    def _check(self) -> None:
        if self._ended:
            raise KafkaStorageError("the session with the coordination is over; begin a new one")

    def _send(self, frame: bytes) -> None:
        try:
            with self._sending:
                self._socket.sendall(frame)
        except OSError:  # also where it took too long: half a frame may have left
            self._end()

    # ------------------------------------------------------------ the reading thread

    def _read(self) -> None:
        frames, poll = Frames(), select.poll()
        poll.register(self._socket, select.POLLIN)
        beat = pack({"beat": 1})
        next_beat_s = time.monotonic() + self._beat_s
        try:
            while not self._ended:
                wait_s = next_beat_s - time.monotonic()
                if wait_s <= 0:
                    self._send(beat)
                    next_beat_s = time.monotonic() + self._beat_s
                elif poll.poll(wait_s * 1000):
                    data = self._socket.recv(READ_BYTES)
                    if not data:
                        break
                    for message in frames.feed(data):
                        self._receive(message)
        except (OSError, InvalidRequest, KeyError, TypeError):
            pass  # the connection broke, or what came over it is no message: either way the session is over
        self._end()
        with self._sending:
            self._socket.close()

    def _receive(self, message: Message) -> None:
        event = message.get("event")
        if event == "changes":
            changes = changes_of(message["changes"])
            self._tell(lambda events: events.on_changes(changes))
        elif event == "controller":
            node, term = message["node"], int(message["term"])
            self._tell(lambda events: events.on_controller(node, term))
        elif message["id"] in self._reads:
            answered = self._reads.pop(message["id"])
            facts = None if "error" in message else changes_of(message["result"])
            self._tell(lambda events: answered(facts))
        elif message["id"] == self._calls:
            with self._news:
                self._answer = message
                self._news.notify_all()

    def _tell(self, notification: Notification) -> None:
        self._waiting.append(notification)
        wakeup = self._wakeup
        if wakeup is None:
            return
        if self._soon is None:
            wakeup()
        else:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody hears any more
                self._soon(wakeup)

    def _end(self, *, told: bool = True) -> None:
        with self._news:
            self._end_within_news(told=told)

    def _end_within_news(self, *, told: bool = True) -> None:
        if self._ended:
            return
        self._ended = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the reading thread, which closes it
        self._news.notify_all()
        if told:
            self._tell(lambda events: events.on_session("lost"))


def _connect(folder: str, timeout_s: float) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    made.settimeout(timeout_s)
    try:
        with address(folder, SOCKET) as path:
            made.connect(path)
    except OSError as error:
        made.close()
        raise KafkaStorageError(
            f"no coordination answers at {folder}/{SOCKET} ({error}); start `logkernel serve --processes` again"
        ) from error
    return made
