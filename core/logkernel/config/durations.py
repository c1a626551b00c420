"""ISO 8601 durations, as `by_duration:` takes them: where a reader begins that has no offset yet (KIP-1106)."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, Final

BY_DURATION: Final = "by_duration:"


class Reset:
    """One of some words, or `by_duration:` and an ISO 8601 duration that is not negative."""

    __slots__ = ("words",)

    def __init__(self, *words: str) -> None:
        self.words = words

    def __call__(self, value: Any) -> None:
        if value in self.words:
            return
        if not str(value).startswith(BY_DURATION):
            raise ValueError(f"Value must be {self}")
        duration_ms(str(value).removeprefix(BY_DURATION))

    def __str__(self) -> str:
        return f"{', '.join(self.words)} or by_duration:PnDTnHnMn.nS"


@cache
def _form() -> re.Pattern[str]:
    """Compiled when it is asked for: a start would wait for it."""
    return re.compile(
        r"P(?:(\d{1,9})D)?(?:T(?=\d)(?:(\d{1,9})H)?(?:(\d{1,9})M)?(?:(\d{1,9})(?:\.(\d{1,9}))?S)?)?", re.IGNORECASE
    )


def duration_ms(text: str) -> int:
    """Milliseconds of days, hours, minutes and seconds. Raises ValueError."""
    found = _form().fullmatch(text)
    if found is None or not any(found.groups()):
        raise ValueError(f"{text!r} is not an ISO 8601 duration; write e.g. P1DT2H3M4.5S")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups()[:4])
    fraction_ms = int((found.group(5) or "0").ljust(3, "0")[:3])
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + fraction_ms
