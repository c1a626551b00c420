"""A request's items apart into those that are allowed and those that are refused."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from logkernel.attrs_lite import evolve
from logkernel.broker.authorization.asking import Asking
from logkernel.broker.authorization.outcome import Answered, Outcome, Part
from logkernel.vocabulary import AclOperation, ResourceType

T = TypeVar("T")


def apart(
    asking: Asking,
    operation: AclOperation,
    items: Sequence[T],
    name_of: Callable[[T], str | None],
    kind: ResourceType = ResourceType.TOPIC,
) -> tuple[list[T], list[T]]:
    """Return the items that are allowed, and those that are refused. The handler refuses one without a name."""
    if len(items) == 1:  # most requests of a client at work
        name = name_of(items[0])
        return (list(items), []) if name is None or asking.may(operation, kind, name) else ([], list(items))
    named = [(item, name_of(item)) for item in items]
    allowed = asking.those(operation, kind, (name for _, name in named if name is not None))
    kept = [item for item, name in named if name is None or name in allowed]
    return kept, [item for item, name in named if name is not None and name not in allowed]


def without(request: Any, field: str, kept: Sequence[Any], response: Any, rows_field: str, rows: list[Any]) -> Outcome:
    """The request with only `kept` in its field; `rows`, of those that are refused, are added to the response.
    `response` is an empty one, for a request of which nothing is left."""
    if not rows:
        return None
    if not kept:
        getattr(response, rows_field).extend(rows)
        return Answered(response)

    def amend(found: Any) -> Any:
        getattr(found, rows_field).extend(rows)
        return found

    return Part(evolve(request, **{field: kept}), amend)
