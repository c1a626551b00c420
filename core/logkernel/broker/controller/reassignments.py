"""Moves of replicas between brokers: begun and cancelled by administrators, ended when the new replicas are in sync."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from logkernel.broker.controller.commits import Commits
from logkernel.broker.controller.live_brokers import LiveBrokers
from logkernel.contracts import MetadataChange
from logkernel.controller.orders import Orders

if TYPE_CHECKING:
    from logkernel.requests.placement import (
        AlterPartitionReassignmentsRequest,
        AlterPartitionReassignmentsResponse,
    )


log = logging.getLogger("logkernel.controller")


class Reassignments:
    """Of one term."""

    def __init__(self, orders: Orders, brokers: LiveBrokers, commits: Commits) -> None:
        self._orders = orders
        self._brokers = brokers
        self._commits = commits

    def alter(self, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
        """Begin or cancel moves. Raises `NotController`, `KafkaError`."""
        from logkernel.controller import reassignment

        response: AlterPartitionReassignmentsResponse = self._commits.commit(
            reassignment.alter_reassignments(request, self._orders.image, self._brokers.eligible.keys())
        )
        return response

    def take_up(self, asked: Sequence[MetadataChange]) -> None:
        """Begin the moves that these facts of kind "asked_move" ask for."""
        from logkernel.controller import reassignment

        found = reassignment.take_up(self._orders.image, asked, self._brokers.eligible.keys())
        for key, error in found.response:
            log.warning("a reassignment that was asked for is refused: partition=%s error=%s", key, error)
        self._commits.attempt(found)

    def finish(self, names: Sequence[tuple[str, int]]) -> None:
        """End the moves of these partitions whose new replicas are in sync by now."""
        topics = self._orders.image.topics
        rows = (topics[topic].partitions[index] for topic, index in names)
        if any(row.adding or row.removing for row in rows):
            self._finish(names)

    def finish_all(self) -> None:
        from logkernel.controller import reassignment

        self._finish(reassignment.moving(self._orders.image))

    def _finish(self, names: Sequence[tuple[str, int]]) -> None:
        from logkernel.controller import reassignment

        self._commits.attempt(reassignment.finish(self._orders.image, names, self._brokers.eligible.keys()))
