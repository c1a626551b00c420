"""A response whose parts are answered one by one, now or later, and which leaves with the last of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

R = TypeVar("R")


class PendingResponse(Generic[R]):
    """One request under way. Count each part in `open_parts` when it is handed out, and call `part_done` once for each;
    call it once more when all are handed out."""

    __slots__ = ("_answer", "open_parts", "response")

    def __init__(self, answer: Callable[[R], None], response: R) -> None:
        self._answer = answer
        self.response = response
        """Filled in by the parts."""
        self.open_parts = 1
        """The one is the handler's own: no response leaves before every part is handed out."""

    def part_done(self) -> None:
        self.open_parts -= 1
        if not self.open_parts:
            self._answer(self.response)
