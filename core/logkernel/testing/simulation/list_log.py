"""A log as a list: what a replica of a simulated cluster keeps on its disk.

It behaves as `storage.log.Log` does to the machines of a partition, down to the cache of leader epochs, which is the
real one; only its records are numbers in memory. A kill keeps all of it, a power cut what was flushed.
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.partition.producers import ProducerStates
from logkernel.storage.epochs import LeaderEpochCache
from logkernel.storage.simdisk import SimulatedDisk
from logkernel.vocabulary import BatchFacts, EpochStart


class ListLog:
    def __init__(self) -> None:
        self.entries: list[BatchFacts] = []
        self.start = 0
        self.end = 0
        self.flushed = 0
        self.high_watermark = 0
        """As last checkpointed: a start knows this one."""
        self._kept_epochs: tuple[EpochStart, ...] = ()
        self.producers = ProducerStates()
        self._trimmed = ProducerStates()
        """As of the log start: a snapshot outlives the records that it tells of."""
        self.forgot = False
        """All records were thrown away, and with them what was known of producers."""
        self.epochs = LeaderEpochCache(SimulatedDisk(), "/epochs")

    # ------------------------------------------------------------ writing

    def append(self, batches: list[BatchFacts]) -> None:
        for facts in batches:
            if facts.base_offset < self.end and self.entries:
                raise AssertionError(f"{facts.base_offset} is appended to a log that ends at {self.end}")
            self.epochs.assign(facts.leader_epoch, facts.base_offset)
            self.entries.append(evolve(facts))
            self.end = facts.last_offset + 1

    def begin_epoch(self, epoch: int) -> None:
        """A leader notes where its epoch begins, written or not (KAFKA-7415)."""
        self.epochs.assign(epoch, self.end)

    def truncate(self, offset: int) -> None:
        """Cut to end at `offset`, or before a batch that holds it."""
        while self.entries and self.entries[-1].last_offset >= offset:
            self.entries.pop()
        last = self.entries[-1].last_offset + 1 if self.entries else self.start
        self.end = min(self.end, offset) if not self.entries or last <= offset <= self.end else last
        self.end = min(self.end, max(last, self.start)) if self.entries else max(self.start, min(self.end, offset))
        self.flushed = min(self.flushed, self.end)
        self.high_watermark = min(self.high_watermark, self.end)
        self.epochs.truncate_from_end(self.end)
        self._kept_epochs = self.epochs.entries
        self._replay()

    def restart(self, offset: int) -> None:
        """Throw every record away; start and end at `offset`."""
        self.entries.clear()
        self.start = self.end = self.flushed = self.high_watermark = offset
        self.epochs.clear()
        self._kept_epochs = ()
        self._trimmed.reset()
        self.forgot = True
        self._replay()

    def advance_start(self, offset: int) -> None:
        self.start = max(self.start, offset)
        while self.entries and self.entries[0].last_offset < self.start:
            self._trimmed.replay(self.entries.pop(0))
        self.epochs.truncate_from_start(self.start)

    def flush(self) -> None:
        self.flushed = self.end
        self._kept_epochs = self.epochs.entries

    # ------------------------------------------------------------ crashes

    def kill(self) -> None:
        """The process is gone; its pages are not."""
        self.high_watermark = min(self.high_watermark, self.end)
        self._recover()

    def cut_power(self) -> None:
        """What was not flushed is gone."""
        self.entries = [facts for facts in self.entries if facts.last_offset < self.flushed]
        self.end = max(self.flushed, self.start)
        self._recover()

    def _recover(self) -> None:
        """Epochs: those kept in the checkpoint that the log still reaches, and those of its batches."""
        kept = [entry for entry in self._kept_epochs if entry.start_offset <= self.end]
        self.epochs = LeaderEpochCache(SimulatedDisk(), "/epochs")
        marks = {entry.epoch: entry.start_offset for entry in kept}
        for facts in self.entries:
            marks.setdefault(facts.leader_epoch, facts.base_offset)
        for epoch, start in sorted(marks.items()):
            self.epochs.assign(epoch, start)
        self.epochs.truncate_from_start(self.start)
        self._replay()

    def _replay(self) -> None:
        self.producers.load(evolve(entry, batches=list(entry.batches)) for entry in self._trimmed.entries())
        for facts in self.entries:
            self.producers.replay(facts)

    # ------------------------------------------------------------ reading

    def read(self, offset: int, most: int) -> list[BatchFacts]:
        """Up to `most` batches from the one that holds `offset` on."""
        low, high = 0, len(self.entries)
        while low < high:
            middle = (low + high) // 2
            if self.entries[middle].last_offset < offset:
                low = middle + 1
            else:
                high = middle
        return self.entries[low : low + most]
