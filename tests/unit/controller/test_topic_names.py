"""Which names a topic may have."""

from __future__ import annotations

import pytest

from logkernel.controller.names import check_name
from logkernel.errors import InvalidTopicException


def refused(name: str) -> bool:
    try:
        check_name(name)
    except InvalidTopicException:
        return True
    return False


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "_", "-", "...", "0", "a" * 249])
def test_letters_digits_and_three_marks_are_taken(name: str) -> None:
    assert not refused(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a\n", "a/b", "ä", "٣", "a²", "a" * 250])
def test_nothing_else_is_taken(name: str) -> None:
    assert refused(name)
