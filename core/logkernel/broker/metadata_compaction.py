"""Replaces what a coordination keeps by a snapshot."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from logkernel.contracts import Coordination, MetadataChange
from logkernel.controller.compaction import due
from logkernel.errors import KafkaError

log = logging.getLogger("logkernel.admin")


class MetadataCompaction:
    """After a failure what is kept stays as it is; the next try is after the next start."""

    def __init__(self) -> None:
        self._failed = False
        self._snapshot_size = 0
        """Changes of the last snapshot."""

    def is_due(self, coordination: Coordination, size: int) -> bool:
        """Whether a snapshot of `size` changes is worth it."""
        return not self._failed and due(coordination.kept(), max(size, self._snapshot_size))

    def replace(self, coordination: Coordination, snapshot: Sequence[MetadataChange]) -> bool:
        """Returns False after a failure, which is logged."""
        try:
            coordination.replace(snapshot)
        except (OSError, KafkaError) as error:
            self._failed = True
            log.error("metadata log not compacted: error=%s", error)
            return False
        self._snapshot_size = len(snapshot)
        return True
