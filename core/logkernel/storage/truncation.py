"""What makes a log shorter: cuts at its end, drops at its start. `Log` calls it, and moves its bounds along."""

from __future__ import annotations

from logkernel.config.topic import TopicSettings
from logkernel.storage.dropped_files import RENAMED_AT_ONCE
from logkernel.storage.epochs import LeaderEpochCache
from logkernel.storage.log_folder import LogFolder
from logkernel.storage.producer_snapshots import ProducerSnapshots
from logkernel.storage.segments import Segments
from logkernel.vocabulary import SegmentFacts


class Truncation:
    """A cut has two steps: the records go (`cut`, `clear`); then what is known of them follows (`follow`), which makes
    the cut durable. Between the two the log's bounds are moved. Each raises `OSError`."""

    __slots__ = ("_epochs", "_folder", "_producers", "_segments")

    def __init__(
        self, segments: Segments, folder: LogFolder, epochs: LeaderEpochCache, producers: ProducerSnapshots
    ) -> None:
        self._segments = segments
        self._folder = folder
        self._epochs = epochs
        self._producers = producers

    # ------------------------------------------------------------ the end

    def cut(self, offset: int) -> int:
        """Truncate to `offset`, or to the start of the batch that contains it; return the new log end."""
        self._folder.dropped.rename()  # what is written behind the cut may come to have a name of theirs
        gone = self._segments.take_behind(offset)
        for segment in reversed(gone):
            self._folder.remove(segment)
        if gone:
            self._folder.sync()  # no segment may come back behind the cut
        return self._segments.active.truncate_to(offset)

    def clear(self, offset: int, wall_ms: int, settings: TopicSettings) -> None:
        """Throw everything away, and start an empty segment at `offset`."""
        self._folder.dropped.rename()
        for segment in reversed(self._segments):
            self._folder.remove(segment)
        self._segments.restart(self._folder.new_segment(offset, wall_ms, settings))
        self._epochs.clear()

    def follow(self, end: int) -> None:
        """The log was cut to end at `end`: leader epochs and producers follow."""
        self.forget_epochs(end)
        self._producers.cut(self._segments, end)
        self._folder.sync()

    def forget_epochs(self, end: int) -> None:
        """Forget epochs that begin at `end` or behind it, durably.

        They may begin at the end of a log from which nothing is cut: a leader that wrote nothing has its epoch noted
        there, against the records that the next leader has there (KAFKA-10706).
        """
        self._epochs.truncate_from_end(end)
        self._epochs.save()

    # ------------------------------------------------------------ the start

    def drop(self, count: int, wall_ms: int | None, settings: TopicSettings, *, rename: bool) -> list[SegmentFacts]:
        """Drop the oldest `count` segments; returns what they were."""
        if not count:
            return []
        self._producers.sync(self._segments[count].base)  # what it says of producers is said nowhere else then
        facts = self._segments.facts_of_first(count, settings.cleanup_policy)
        for segment in self._segments.take_first(count):
            self._folder.dropped.leave(segment.base, wall_ms)
        if rename:
            self._folder.dropped.rename(RENAMED_AT_ONCE)
        return facts

    def remove_first(self) -> int:
        """Remove the files of the oldest segment, which is not the only one, here and now; returns where it ended."""
        self._producers.sync(self._segments[1].base)
        (segment,) = self._segments.take_first(1)
        for path in self._folder.dropped.files_of(segment.base):
            if self._folder.disk.exists(path):
                self._folder.disk.remove(path)
        return segment.next_offset
