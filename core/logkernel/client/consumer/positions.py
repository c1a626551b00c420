"""Where a consumer stands in each of its partitions, and what was fetched ahead of it. Pure.

    state        means                                             next
    UNKNOWN      the group's committed offset is asked for         FETCHING; RESETTING where there is none
    RESETTING    its leader is asked for an offset by time         FETCHING
    FETCHING     records are fetched from `fetch_offset` on        RESETTING when out of range; VALIDATING
    VALIDATING   a new leader is asked whether the log still has   FETCHING, perhaps from an earlier offset; an error
                 what was read (KIP-320)                           where the log was cut and the user must decide
    FAILED       an error waits for the next poll                  by a seek; FETCHING for what may pass

A seek leads to FETCHING or RESETTING from everywhere. Each change of place has a new `version`: an answer to a
question of an older one is not looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from attrs import define, field

from logkernel.contracts import Buffer
from logkernel.errors import LogkernelError
from logkernel.record import loops
from logkernel.record.batch import batches, parse_header
from logkernel.record.bounds import CodecFor
from logkernel.record.isolation import Stretches, batch_rows, seen_batches
from logkernel.vocabulary import BatchFacts, FileSlice, TopicPartition

UNKNOWN, RESETTING, FETCHING, VALIDATING, FAILED = range(5)
FEWEST_ROWS: Final = 64
"""So many are decoded at once, where the batch has them: a call costs as much as some records."""


class NoOffset(LogkernelError):
    """A partition has no committed offset, or lost the one it had, and auto.offset.reset is none."""


class LogTruncated(LogkernelError):
    """The new leader's log ends before the position: records that were read are lost (KIP-320)."""


class ConsumerRecord(NamedTuple):
    """A record as a consumer hands it out. Key and value are as the deserializers made them."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes | None], ...]
    leader_epoch: int


class Chunk:
    """What one fetch brought for one partition; decoded as it is taken."""

    __slots__ = (
        "_batches",
        "_data",
        "_decoder",
        "_held",
        "_name",
        "aborted",
        "bytes",
        "codec_for",
        "columns",
        "facts",
        "last_epoch",
        "rows",
        "taken",
        "verify_crc",
    )

    def __init__(
        self,
        name: TopicPartition,
        data: Buffer | FileSlice,
        aborted: list[tuple[int, int]],
        codec_for: CodecFor,
        verify_crc: bool,
    ) -> None:
        self.bytes = data.size if isinstance(data, FileSlice) else len(data)
        self.rows: list[ConsumerRecord] = []
        """The records that were decoded last ..."""
        self.taken = 0
        """... and how many of them were handed out: `0 <= taken <= len(rows)`."""
        self.facts: BatchFacts | None = None
        """The batch that `rows` come from."""
        self.columns: Any = None
        """Whoever takes the rest of it as columns."""
        self.last_epoch: int | None = -1
        """The leader epoch of all batches; None where they differ. Known after `last_offset`."""
        self.codec_for = codec_for
        self.verify_crc = verify_crc
        self.aborted = aborted
        """(producer id, first offset) of aborted transactions that a reader of what is committed passes over."""
        self._name = name
        self._data = data
        self._held: tuple[BatchFacts, bool] | None = None
        """The batch at hand, until all of it was decoded and its rows were handed out ..."""
        self._decoder: Stretches[ConsumerRecord] | None = None
        """... and the rest of it."""
        self._batches: Iterator[tuple[BatchFacts, bool]] | None = None

    def next_batch(self) -> tuple[BatchFacts, bool] | None:
        """Return the next whole batch and whether to read its records; None at the end."""
        if self._batches is None:
            self._batches = seen_batches(self.data, self.codec_for, self.aborted)
        found = next(self._batches, None)
        if found is not None:
            self.facts = found[0]
        return found

    def load(self, from_offset: int, most: int = FEWEST_ROWS) -> bool:
        """Decode the next visible records, about `most` of one batch; return False at the end.

        What is handed out at once is made at once: memory that serves again for the next rows stays near. Raises
        `CorruptMessage`, `InvalidRecord` …; what cannot be read is come to again.
        """
        decoder = self._decoder
        if decoder is not None and not decoder.left:
            self._held = self._decoder = decoder = None
        while True:
            if decoder is None:
                found = self._held or self.next_batch()
                if found is None:
                    return False
                self._held = found
                facts, visible = found
                if not visible or facts.last_offset < from_offset:
                    self._held = None
                    if facts.last_offset < from_offset:
                        continue
                    return True
                decoder = self._decoder = self._decoder_of(facts, from_offset)
            try:
                self.rows, self.taken = decoder.next(max(most, FEWEST_ROWS)), 0
            except Exception:
                self._decoder = None
                raise
            if self.rows or not decoder.left:
                return True

    def _decoder_of(self, facts: BatchFacts, from_offset: int) -> Stretches[ConsumerRecord]:
        return batch_rows(
            self.data, facts, self.codec_for, ConsumerRecord, self._name, from_offset, verify_crc=self.verify_crc
        )

    @property
    def batch_ended(self) -> bool:
        """Whether all of the batch at hand was decoded."""
        return self._decoder is None or not self._decoder.left

    def rewind(self) -> None:
        """What was decoded and not handed out is to be read by another reader, or from the batch's start."""
        self.rows, self.taken, self._decoder = [], 0, None

    @property
    def data(self) -> Buffer:
        """The bytes; of a slice of a file they are read when they are first looked at."""
        if isinstance(self._data, FileSlice):
            self._data = self._data.read()
        return self._data

    def last_offset(self) -> int | None:
        """The last offset of the whole batches; None where not one is whole. Raises `CorruptMessage`."""
        data = self.data
        at = loops.last_batch(data)
        if at is None:
            return None
        last = parse_header(data, at)
        first = parse_header(data, 0) if at else last
        self.last_epoch = last.leader_epoch if first.leader_epoch == last.leader_epoch else None
        return last.last_offset

    def epoch_before(self, position: int) -> int:
        """The leader epoch of the last batch that begins below this place in `data`."""
        if self.last_epoch is not None:
            return self.last_epoch
        epoch = -1
        for facts in batches(self.data):
            if facts.position >= position:
                break
            epoch = facts.leader_epoch
        return epoch


