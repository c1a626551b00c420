"""Frames of the coordination's socket: cut at any byte, refused where they are none, with changes and errors whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from logkernel.cluster.processes.messages import (
    LENGTH,
    MAX_FRAME_BYTES,
    Frames,
    changes_of,
    error_of,
    error_row,
    pack,
    rows_of,
)
from logkernel.contracts import MetadataChange
from logkernel.errors import InvalidRequest, KafkaError, KafkaStorageError, StaleControllerEpoch

MESSAGES = [{"call": "commit", "id": 1, "changes": [["config", "ключ", {"a": "1"}], ["topic", "t", None]]}, {"beat": 1}]


@given(st.lists(st.integers(0, 120), max_size=6))
def test_messages_come_whole_however_the_bytes_are_cut(cuts: list[int]) -> None:
    data = b"".join(pack(message) for message in MESSAGES)
    frames, found, last = Frames(), [], 0
    for cut in [*sorted(cuts), len(data)]:
        found += list(frames.feed(data[last:cut]))
        last = max(last, cut)
    assert found == MESSAGES


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (LENGTH.pack(MAX_FRAME_BYTES + 1), "is longer than"),
        (LENGTH.pack(3) + b"{x}", "no JSON"),
        (LENGTH.pack(2) + b"[]", "not an object"),
        (LENGTH.pack(2) + b"\xff\xfe", "no JSON"),
    ],
)
def test_bytes_that_are_no_message_are_refused(data: bytes, told: str) -> None:
    with pytest.raises(InvalidRequest, match=told):
        list(Frames().feed(data))


def test_changes_come_back_as_they_were() -> None:
    changes = [MetadataChange("topic", "t", {"rows": [[1, 2]]}), MetadataChange("topic", "t", None)]
    assert changes_of(rows_of(changes)) == changes


@pytest.mark.parametrize("rows", [None, {}, [["topic"]], [["topic", 1, None]], [["topic", "t", "value"]]])
def test_rows_that_are_no_changes_are_refused(rows: object) -> None:
    with pytest.raises(InvalidRequest):
        changes_of(rows)


@pytest.mark.parametrize(
    ("error", "kind"),
    [(StaleControllerEpoch("over"), StaleControllerEpoch), (OSError(28, "full"), KafkaStorageError)],
)
def test_an_error_keeps_its_kind_where_that_is_of_the_protocol(error: Exception, kind: type[KafkaError]) -> None:
    found = error_of(error_row(7, error))
    assert type(found) is kind
    assert str(error) in str(found)
