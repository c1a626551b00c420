"""The table in `watermark` is what the function does."""

import pytest

from logkernel.partition.watermark import high_watermark


@pytest.mark.parametrize(
    ("current", "ends", "expected"), [(0, [5], 5), (3, [9, 7, 8], 7), (7, [9, 4], 7), (2, [9, -1], 2), (4, [], 4)]
)
def test_high_watermark(current, ends, expected):
    assert high_watermark(current, ends) == expected