@define(eq=False)
class Failing:
    """What was asked for a partition fails, and is tried again."""

    error: Exception
    """The last one."""
    since_ms: int
    due_ms: int = 0
    """When the log says so next."""
    told: bool = False


@define(eq=False)
class Part:
    """One assigned partition."""

    name: TopicPartition
    state: int = UNKNOWN
    position: int = -1
    """The next offset that a poll returns; -1 where it is not known yet."""
    epoch: int = -1
    """The leader epoch of the record before `position`."""
    fetch_offset: int = -1
    checked_epoch: int = -1
    """The leader's epoch under which the position was last found good."""
    reset_ms: int | None = None
    """RESETTING: the timestamp to ask for; None: as auto.offset.reset says."""
    chunks: deque[Chunk] = field(factory=deque)
    buffered_bytes: int = 0
    paused: bool = False
    version: int = 0
    asking: bool = False
    """UNKNOWN, RESETTING, VALIDATING: the question is under way."""
    retry_ms: int = 0
    high_watermark: int = -1
    last_stable: int = -1
    log_start: int = -1
    closer: int = -1
    """The replica that a leader named as closer to client.rack, until `closer_ms`."""
    closer_ms: int = 0
    error: Exception | None = None
    failing: Failing | None = None
    """None while it is read."""

    def place(self, offset: int, epoch: int = -1) -> None:
        """Go on from here."""
        self.drop()
        self.state, self.position, self.fetch_offset, self.epoch = FETCHING, offset, offset, epoch
        self.checked_epoch = -1

    def reset(self, timestamp_ms: int | None = None) -> None:
        """Ask for a position."""
        self.drop()
        self.state, self.position, self.epoch, self.reset_ms = RESETTING, -1, -1, timestamp_ms

    def fail(self, error: Exception) -> None:
        self.drop()
        self.state, self.error = FAILED, error

    def drop(self) -> None:
        """What was fetched ahead or is on its way is not wanted any more."""
        self.version += 1
        self.asking, self.error, self.retry_ms, self.closer = False, None, 0, -1
        self.chunks.clear()
        self.buffered_bytes = 0

    def lag(self, committed_only: bool) -> int | None:
        """Return the number of visible records between the position and the end; None if not known."""
        end = self.last_stable if committed_only else self.high_watermark
        return None if end < 0 or self.position < 0 else max(0, end - self.position)
