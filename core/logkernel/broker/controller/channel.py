"""Requests from a broker to the controller, which may be the broker itself."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from logkernel.broker.controller.view import ControllerView
from logkernel.broker.turn import Turn
from logkernel.controller.controller import Controller
from logkernel.controller.image import NO_LEADER, ClusterImage
from logkernel.errors import InvalidReplicationFactor, TopicAlreadyExists

if TYPE_CHECKING:
    from logkernel.requests.topics import CreateTopicsRequest

log = logging.getLogger("logkernel.controller")

Send = Callable[[int, Any, Callable[[Any], None]], None]
"""(node id, request, done): `done` is called once, later, with the response, or with None where none came."""


class ControllerChannel:
    """Sends each request to the controller of that moment."""

    def __init__(self, turn: Turn, controller: Controller, send: Send, view: ControllerView) -> None:
        """`controller` builds requests with this broker's defaults; `view` knows the controller."""
        self._turn = turn
        self._controller = controller
        self._send = send
        self._view = view
        self._asked_topics: set[str] = set()
        self._too_few: dict[str, int] = {}
        """Topic of a service that waits for brokers → how many there were when that was logged."""

    def ask(self, request: Any, done: Callable[[Any], None]) -> None:
        """Send a request to the controller, which may be this broker; `done` as of `Send`, None if there is none."""
        node = self._view.controller_id
        if node == NO_LEADER:
            self._turn.call_soon(lambda: done(None))
        else:
            self._send(node, request, done)

    def ask_for_topic(self, name: str, image: ClusterImage) -> int:
        """Have a topic created that is asked for, as this broker would: `image` is the broker's. One request a topic is
        under way; nobody waits for it. A topic of a service waits until there are brokers for all of its replicas.
        Returns how many partitions this call asks for. Raises `KafkaError` for a topic that cannot be created."""
        request = None if name in self._asked_topics else self._creation(name, image)
        if request is None:
            return 0

        def done(response: Any) -> None:
            self._asked_topics.discard(name)
            for row in () if response is None else response.topics:
                if row.error_code not in (0, TopicAlreadyExists.code):
                    log.warning("topic not created: topic=%s error=%d %s", name, row.error_code, row.error_message)

        self._asked_topics.add(name)
        self.ask(request, done)
        return sum(topic.num_partitions for topic in request.topics)

    def _creation(self, name: str, image: ClusterImage) -> CreateTopicsRequest | None:
        """None while a topic of a service waits for brokers."""
        from logkernel.controller.topics import creation_request

        try:
            return creation_request(self._controller.auto_create(name, image))
        except InvalidReplicationFactor as error:
            if name not in self._controller.internal:
                raise
            if self._too_few.get(name) != len(image.nodes):
                self._too_few[name] = len(image.nodes)
                log.error("topic not created yet: topic=%s error=INVALID_REPLICATION_FACTOR %s", name, error)
            return None
