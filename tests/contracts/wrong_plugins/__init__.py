"""Plugins that break one promise each, so that the contract kits prove that they can fail.

A module for each module of `logkernel.testing.contracts`; its `WRONG` has a row for every promise of the kit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Wrong(NamedTuple):
    """`breaks`: the kit's test that has to fail; `says`: a pattern of what it says; `suite`: what the subclass of the
    kit has."""

    breaks: str
    says: str
    suite: Mapping[str, Any]


def made(factory: Callable[[Any], object]) -> dict[str, Any]:
    """A suite that makes its object by `factory(suite)`."""
    return {"make": factory}
