"""Whether a batch of __consumer_offsets has anything for share groups is told by its columns."""

from __future__ import annotations

from array import array
from itertools import accumulate

import pytest

from logkernel.plugins.services.groups.records import group_key, offset_key
from logkernel.plugins.services.shares.members.machine import ShareGroupsMachine
from logkernel.record.layout import Columns, even_ends


def is_passed_over(keys: list[bytes], rows: int | None = None, ends: bytes | None = None) -> bool:
    machine = ShareGroupsMachine(200, 100, None, lambda *refused: None)  # type: ignore[arg-type]
    told = array("i", accumulate(map(len, keys), initial=0)).tobytes() if ends is None else ends
    columns = Columns(len(keys) if rows is None else rows, b"", b"", b"", told, b"".join(keys), b"", b"", b"", b"", b"")
    return machine.replay_columns(columns)


COMMITS = [offset_key("group", "topic", partition) for partition in range(20)]


def test_commits_alone_are_passed_over() -> None:
    assert is_passed_over(COMMITS)
    assert is_passed_over(COMMITS[:1])


@pytest.mark.parametrize("at", [0, 7, 19])
@pytest.mark.parametrize("kind", [0, 2, 3, 11, 17, 0x0101, 0x0001 << 8, 0xFFFF])
def test_a_key_of_another_kind_is_not(at: int, kind: int) -> None:
    other = kind.to_bytes(2, "big") + COMMITS[at][2:]
    assert not is_passed_over([*COMMITS[:at], other, *COMMITS[at + 1 :]])


def test_keys_of_more_than_one_length_are_not() -> None:
    assert not is_passed_over([*COMMITS, group_key("group")])
    assert not is_passed_over([b"", COMMITS[0] * 2])
    assert not is_passed_over([b"", b""])
    assert not is_passed_over([b"\0", b"\1"])


def test_columns_that_lie_are_not() -> None:
    ends = even_ends(20, len(COMMITS[0]))
    assert is_passed_over(COMMITS, ends=ends)
    for rows in (-1, 0, 1, 10, 19, 21):
        assert not is_passed_over(COMMITS, rows, ends)
    assert not is_passed_over([*COMMITS, b"\0"], 20, ends)
    assert not is_passed_over(COMMITS, ends=ends[:-4])
    assert not is_passed_over(COMMITS, ends=b"")


def test_ends_of_fields_of_one_length() -> None:
    assert array("i", even_ends(3, 5)).tolist() == [0, 5, 10, 15]
    assert even_ends(2**30, 4) == b""
