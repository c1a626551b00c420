"""attrs classes that are cheap to make: `@mutable` (mutable) and `@frozen` (frozen), with `field` and `evolve`.

A broker has to answer within 150 ms of its start. Importing attrs, and what it generates for each of the classes on
that way, took a quarter of the time, so they are made here: slots, and an `__init__` that is generated when the first
object is made. To the type checker they are attrs classes, and to attrs itself (`attrs.evolve`, `attrs.asdict`,
`attrs.fields`); a class that wants more of attrs (validators, converters, `kw_only`, ...) is defined by attrs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["evolve", "field", "frozen", "mutable"]

if TYPE_CHECKING:
    from attrs import define as mutable
    from attrs import evolve, field, frozen
else:
    from logkernel.attrs_lite.classes import evolve, field, frozen, mutable
