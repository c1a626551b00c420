"""The log's sources in one process of Spark. A worker does one task after the other: what one opened, the next uses.

A source whose task failed or was not read to its end is closed instead. Spark ends workers that have nothing to do,
and what they have open with them.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from logkernel.vocabulary import Secret

from .options import Options

if TYPE_CHECKING:
    from logkernel.table import Source

MOST: Final = 4
"""Sources that wait for a task."""

_mutex = threading.Lock()
_waiting: dict[tuple[int, str], Source] = {}
"""By process, as a worker may be forked from another, and by what opened it."""


def arguments(options: Options) -> dict[str, Any]:
    """Of `open_source`."""
    return {**options.source(), "settings": {"client.id": options.group_id_prefix, **options.client}}


def opened(options: Options) -> Source:
    from logkernel.table import open_source

    return open_source(**arguments(options), patient=True)


@contextmanager
def borrowed(options: Options) -> Iterator[Source]:
    """A source for one task."""
    key = (os.getpid(), json.dumps(arguments(options), sort_keys=True, default=Secret.reveal))
    with _mutex:
        found = _waiting.pop(key, None)
    source = opened(options) if found is None else found
    try:
        yield source
    except BaseException:
        source.close()
        raise
    with _mutex:
        keep = key not in _waiting and len(_waiting) < MOST
        if keep:
            _waiting[key] = source
    if not keep:
        source.close()
