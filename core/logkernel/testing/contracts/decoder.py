"""What every record decoder promises to tools: JSON values, or `CorruptMessage`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import strategies as st

from logkernel.contracts import RecordDecoder
from logkernel.errors import CorruptMessage, PluginError
from logkernel.kernel import Kernel
from logkernel.testing.contracts.kit import Kit, for_all, shown
from logkernel.vocabulary import Record

NOISE = st.none() | st.binary(max_size=60)


class DecoderContract(Kit[RecordDecoder]):
    """`logkernel.contracts.RecordDecoder`. `name` is the topic, and `samples` are some of its records."""

    kind = "decoder"
    methods = ("decode",)
    samples: Sequence[Record] = ()
    """Records as the service of the topic writes them."""

    def provide(self, kernel: Kernel, name: str) -> RecordDecoder:
        found = kernel.decoder(name)
        if found is None:
            raise PluginError(f"no plugin provides the decoder {name!r}")
        return found

    def test_records_of_its_topic_become_json(self) -> None:
        if not self.samples:
            pytest.skip("set `samples` to records of the topic")
        decoder = self.make()
        for record in self.samples:
            with self.calling(f"decode() of the sample {shown(record)}"):
                found = decoder.decode(record)
            self._judge(record, found)

    @for_all(80, key=NOISE, value=NOISE)
    def test_noise_becomes_json_or_is_refused(self, key: bytes | None, value: bytes | None) -> None:
        """A tool reads folders that are damaged, or written by a later version."""
        self._decode(Record(key, value))

    @for_all(60, data=st.data())
    def test_records_that_are_cut_off_become_json_or_are_refused(self, data: st.DataObject) -> None:
        if not self.samples:
            pytest.skip("set `samples` to records of the topic")
        record = data.draw(st.sampled_from(self.samples))
        key, value = record.key, record.value
        if key is not None:
            key = key[: data.draw(st.integers(0, len(key)))]
        if value is not None:
            value = value[: data.draw(st.integers(0, len(value)))] + data.draw(st.binary(max_size=4))
        self._decode(Record(key, value))

    def _decode(self, record: Record) -> None:
        decoder = self.make()
        with self.calling(f"decode() of {shown(record)}", CorruptMessage):
            try:
                found = decoder.decode(record)
            except CorruptMessage:
                return
        self._judge(record, found)

    def _judge(self, record: Record, found: Any) -> None:
        if not isinstance(found, tuple) or len(found) != 2:
            self.broken(f"decode() returned {shown(found)}; return (key, value)")
        try:
            json.dumps(found)
        except (TypeError, ValueError) as error:
            self.broken(f"decode() returned {shown(found)}, which JSON cannot hold ({error}); return JSON values")
        if record.value is None and found[1] is not None:
            self.broken(f"decode() returned the value {shown(found[1])} for a tombstone; return None for a null")
