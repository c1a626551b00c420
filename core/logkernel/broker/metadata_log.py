"""The log that the broker lends to its coordination, in a folder `__logkernel_metadata-GENERATION`.

It is replaced by writing another generation beside it, under a name that is no log's, and then renaming that: one step,
before which the old one counts and after which the new one does. What an interrupted replacement left is removed when
the log is opened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

from logkernel.broker.runtime import Randomness
from logkernel.broker.timers import Clock
from logkernel.config.topic import TopicSettings
from logkernel.contracts import Codec
from logkernel.errors import CorruptMessage, KafkaStorageError
from logkernel.record.batch import batches
from logkernel.record.decode import decode_all
from logkernel.record.encode import encode_batch
from logkernel.storage.disk import Disk
from logkernel.storage.ledger import NoProducers
from logkernel.storage.log import Log
from logkernel.storage.names import FUTURE_DIR, LOG, STATE_TOPIC, offset_of, partition_of
from logkernel.vocabulary import Record

READ_BYTES = 1 << 20
BATCH_RECORDS = 500
"""Records of a replacement that go into one batch."""


def metadata_generations(disk: Disk, path: str) -> list[int]:
    """Generations of the log in a data directory, ascending."""
    found = [partition_of(folder) for folder in disk.listdir(path)]
    return sorted(name.partition for name in found if name is not None and name.topic == STATE_TOPIC)


def _no_codec(codec_id: int) -> Codec:
    raise CorruptMessage(f"the metadata log is never compressed (codec {codec_id})")


class DiskMetadataLog:
    """`contracts.StateLog` over a log of its own.

    Every change was synced before it was answered: a crash tears what comes last (`torn_is_well`), and that alone.
    Damage elsewhere is rot, and cutting the log there would forget topics, so it raises `CorruptMessage`.
    """

    def __init__(
        self,
        disk: Disk,
        path: str,
        *,
        torn_is_well: bool = True,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        self._disk = disk
        self._clock = clock or Clock()
        self._random = randomness or Randomness()
        self._path = path
        self._failure: OSError | None = None
        generations = metadata_generations(disk, path)
        self._generation = generations[-1] if generations else 0
        self._remove_leftovers(generations[:-1])
        if generations:
            self._check(self._folder(self._generation), torn_is_well)
        self._log = self._open(self._generation)

    def _open(self, generation: int, folder: str | None = None) -> Log:
        return Log.open(
            self._disk, self._path, STATE_TOPIC, generation, TopicSettings(), producers=NoProducers(), folder=folder
        )

    def _remove_leftovers(self, generations: Sequence[int]) -> None:
        for folder in self._disk.listdir(self._path):
            if folder.startswith(f"{STATE_TOPIC}-") and folder.endswith(FUTURE_DIR):
                self._disk.remove_tree(f"{self._path}/{folder}")
        for generation in generations:
            self._disk.remove_tree(self._folder(generation))

    def _check(self, folder: str, torn_is_well: bool) -> None:
        from logkernel.storage.recovery import rot

        for name in sorted(self._disk.listdir(folder)):
            if offset_of(name, LOG) is None:
                continue
            found = rot(self._disk, f"{folder}/{name}", torn_is_well=torn_is_well)
            if found is not None:
                raise CorruptMessage(
                    f"{folder}/{name}, byte {found[0]}: {found[1]}; the cluster's metadata is damaged. Take the folder"
                    f" from a copy, or let `logkernel repair` cut it there: topics made or changed later are lost"
                )

    def _folder(self, generation: int) -> str:
        return f"{self._path}/{STATE_TOPIC}-{generation}"

    def append(self, records: Sequence[Record], *, sync: bool) -> int:
        if self._failure is not None:
            raise KafkaStorageError(f"the metadata log takes no more since a failure: {self._failure}")
        try:
            self._write(self._log, records)
        except OSError as error:
            raise KafkaStorageError(f"the metadata log cannot be written: {error}") from error
        if sync:
            try:
                self._log.flush()
            except OSError as error:
                self._log.fail(error)  # whether the change is durable is not known: nothing may follow it
                raise KafkaStorageError(f"the metadata log cannot be synced, restart the broker: {error}") from error
        return self._log.end_offset

    def _write(self, log: Log, records: Sequence[Record]) -> None:
        wall_ms = self._clock.wall_ms()
        for record in records:
            if record.timestamp_ms < 0:
                record.timestamp_ms = wall_ms
        data = encode_batch(records, base_offset=log.end_offset, leader_epoch=0)
        log.append(data, list(batches(data)), wall_ms)

    def replace(self, records: Sequence[Record]) -> None:
        generation = self._generation + 1
        folder = f"{STATE_TOPIC}-{generation}.{self._random.uuid().hex}{FUTURE_DIR}"
        try:
            made = self._open(generation, folder)
            for first in range(0, len(records), BATCH_RECORDS):
                self._write(made, records[first : first + BATCH_RECORDS])
            made.close()
        except OSError:
            with contextlib.suppress(OSError):
                self._disk.remove_tree(f"{self._path}/{folder}")
            raise
        try:
            self._disk.rename(made.folder, self._folder(generation))
            self._disk.sync_dir(self._path)  # from here on the new one counts
            self._log.abandon()
            self._log = self._open(generation)
        except OSError as error:
            self._failure = error
            raise
        old, self._generation = self._generation, generation
        self._disk.remove_tree(self._folder(old))

    def records(self) -> Iterator[Record]:
        offset = self._log.start_offset
        while (found := self._log.read(offset, READ_BYTES)) is not None:
            decoded = decode_all(found.read(), _no_codec)
            if not decoded:
                return
            for record in decoded:
                if record.offset >= offset:
                    yield record
            offset = decoded[-1].offset + 1

    def close(self) -> None:
        self._log.close()
