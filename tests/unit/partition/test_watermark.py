"""The table in `watermark` is what the function does."""

import pytest
from drawn import drawn

from logkernel.partition import watermark as module
from logkernel.partition.watermark import high_watermark

NOTHING = "unknown (-1)"
TABLE = drawn(module.__doc__, "current", "ends of the ISR (leader's first)", "result", "why")


@pytest.mark.parametrize(("current", "ends", "result", "why"), TABLE)
def test_the_watermark_is_what_is_drawn(current: str, ends: str, result: str, why: str) -> None:
    offsets = [-1 if end == NOTHING else int(end) for end in ends.split(", ")]
    assert high_watermark(int(current), offsets) == int(result), why


def test_without_a_replica_the_watermark_stands_still() -> None:
    assert high_watermark(4, []) == 4
