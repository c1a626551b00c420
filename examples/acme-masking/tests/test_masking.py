"""The mask keeps the contract of produce interceptors, and masks."""

from typing import ClassVar

import acme_masking
import pytest

from logkernel.contracts import Refusal, RequestContext, WriteFacts
from logkernel.testing.contracts import ProduceInterceptorContract
from logkernel.vocabulary import Record

WRITE = WriteFacts("payments", 0, RequestContext(), 1_700_000_000_000, False)


class TestMask(ProduceInterceptorContract):
    name = "mask"
    settings: ClassVar = {"acme.mask.fields": "card,a"}


@pytest.mark.parametrize(
    ("value", "stored"),
    [
        (b'{"card": "4111111111111111", "sum": 7}', b'{"card": "************1111", "sum": 7}'),
        (b'{"card": 7}', b'{"card": 7}'),
        (b'{"sum":  8}', b'{"sum":  8}'),
        (None, None),
    ],
)
def test_it_masks_text_in_the_fields(value, stored):
    answer = acme_masking.Mask(["card"]).on_record(Record(b"k", value), WRITE)
    assert (answer.key, answer.value) == (b"k", stored)


@pytest.mark.parametrize("value", [b"{", b"7", b"\xff"])
def test_what_it_cannot_read_is_refused(value):
    assert isinstance(acme_masking.Mask(["card"]).on_record(Record(None, value), WRITE), Refusal)
