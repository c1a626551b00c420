"""What every client is built on: the network, the metadata, and calls that are tried until they succeed. Pure.

A call is a request with a target. It is sent when a node for it is ready, sent again after a retriable
error or a lost connection, and ends with its response, a fatal error or its deadline.

    target              goes to
    ANY                 the least loaded node
    CONTROLLER          the controller, as the metadata names it
    a number >= 0       that node
    ("group", id) or    its coordinator, which is looked up first, and again after NOT_COORDINATOR
    ("transaction", id)
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from random import Random
from typing import Any, Final

from attrs import define, field

from logkernel.client.cluster.metadata import Metadata
from logkernel.client.cluster.permissions import explained, request_name
from logkernel.errors import (
    REFUSALS,
    CoordinatorNotAvailable,
    GroupAuthorizationFailed,
    KafkaError,
    NetworkException,
    NotController,
    NotCoordinator,
    RequestTimedOut,
    TransactionalIdAuthorizationFailed,
    UnsupportedVersion,
    error_for,
)
from logkernel.peer.backoff import Backoff
from logkernel.peer.network import APART, DOWN, NONE, UP, Network
from logkernel.requests.groups import FindCoordinatorRequest

ANY: Final = "any"
CONTROLLER: Final = "controller"
BY_NAME: Final = frozenset({"topic_ids"})
"""Capabilities withheld: topics are asked for by their names, which the user gave."""
PATIENCE: Final = 2
"""So many connections are lost before a client that got no answer yet says so."""
KEY_TYPES: Final = {"group": 0, "transaction": 1}
NAMED_BY: Final[Mapping[type[Exception], str]] = {
    GroupAuthorizationFailed: "group",
    TransactionalIdAuthorizationFailed: "transaction",
}
"""Error → the kind of coordinator whose key it is about; another coordinator's is for something that is not named."""
Target = str | int | tuple[str, str]
Verdict = Callable[[Any], int]
"""From a response to the error code that decides on another attempt; 0 where the call is done."""

log = logging.getLogger("logkernel.client")


def no_error(response: Any) -> int:
    return int(getattr(response, "error_code", 0))


@define(eq=False)
class Call:
    """A request that is retried until it succeeds. `done(response, error)` is called once."""

    target: Target
    request: Any
    deadline_ms: int
    done: Callable[[Any, Exception | None], None]
    verdict: Verdict = no_error
    withheld: frozenset[str] = NONE
    timeout_ms: int | None = None
    """How long one attempt may take, where request.timeout.ms does not say."""
    once: bool = False
    """No retries: a node that cannot be reached is an error too, and the caller looks for another node."""
    node: int = -1
    """Where it was sent last."""
    attempts: int = 0
    retry_ms: int = 0
    error: Exception | None = None
    """The last failure, for the text of a timeout."""


@define(eq=False)
class _Attempt:
    """Takes the response to one attempt of a call."""

    core: ClientCore
    call: Call

    def complete(self, response: Any, error: Exception | None, now_ms: int) -> None:
        self.core.attempted(self.call, response, error, now_ms)


@define(eq=False)
class _Asked:
    """Takes the response to a metadata request."""

    core: ClientCore

    def complete(self, response: Any, error: Exception | None, now_ms: int) -> None:
        self.core.metadata_answered(response, error, now_ms)


@define
class Coordinator:
    """Where a group's or a transaction's coordinator is; `node` -1 while it is looked for."""

    node: int = -1
    asking: bool = field(default=False)


