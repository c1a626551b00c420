"""Which names a topic may have."""

from __future__ import annotations

import pytest

from logkernel.controller.names import check_name
from logkernel.errors import InvalidTopicException


@pytest.mark.parametrize("name", ["a", "A-1_b.c", "_", "-", "...", "0", "a" * 249])
def test_letters_digits_and_three_marks(name: str) -> None:
    check_name(name)


@pytest.mark.parametrize("name", ["", ".", "..", "a b", "a\n", "a/b", "ä", "٣", "a²", "a" * 250])
def test_nothing_else(name: str) -> None:
    with pytest.raises(InvalidTopicException):
        check_name(name)
