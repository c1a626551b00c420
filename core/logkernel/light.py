"""attrs classes that are cheap to make: `@message` (mutable) and `@value` (frozen).

A broker has to answer within 150 ms of its start, and there are hundreds of small classes. What `attrs.define`
generates for comparing, hashing and showing each one is more than half of its cost at import, so all share the
functions here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["message", "value"]

if TYPE_CHECKING:
    from attrs import define as message
    from attrs import frozen as value
else:
    from attrs import define

    def message(cls: type) -> type:
        """Slotted fields with an `__init__`; equal where all fields are; not hashable."""
        made = define(cls, eq=False, repr=False, match_args=False)
        made.__eq__, made.__hash__, made.__repr__ = _equal, None, _show
        return made

    def value(cls: type) -> type:
        """As `message`, but fields are set once, and it is hashable."""
        made = define(cls, frozen=True, eq=False, repr=False, match_args=False)
        made.__eq__, made.__hash__, made.__repr__ = _equal, _hash, _show
        return made


def _values(self: Any) -> tuple[Any, ...]:
    return tuple(getattr(self, field.name) for field in self.__attrs_attrs__)


def _equal(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def _show(self: Any) -> str:
    fields = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.__attrs_attrs__)
    return f"{type(self).__name__}({fields})"
