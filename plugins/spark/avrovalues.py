"""Values of Avro, by fastavro: a schema to DDL as spark-avro maps it, and bytes to what Arrow builds columns from.

| Avro | Spark |
|---|---|
| boolean, int, long, float, double, bytes, string | BOOLEAN, INT, BIGINT, FLOAT, DOUBLE, BINARY, STRING |
| enum, fixed | STRING, BINARY |
| record, array, map | STRUCT, ARRAY, MAP<STRING, …> |
| [null, T]; [int, long]; [float, double] | T; BIGINT; DOUBLE; other unions are refused |
| date, timestamp-*, local-timestamp-*, decimal | DATE, TIMESTAMP, TIMESTAMP_NTZ, DECIMAL |
| uuid, time-millis, time-micros | STRING, INT, BIGINT |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from io import BytesIO
from typing import Any, Final

from logkernel.errors import ConfigError

from .jsonvalues import quoted

PLAIN: Final = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "bytes": "BINARY",
    "string": "STRING",
    "null": "VOID",
}
LOGICAL: Final = {
    "date": "DATE",
    "timestamp-millis": "TIMESTAMP",
    "timestamp-micros": "TIMESTAMP",
    "local-timestamp-millis": "TIMESTAMP_NTZ",
    "local-timestamp-micros": "TIMESTAMP_NTZ",
}
RAW: Final = frozenset({"uuid", "time-millis", "time-micros"})
"""Logical types that are read as what they are stored as."""


def ddl_of_text(text: str) -> str:
    """Raises `ConfigError`."""
    return _ddl(_parsed(text), {}, ())


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        raise ConfigError(f"the Avro schema is not JSON: {text[:200]!r}") from None


def _ddl(schema: Any, names: dict[str, Any], inside: tuple[str, ...]) -> str:
    if isinstance(schema, list):
        return _union(schema, names, inside)
    if isinstance(schema, str):
        if schema in PLAIN:
            return PLAIN[schema]
        short = schema.rpartition(".")[2]
        if short in inside:
            raise ConfigError(f"the Avro record {schema!r} holds itself: Spark has no such type")
        if short not in names:
            raise ConfigError(f"the Avro type {schema!r} is not known")
        return _ddl(names[short], names, inside)
    if not isinstance(schema, Mapping):
        raise ConfigError(f"{schema!r} is not an Avro type")
    return _ddl_of_object(schema, names, inside)


def _ddl_of_object(schema: Mapping[str, Any], names: dict[str, Any], inside: tuple[str, ...]) -> str:
    kind = schema.get("type")
    logical = str(schema.get("logicalType", ""))
    name = str(schema.get("name", "")).rpartition(".")[2]
    if logical == "decimal" and kind in ("bytes", "fixed"):
        return f"DECIMAL({int(schema['precision'])},{int(schema.get('scale', 0))})"
    if logical in LOGICAL and kind in ("int", "long"):
        return LOGICAL[logical]
    if kind in ("enum", "fixed"):
        names[name] = schema
        return "STRING" if kind == "enum" else "BINARY"
    if kind == "array":
        return f"ARRAY<{_ddl(schema.get('items'), names, inside)}>"
    if kind == "map":
        return f"MAP<STRING, {_ddl(schema.get('values'), names, inside)}>"
    if kind != "record":
        return _ddl(kind, names, inside)
    names[name] = schema
    fields = (
        f"{quoted(field['name'])}: {_ddl(field['type'], names, (*inside, name))}" for field in schema.get("fields", ())
    )
    return f"STRUCT<{', '.join(fields)}>"


def _union(schema: list[Any], names: dict[str, Any], inside: tuple[str, ...]) -> str:
    rest = [branch for branch in schema if branch != "null"]
    if len(rest) == 1:
        return _ddl(rest[0], names, inside)
    for pair, wide in (({"int", "long"}, "BIGINT"), ({"float", "double"}, "DOUBLE")):
        if all(isinstance(branch, str) for branch in rest) and set(rest) == pair:
            return wide
    raise ConfigError(f"the Avro union {json.dumps(schema)} has no one type in Spark")


def _unlogical(schema: Any) -> Any:
    """The schema without the logical types that are read raw."""
    if isinstance(schema, list):
        return [_unlogical(branch) for branch in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _unlogical(found) if key in ("type", "items", "values") else found for key, found in schema.items()}
    if schema.get("logicalType") in RAW:
        kept.pop("logicalType")
    if "fields" in schema:
        kept["fields"] = [{**field, "type": _unlogical(field["type"])} for field in schema["fields"]]
    return kept


def schema_of(text: str) -> Any:
    """As fastavro wants it. Raises `ConfigError`."""
    fastavro = _fastavro()
    try:
        return fastavro.parse_schema(_unlogical(_parsed(text)))
    except Exception as error:
        raise ConfigError(f"the Avro schema cannot be used: {error!r}") from None


def reader(writer: Any, wanted: Any) -> Callable[[bytes], Any]:
    """Bytes that `writer` wrote, as `wanted` (None: as written) sees them."""
    read = _fastavro().schemaless_reader

    def decode(data: bytes) -> Any:
        return read(BytesIO(data), writer, wanted)

    return decode


def _fastavro() -> Any:
    try:
        import fastavro
    except ImportError:
        raise ConfigError("value.format=avro needs fastavro: pip install 'logkernel[avro]'") from None
    return fastavro
