"""The known name that a misspelt one most likely means."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

ALIKE: Final = 0.3
"""Words that have less in common (`difflib`'s ratio) mean different things; `timeout` and `time` have 0.7."""

_UNITS = {
    "days": ("hours", "ms"),
    "day": ("hours", "ms"),
    "weeks": ("hours", "ms"),
    "hour": ("hours",),
    "hrs": ("hours",),
    "h": ("hours",),
    "min": ("minutes",),
    "mins": ("minutes",),
    "minute": ("minutes",),
    "seconds": ("ms", "minutes"),
    "secs": ("ms",),
    "sec": ("ms",),
    "s": ("ms",),
    "millis": ("ms",),
    "milliseconds": ("ms",),
    "mb": ("bytes",),
    "kb": ("bytes",),
    "gb": ("bytes",),
    "size": ("bytes",),
}
"""Units that people write → the units that settings come in, best first: letters alone would mislead here."""


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The nearest of `known`, or None where nothing is near."""
    import difflib

    names = set(known)
    plain = name.lower().replace("_", ".").replace("-", ".")
    if plain in names:
        return plain
    stem, _, unit = plain.rpartition(".")
    for word in _UNITS.get(unit, ()):
        if f"{stem}.{word}" in names:
            return f"{stem}.{word}"
    found = difflib.get_close_matches(name, sorted(names), 1, 0.6)
    return found[0] if found and not _means_another(plain.split("."), found[0].lower().split(".")) else None


def _means_another(words: Sequence[str], known: Sequence[str]) -> bool:
    """Whether one word stands in place of another that is not like it: `num.warmup.replicas` is not a misspelt
    `num.standby.replicas`."""
    import difflib

    return len(words) == len(known) and any(
        difflib.SequenceMatcher(None, word, other).ratio() < ALIKE for word, other in zip(words, known, strict=True)
    )
