"""The decoders of internal topics keep the contract, on records that Kafka's layouts and our metadata log have."""

from __future__ import annotations

from logkernel.testing.contracts import DecoderContract
from logkernel.vocabulary import Record

COMMIT = bytes.fromhex("000100016700017400000000")
"""The key of what group g committed of t-0, in version 1."""


class TestConsumerOffsets(DecoderContract):
    name = "__consumer_offsets"
    samples = (
        Record(COMMIT, bytes.fromhex("00030000000000000005ffffffff0000000000000000000a")),
        Record(COMMIT, None),
    )


class TestTransactionState(DecoderContract):
    name = "__transaction_state"


class TestShareGroupState(DecoderContract):
    name = "__share_group_state"


class TestMetadata(DecoderContract):
    name = "__logkernel_metadata"
    samples = (Record(b"topic\0orders", b'{"id":"x"}'), Record(b"topic\0orders", None))