class ClientCore:
    """See the module. A driver calls `step`, carries `network.actions` out, and reports events to `network`."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        bootstrap: list[tuple[str, int]],
        random: Random,
        *,
        create: bool = True,
        apart: bool = False,
    ) -> None:
        """`create`: topics may be made by asking for them. `apart`: coordinators get connections of their own."""
        self.settings = settings
        self.random = random
        self.network = Network(settings, random)
        self.metadata = Metadata(settings, bootstrap, random, create=create)
        self._apart: dict[int, tuple[str, int]] | None = {} if apart else None
        self.closed = False
        self.refused: Exception | None = None
        """Why the last connection was refused, be it by a broker or by us: an error of `network.REFUSALS` ..."""
        self.refusals = 0
        """... and how many were. What waits for brokers fails at the next one."""
        self.quiet = False
        """Whether the last step had nothing to do here: another one at once would do nothing, either."""
        self._calls: list[Call] = []
        self._coordinators: dict[tuple[str, str], Coordinator] = {}
        self._backoff = Backoff(settings["retry.backoff.ms"], settings["retry.backoff.max.ms"], random)
        self._learned = -1
        self._broken = 0
        self._warned = False
        self._fresh = False

    def step(self, wall_ms: int, now_ms: int) -> int | None:
        """Do all that is due; returns the next time (monotonic ms) at which something will be, or None."""
        known = len(self.network.actions)
        self._learn(now_ms)
        network_ms = self.network.tick(now_ms)
        if self.network.refusals:
            self._take_refusals()
        if self._broken != self.network.broken:
            self._broken = self.network.broken
            self._warn_of_losses()
            self.metadata.request_update()
            self._forget_lost_coordinators()
        metadata_ms = self.metadata.due_ms()
        is_due = metadata_ms is not None and metadata_ms <= now_ms
        self.quiet = not (self._calls or is_due) and len(self.network.actions) == known
        if self.quiet:
            return earliest(network_ms, metadata_ms)
        metadata_ms = self._step_metadata(now_ms)
        calls_ms = self._step_calls(now_ms)
        return earliest(network_ms, metadata_ms, calls_ms)

    def _learn(self, now_ms: int) -> None:
        if self._learned != self.metadata.version:
            self._learned = self.metadata.version
            self.network.learn({**self.metadata.brokers, **(self._apart or {})}, now_ms)

    def _warn_of_losses(self) -> None:
        """Once, where no broker has answered yet: what a time-out will say may be minutes away, and a consumer that
        polls has none."""
        network = self.network
        if self._warned or network.responses or network.broken < PATIENCE or isinstance(network.last_loss, REFUSALS):
            return
        self._warned = True
        log.warning("no broker has answered, and the client goes on trying: %s", network.last_loss)

    # ------------------------------------------------------------ refusals

    def _take_refusals(self) -> None:
        """Fail the calls that would go to a broker where authentication just failed."""
        taken, self.network.refusals = self.network.refusals, {}
        for error in taken.values():
            self.refused = error
            self.refusals += 1
        waiting, self._calls = self._calls, []
        for call in waiting:
            refusal = self.refusal_for(self._bound_for(call.target))
            if refusal is None:
                self._calls.append(call)
            else:
                call.done(None, refusal)

    def _bound_for(self, target: Target) -> int:
        """The node that a call must go to; -1 where it is not known, or any will do."""
        if isinstance(target, int):
            return target
        if isinstance(target, tuple):
            found = self._coordinators.get(target)
            return -1 if found is None else found.node
        return self.metadata.controller_id if target == CONTROLLER else -1

    def refusal_for(self, node_id: int) -> Exception | None:
        """Why what waits for a node, or with -1 for any, waits in vain; None where it does not."""
        node = self.network.nodes.get(node_id)
        if node is not None:
            return node.lost if node.state == DOWN and isinstance(node.lost, REFUSALS) else None
        return None if any(node.state == UP for node in self.network.nodes.values()) else self.refused

    # ------------------------------------------------------------ metadata

    def _step_metadata(self, now_ms: int) -> int | None:
        metadata = self.metadata
        if not metadata.due(now_ms):
            return metadata.due_ms()
        node = self.network.least_loaded(now_ms)
        if node is None:
            # Every broker that is known was tried and failed just now: perhaps none of them is left.
            if any(known >= 0 for known in self.network.nodes) and metadata.rebootstrap():
                self._learn(now_ms)
            metadata.on_failure(now_ms)
            return metadata.due_ms()
        if self.network.ready(node, now_ms):
            self.network.send(node, metadata.ask(now_ms), _Asked(self), now_ms)
        return None

    def metadata_answered(self, response: Any, error: Exception | None, now_ms: int) -> None:
        if error is not None:
            self.metadata.on_failure(now_ms)
        else:
            self.metadata.on_response(response, now_ms)
            self._learn(now_ms)

    # ------------------------------------------------------------ calls

    def call(self, call: Call) -> None:
        self._calls.append(call)
        self._fresh = True

    def attempted(self, call: Call, response: Any, error: Exception | None, now_ms: int) -> None:
        """One attempt of `call` ended."""
        if error is None:
            code = call.verdict(response)
            if code == 0:
                call.done(response, None)
                return
            kind, about = _coordinated(call)
            error = error_for(code, getattr(response, "error_message", None), about=about)
            explained(error, request_name(call.request), about if NAMED_BY.get(type(error)) == kind else "")
        retriable = isinstance(error, KafkaError) and error.retriable and not isinstance(error, UnsupportedVersion)
        if isinstance(error, (NotCoordinator, CoordinatorNotAvailable, NetworkException)):
            self.forget_coordinator(call.target)
        if isinstance(error, NotController):
            self.metadata.request_update()
            retriable = True
        if not retriable or call.once:
            call.done(response, error)
            return
        call.error = error
        call.retry_ms = now_ms + self._backoff.delay_ms(call.attempts)
        call.attempts += 1
        self._calls.append(call)

    @property
    def calls(self) -> list[Call]:
        """Calls that wait for their turn; read-only."""
        return self._calls

    def _step_calls(self, now_ms: int) -> int | None:
        if not self._calls:
            return None
        self._fresh = False
        next_ms: int | None = None
        waiting, self._calls = self._calls, []
        for call in waiting:
            if call.deadline_ms <= now_ms:
                call.done(None, _too_late(call.request, call.error or self.network.last_loss))
                continue
            next_ms = earliest(next_ms, call.deadline_ms)
            if call.retry_ms > now_ms:
                next_ms = earliest(next_ms, call.retry_ms)
            else:
                node = self._node_for(call, now_ms)
                if node is not None and self.network.ready(node, now_ms):
                    limit_ms = self.settings["request.timeout.ms"] if call.timeout_ms is None else call.timeout_ms
                    left_ms = min(limit_ms, call.deadline_ms - now_ms)
                    call.node = node
                    self.network.send(node, call.request, _Attempt(self, call), now_ms, left_ms, call.withheld)
                    continue
                if call.once and node in self.network.nodes and not self.network.usable(node, now_ms):
                    call.done(None, NetworkException(f"node {node} cannot be reached"))
                    continue
            self._calls.append(call)
        return now_ms if self._fresh else next_ms

    def _node_for(self, call: Call, now_ms: int) -> int | None:
        target = call.target
        if isinstance(target, int):
            return target
        if isinstance(target, tuple):
            return self.coordinator(target, call.deadline_ms)
        if target == CONTROLLER and self.metadata.updates:
            controller = self.metadata.controller_id
            if controller in self.metadata.brokers:
                return controller
        elif target == CONTROLLER:
            return None
        return self.network.least_loaded(now_ms)

    # ------------------------------------------------------------ coordinators

    def coordinator(self, key: tuple[str, str], deadline_ms: int) -> int | None:
        """The node of a coordinator; None while it is looked for."""
        found = self._coordinators.setdefault(key, Coordinator())
        if found.node >= 0 and (found.node in self.network.nodes or self._learned != self.metadata.version):
            return found.node
        found.node = -1
        if not found.asking:
            found.asking = True
            self.call(
                Call(
                    ANY,
                    FindCoordinatorRequest(key=key[1], key_type=KEY_TYPES[key[0]], coordinator_keys=[key[1]]),
                    deadline_ms,
                    lambda response, error: self._found(key, response, error),
                    _coordinator_error,
                )
            )
        return None

    def _forget_lost_coordinators(self) -> None:
        """Those that cannot be reached, or are no brokers of the cluster any more: others may coordinate by now."""
        nodes = self.network.nodes
        for key, found in list(self._coordinators.items()):
            if found.node >= 0 and (found.node not in nodes or nodes[found.node].failures):
                del self._coordinators[key]

    def forget_coordinator(self, target: Target) -> None:
        if isinstance(target, tuple):
            self._coordinators.pop(target, None)

    def _found(self, key: tuple[str, str], response: Any, error: Exception | None) -> None:
        entry = self._coordinators.setdefault(key, Coordinator())
        entry.asking = False
        if error is not None:
            self._coordinators.pop(key, None)
            if not isinstance(error, RequestTimedOut):
                self._fail_calls(key, error)
            return
        row = response.coordinators[0]
        entry.node = row.node_id
        if self._apart is not None:
            entry.node = APART + row.node_id
            self._apart = {entry.node: (row.host, row.port)}
            self.metadata.version += 1
        elif row.node_id not in self.metadata.brokers:
            self.metadata.brokers[row.node_id] = (row.host, row.port)
            self.metadata.version += 1

    def _fail_calls(self, target: Target, error: Exception) -> None:
        failed = [call for call in self._calls if call.target == target]
        self._calls = [call for call in self._calls if call.target != target]
        for call in failed:
            call.done(None, error)


def _coordinated(call: Call) -> tuple[str, str]:
    """The kind and the name of the group or transactional id whose coordinator is asked, or looked for; else ""."""
    if isinstance(call.request, FindCoordinatorRequest):
        return next(kind for kind, key_type in KEY_TYPES.items() if key_type == call.request.key_type), call.request.key
    return call.target if isinstance(call.target, tuple) else ("", "")


def _coordinator_error(response: Any) -> int:
    if response.coordinators:
        return int(response.coordinators[0].error_code)
    return int(response.error_code) or CoordinatorNotAvailable.code


def earliest(*times_ms: int | None) -> int | None:
    """The smallest of some times, of which any may be None."""
    first_ms: int | None = None
    for time_ms in times_ms:
        if time_ms is not None and (first_ms is None or time_ms < first_ms):
            first_ms = time_ms
    return first_ms


def _too_late(request: Any, error: Exception | None) -> RequestTimedOut:
    said = f"{type(request).__name__} did not succeed in time"
    return RequestTimedOut(with_cause(said, error, "try again, or raise the timeout"))


def with_cause(said: str, error: Exception | None, remedy: str) -> str:
    """The text of a time-out, with what was last lost or failed: if that has a remedy, no other is given."""
    why = "" if error is None else f": {type(error).__name__}: {error}"
    return f"{said}{why}" if ";" in why else f"{said}{why}; {remedy}"
