"""Coordination `local`: one durable broker stores the cluster's metadata in a log in its data directory.

A change is a record: key `kind NUL key`, value JSON in UTF-8, or null for a deleted fact. The changes of one commit are
one batch, so that a crash keeps all of them or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from logkernel.contracts import Coordination, StateLog
from logkernel.hookspecs import hookimpl


@hookimpl
def logkernel_coordination(name: str, open_log: Callable[[], StateLog]) -> Coordination | None:
    if name != "local":
        return None
    from .coordination import LocalCoordination

    return LocalCoordination(open_log())


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("coordination", "local")]
