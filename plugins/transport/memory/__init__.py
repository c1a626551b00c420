"""Transport `memory` (passes requests within one process) and coordination `memory` (lost at exit)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from logkernel.contracts import Coordination, StateLog, Transport
from logkernel.hookspecs import hookimpl


@hookimpl
def logkernel_coordination(name: str, open_log: Callable[[], StateLog]) -> Coordination | None:
    if name != "memory":
        return None
    from .coordination import MemoryCoordination

    return MemoryCoordination()


@hookimpl
def logkernel_transport(name: str) -> Transport | None:
    if name != "memory":
        return None
    from .transport import MemoryTransport

    return MemoryTransport()


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("transport", "memory"), ("coordination", "memory")]
