"""From JSON to the objects that it describes, by their types. Pure; the reverse of `server.rows.plain`."""

from __future__ import annotations

import base64
import types
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any, Final, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from logkernel.testing.server.rows import BASE64

REQUESTS: Final = "logkernel.requests."
"""Where the classes of requests are."""


def request_of(kind: str, fields: Any) -> Any:
    """A request of `logkernel.requests`; `kind` is its class with its module. Raises `ValueError` for another class."""
    module, _, name = kind.rpartition(".")
    if not module.startswith(REQUESTS):
        raise ValueError(f"{kind} is no request")
    return structured(getattr(import_module(module), name), fields)


def structured(kind: Any, given: Any) -> Any:
    """The value of type `kind` that `given` describes."""
    if given is None:
        return None
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return structured(next(each for each in get_args(kind) if each is not type(None)), given)
    if origin is tuple and get_args(kind)[-1] is not Ellipsis:
        return tuple(structured(each, value) for each, value in zip(get_args(kind), given, strict=True))
    if origin in (list, tuple, set, frozenset):
        return origin(structured(get_args(kind)[0], each) for each in given)
    if origin is not None and issubclass(origin, Mapping):
        return {structured(get_args(kind)[0], name): structured(get_args(kind)[1], given[name]) for name in given}
    if kind is UUID:
        return UUID(given)
    if kind in (bytes, bytearray, memoryview):
        return _bytes(given)
    if isinstance(kind, type) and isinstance(given, dict) and kind is not dict:
        hints = _hints(kind)
        return kind(**{name: structured(hints[name], value) for name, value in given.items()})
    return kind(given) if kind in (int, float) else given


def _bytes(given: Any) -> bytes:
    return base64.b64decode(given[BASE64]) if isinstance(given, dict) else given.encode()


@cache
def _hints(kind: type) -> Mapping[str, Any]:
    return get_type_hints(kind)
