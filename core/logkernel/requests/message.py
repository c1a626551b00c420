"""`@message`: an attrs class of a request's or response's fields that is cheap to make.

There are some three hundred of them. What `attrs.define` generates for comparing and showing each one is more than
half of its cost at import, so all share the two functions here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["message"]

if TYPE_CHECKING:
    from attrs import define as message
else:
    from attrs import define

    def message(cls: type) -> type:
        """Slotted fields with an `__init__`; equal where all fields are; not hashable."""
        made = define(cls, eq=False, repr=False, match_args=False)
        made.__eq__ = _equal
        made.__hash__ = None
        made.__repr__ = _show
        return made


def _equal(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return all(getattr(self, field.name) == getattr(other, field.name) for field in self.__attrs_attrs__)


def _show(self: Any) -> str:
    fields = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.__attrs_attrs__)
    return f"{type(self).__name__}({fields})"
