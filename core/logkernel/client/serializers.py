"""Turn keys and values into bytes and back. Names are Kafka's: `string` stands for StringSerializer, and so on."""

from __future__ import annotations

import json
from collections.abc import Callable
from struct import Struct
from typing import Any, Final
from uuid import UUID

from logkernel.errors import ConfigError

_I16, _I32, _I64, _F32, _F64 = Struct(">h"), Struct(">i"), Struct(">q"), Struct(">f"), Struct(">d")

Serializer = Callable[[str, Any], bytes | None]
"""(topic, object) → bytes."""

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
    """Return the serializer of a setting: a name, a function, or a class or object with `serialize(topic, value)`.

    None stays None, so that a tombstone can be sent.
    """
    if given is None:
        return None
    if isinstance(given, str):
        name = given.rpartition(".")[2].removesuffix("Serializer").lower().replace("bytearray", "bytes")
        if name not in PLAIN:
            raise ConfigError(f"there is no serializer {given!r}; use one of {', '.join(PLAIN)}")
        return _of_value(PLAIN[name])
    made = given() if isinstance(given, type) else given
    if hasattr(made, "serialize"):
        serialize: Serializer = made.serialize
        return serialize
    if callable(made):
        return _of_value(made)
    raise ConfigError(f"{given!r} is not a serializer; give a name, a callable, or an object with a method `serialize`")


def _of_value(function: Callable[[Any], bytes]) -> Serializer:
    return lambda topic, value: None if value is None else function(value)


PLAIN_BACK: Final[dict[str, Callable[[bytes], Any]]] = {
    "bytes": bytes,
    "string": lambda data: data.decode(),
    "short": lambda data: _I16.unpack(data)[0],
    "integer": lambda data: _I32.unpack(data)[0],
    "long": lambda data: _I64.unpack(data)[0],
    "float": lambda data: _F32.unpack(data)[0],
    "double": lambda data: _F64.unpack(data)[0],
    "uuid": lambda data: UUID(data.decode()),
    "json": json.loads,
}
Deserializer = Callable[[str, bytes | None], Any]
"""(topic, bytes) → object."""


def deserializer(given: Any) -> Deserializer | None:
    """Return the deserializer of a setting: a name, a function, or a class or object with `deserialize(topic, data)`.

    Raises `ConfigError`.
    """
    if given is None:
        return None
    if isinstance(given, str):
        name = given.rpartition(".")[2].removesuffix("Deserializer").lower().replace("bytearray", "bytes")
        if name not in PLAIN_BACK:
            raise ConfigError(f"there is no deserializer {given!r}; use one of {', '.join(PLAIN_BACK)}")
        return _of_bytes(PLAIN_BACK[name])
    made = given() if isinstance(given, type) and hasattr(given, "deserialize") else given
    if hasattr(made, "deserialize"):
        deserialize: Deserializer = made.deserialize
        return deserialize
    if callable(made):
        return _of_bytes(made)
    raise ConfigError(
        f"{given!r} is not a deserializer; give a name, a callable, or an object with a method `deserialize`"
    )


def _of_bytes(function: Callable[[bytes], Any]) -> Deserializer:
    return lambda topic, data: None if data is None else function(data)
