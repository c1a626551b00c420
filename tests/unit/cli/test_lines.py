"""Lines of a stream become records, however the stream is cut."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkernel.cli import produce


class Dribble(io.BytesIO):
    """Gives a few bytes at a time, as a pipe may."""

    def __init__(self, data: bytes, step: int) -> None:
        super().__init__(data)
        self._step = step

    def read1(self, size: int | None = -1, /) -> bytes:
        return self.read(self._step)


@given(st.lists(st.binary(max_size=9)), st.sampled_from([b"\n", b"ab", b"\0\0\0"]), st.integers(1, 7), st.booleans())
def test_records_are_what_lies_between_ends(rows: list[bytes], end: bytes, step: int, closed: bool) -> None:
    data = end.join(rows) + (end if closed else b"")
    told: list[int] = []
    found = list(produce._split(Dribble(data, step), end, told.append))
    expected = data.split(end)
    if not expected[-1]:
        expected.pop()
    assert found == expected
    assert sum(told) == len(data)


def test_a_record_without_an_end_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(produce, "LONGEST_LINE_BYTES", 10)
    with pytest.raises(produce.ConfigError, match="--delimiter"):
        list(produce._split(Dribble(b"x" * 100, 3), b"\n", lambda done: None))
