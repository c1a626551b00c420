"""Tables drawn in docstrings, as rows of cells: a test can hold what is drawn to what runs."""

from __future__ import annotations

import re
from itertools import pairwise


def drawn(text: str | None, *header: str) -> list[tuple[str, ...]]:
    """The rows under the line whose cells are `header`, up to the next empty line.

    Columns begin where the header's words do; a line whose first cell is empty goes on with the row above.
    """
    lines = iter((text or "").splitlines())
    for line in lines:
        if tuple(re.split(r" {2,}", line.strip())) == header:
            break
    else:
        raise AssertionError(f"no table has the header {header}")
    starts = [line.index(cell) for cell in header]
    rows: list[tuple[str, ...]] = []
    for line in lines:
        if not line.strip():
            break
        assert all(line[start - 1 : start].strip() == "" for start in starts[1:]), f"a cell is too wide: {line!r}"
        cells = [line[start:end].strip() for start, end in pairwise([*starts, len(line)])]
        if cells[0]:
            rows.append(tuple(cells))
        else:
            rows[-1] = tuple(f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True))
    assert rows
    return rows
