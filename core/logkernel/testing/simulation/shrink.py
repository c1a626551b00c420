"""Delta debugging: the smallest part of a list that still fails, in few tries (Zeller and Hildebrandt, 2002).

Ever smaller pieces are left out, as long as what remains fails.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def shrink(whole: Sequence[T], fails: Callable[[tuple[T, ...]], bool], most_tries: int) -> tuple[T, ...]:
    """A part of `whole`, in its order, of which `fails` says True as it does of the whole.

    No single item can be left out of it, unless `most_tries` ended the search.
    """
    kept = tuple(whole)
    pieces, tries = 2, 0
    if kept and fails(()):
        return ()
    while kept:
        size = max(1, len(kept) // pieces)
        for start in range(0, len(kept), size):
            rest = kept[:start] + kept[start + size :]
            tries += 1
            if tries > most_tries:
                return kept
            if fails(rest):
                kept, pieces = rest, max(2, pieces - 1)
                break
        else:
            if size == 1:
                return kept
            pieces = min(len(kept), pieces * 2)
    return kept
