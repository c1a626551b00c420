"""The network between brokers of one process, with the faults that a test wants of one.

| a link is | what is sent over it |
|---|---|
| well | arrives in order, later than now |
| cut | waits, and arrives in order when the cut is healed, as TCP would have it |
| to a paused broker | waits for the end of the pause |
| to a broker that is not there | fails at once, as does what waits for a broker that is killed |

Nothing arrives inside the call that sends it: no broker runs in the midst of another's turn.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection
from itertools import count
from typing import Any

from logkernel.broker.peers import CAPABILITIES, PeerLost
from logkernel.contracts import Answer, BrokerDoor, Failed, RequestContext

REPLICATION = "REPLICATION"
"""The name of the listener by which brokers of a process reach one another."""

Soon = Callable[[Callable[[], None]], object]
"""Runs something later, on the brokers' thread, in the order in which it was given."""


class ProcessNetwork:
    """See the module."""

    def __init__(self, soon: Soon) -> None:
        self._soon = soon
        self._doors: dict[int, BrokerDoor] = {}
        self._lives: dict[int, int] = {}
        """Node id → number of its incarnations: messages from or to an earlier one are dropped."""
        self._paused: set[int] = set()
        self._cuts: set[tuple[int, int]] = set()
        self._held: deque[tuple[int, int, Callable[[], None], Callable[[], None]]] = deque()
        """(source, target, delivery, failure) of what waits for a cut or a pause to end."""
        self._unanswered: dict[int, dict[int, Callable[[], None]]] = {}
        """Broker → the failures of requests that it got and has not answered, by number."""
        self._next_number = count()

    # ------------------------------------------------------------ who is there

    def join(self, node_id: int, door: BrokerDoor) -> None:
        self._doors[node_id] = door
        self._lives[node_id] = self._lives.get(node_id, 0) + 1

    def leave(self, node_id: int) -> None:
        """A broker stopped: requests that wait for it fail."""
        self._doors.pop(node_id, None)
        self._lives[node_id] = self._lives.get(node_id, 0) + 1
        self._paused.discard(node_id)
        for failure in self._unanswered.pop(node_id, {}).values():
            self._soon(failure)
        held, self._held = self._held, deque()
        for entry in held:
            if entry[1] == node_id:
                self._soon(entry[3])
            elif entry[0] != node_id:
                self._held.append(entry)

    def transport(self, node_id: int) -> InProcessTransport:
        """Return the transport with which broker `node_id` sends requests to the others."""
        return InProcessTransport(self, node_id)

    # ------------------------------------------------------------ faults

    def pause(self, node_id: int) -> None:
        self._paused.add(node_id)

    def resume(self, node_id: int) -> None:
        self._paused.discard(node_id)
        self._release()

    def is_paused(self, node_id: int) -> bool:
        return node_id in self._paused

    def cut(self, one: Collection[int], other: Collection[int], *, both_ways: bool = True) -> None:
        """Hold messages from `one` to `other`, and with `both_ways` also those from `other` to `one`."""
        self._cuts |= {(source, target) for source in one for target in other if source != target}
        if both_ways:
            self._cuts |= {(target, source) for source in one for target in other if source != target}

    def heal(self) -> None:
        self._cuts.clear()
        self._release()

    def _release(self) -> None:
        held, self._held = self._held, deque()
        for source, target, delivery, failure in held:
            self._carry(source, target, delivery, failure)

    # ------------------------------------------------------------ messages

    def _carry(self, source: int, target: int, delivery: Callable[[], None], failure: Callable[[], None]) -> None:
        if (source, target) in self._cuts or target in self._paused or self._is_behind(source, target):
            self._held.append((source, target, delivery, failure))
        else:
            self._soon(lambda: self._arrive(source, target, delivery, failure))

    def _is_behind(self, source: int, target: int) -> bool:
        """Something sent earlier over the same link waits."""
        return any(entry[0] == source and entry[1] == target for entry in self._held)

    def _arrive(self, source: int, target: int, delivery: Callable[[], None], failure: Callable[[], None]) -> None:
        if (source, target) in self._cuts or target in self._paused:  # meanwhile
            self._held.append((source, target, delivery, failure))
        else:
            delivery()

    def send(self, source: int, target: int, request: Any, answer: Answer, failed: Failed) -> None:
        number = next(self._next_number)
        lives = (self._lives.get(source, 0), self._lives.get(target, 0))

        def same() -> bool:
            return lives == (self._lives.get(source, 0), self._lives.get(target, 0))

        def fail() -> None:
            if self._lives.get(source, 0) == lives[0]:
                failed(PeerLost(f"broker {target} is not there; it is asked again when it is back"))

        def deliver() -> None:
            door = self._doors.get(target)
            if door is None or not same():
                self._soon(fail)
                return
            self._unanswered.setdefault(target, {})[number] = fail
            context = RequestContext(
                client_id=f"broker-{source}", client_host="localhost", connection_id=source, listener=REPLICATION,
                software_name="logkernel", capabilities=CAPABILITIES, internal=True, commands=True,
            )  # fmt: skip
            door.submit(request, context, respond)

        def respond(response: Any) -> None:
            if self._unanswered.get(target, {}).pop(number, None) is None:
                return  # it failed, as the broker went
            self._carry(target, source, lambda: answer(response) if same() else fail(), fail)

        if target not in self._doors:
            self._soon(fail)
        else:
            self._carry(source, target, deliver, fail)


class InProcessTransport:
    """`contracts.PeerTransport` of one broker. Messages within a process are not lost, so requests have no timeout."""

    def __init__(self, network: ProcessNetwork, node_id: int) -> None:
        self._network = network
        self._node_id = node_id
        self._closed = False

    def send(self, target: int, request: Any, answer: Answer, failed: Failed, timeout_ms: int) -> None:
        if not self._closed:
            self._network.send(self._node_id, target, request, answer, failed)

    def close(self) -> None:
        self._closed = True
