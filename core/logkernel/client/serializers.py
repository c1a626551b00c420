"""Keys and values to bytes. Names are Kafka's: `string` stands for StringSerializer, and so on."""

from __future__ import annotations

import json
from collections.abc import Callable
from struct import Struct
from typing import Any, Final
from uuid import UUID

from logkernel.client.settings import Serializer
from logkernel.errors import ConfigError

_I16, _I32, _I64, _F32, _F64 = Struct(">h"), Struct(">i"), Struct(">q"), Struct(">f"), Struct(">d")

PLAIN: Final[dict[str, Callable[[Any], bytes]]] = {
    "bytes": bytes,
    "string": lambda value: str(value).encode(),
    "short": _I16.pack,
    "integer": _I32.pack,
    "long": _I64.pack,
    "float": _F32.pack,
    "double": _F64.pack,
    "uuid": lambda value: str(UUID(str(value))).encode(),
    "json": lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode(),
}


def serializer(given: Any) -> Serializer | None:
    """From the setting: a name, a function of the object, or a class or object with `serialize(topic, value)`.

    None stays None, so that a tombstone can be sent.
    """
    if given is None:
        return None
    if isinstance(given, str):
        name = given.rpartition(".")[2].removesuffix("Serializer").lower().replace("bytearray", "bytes")
        if name not in PLAIN:
            raise ConfigError(f"no serializer is called {given!r} (known: {', '.join(PLAIN)})")
        return _of_value(PLAIN[name])
    made = given() if isinstance(given, type) else given
    if hasattr(made, "serialize"):
        serialize: Serializer = made.serialize
        return serialize
    if callable(made):
        return _of_value(made)
    raise ConfigError(f"{given!r} is no serializer: neither a name, nor callable, nor with a method `serialize`")


def _of_value(function: Callable[[Any], bytes]) -> Serializer:
    return lambda topic, value: None if value is None else function(value)
