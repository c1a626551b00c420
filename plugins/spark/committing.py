"""Offsets of a stream as a consumer group's, for group tools to show: best effort, Spark's checkpoint is what counts.

The group has no members: its offsets are committed as those of a consumer that was assigned its partitions by hand.
A commit that fails is logged, and the next one tells of it as well.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from logkernel.errors import LogkernelError

from .options import Options
from .planning import Offsets

if TYPE_CHECKING:
    from logkernel.client.consumer.consumer import Consumer

TIMEOUT_S: Final = 10.0

log = logging.getLogger("logkernel.spark")


class GroupCommits:
    """Without `commitGroup` it does nothing. A connection is made by the first commit, and kept."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._consumer: Consumer | None = None
        self._last: Offsets = {}

    def commit(self, offsets: Offsets) -> None:
        """Commit what changed."""
        if self._options.commit_group is None:
            return
        changed: dict[tuple[str, int], int | tuple[int, int, str | None]] = {
            partition: offset for partition, offset in offsets.items() if self._last.get(partition) != offset
        }
        if not changed:
            return
        try:
            self._opened().commit(changed, TIMEOUT_S)
        except (LogkernelError, OSError) as error:
            log.warning("offsets are not committed: group=%s error=%r", self._options.commit_group, error)
        else:
            self._last = dict(offsets)

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _opened(self) -> Consumer:
        if self._consumer is None:
            import logkernel

            assert self._options.bootstrap is not None
            settings = {name.replace(".", "_"): text for name, text in self._options.client.items()}
            settings.update(client_id=self._options.group_id_prefix, enable_auto_commit="false")
            settings.pop("group_id", None)
            log_there = logkernel.connect(self._options.bootstrap)
            self._consumer = log_there.consumer(group=self._options.commit_group, **settings)
        return self._consumer
