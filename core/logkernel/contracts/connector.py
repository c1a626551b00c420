"""A connector offers the log to a query engine."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable


@runtime_checkable
class Connector(Protocol):
    """Offers the log to a query engine as tables and streams, and runs pipelines there."""

    def register(self, session: Any) -> None:
        """Register the log with a session of the engine, e.g. a `SparkSession`."""
        ...

    def pipeline(self, path: str, given: Mapping[str, str]) -> Pipeline:
        """Return the pipeline that the file `path` describes, checked. `given` are parameters. Raises `ConfigError`."""
        ...


class Pipeline(Protocol):
    """Jobs between logs and tables, read and checked. Nothing runs before `run`."""

    name: str

    def plan(self, only: Collection[str] = ()) -> Sequence[Mapping[str, Any]]:
        """Return what each step, or each step in `only`, reads, does and writes.

        Raises `ConfigError` for a name that no step has."""
        ...

    def run(
        self, tell: Callable[[Mapping[str, Any]], None], only: Collection[str] = (), master: str | None = None
    ) -> bool:
        """Run the steps in order; return False if one failed, which ends the run.

        `tell` gets the result of each step; the row of a failed step says why under "failed". Raises `ConfigError` for
        mistakes that only the engine can find."""
        ...
