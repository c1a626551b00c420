"""What became of each name of an operation on many: its result, or its error."""

from __future__ import annotations

from typing import Any

from logkernel.errors import KafkaError


def results_of(work: Any, names: Any) -> dict[Any, Any]:
    """The result of each name: what `work` returned for it, True if it returned nothing, or an exception."""
    try:
        found = work()
    except KafkaError as error:
        if error.results is None:
            raise
        return dict(error.results)
    return dict.fromkeys(names, True) if found is None else dict(found)


def found_of(results: dict[Any, Any]) -> dict[Any, Any]:
    """Those that are no error."""
    return {key: row for key, row in results.items() if not isinstance(row, Exception)}
