"""Values of JSON: a schema as DDL, or JSON Schema from a registry, and the text to what Arrow builds columns from.

As Spark's `from_json`, a field of another type is null by itself; but text that is no JSON is null, not a row of nulls.
With `value.mode=failfast` both fail the query. Strings take any JSON, as its text; times without a zone are UTC.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from logkernel.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

Convert = Callable[[Any], Any]
WHOLE_TYPE: Final = re.compile(r"(struct|array|map)\s*<", re.IGNORECASE)
DEEPEST: Final = 32
WIDE: Final = Context(prec=76, rounding=ROUND_HALF_UP)
"""Spark's decimals have up to 38 digits, where Python's own context has 28, and round so."""


class Mismatch(ValueError):
    """A value is not of its type."""


# ---------------------------------------------------------------- schemas


def ddl_of_text(text: str) -> str:
    """The type that `value.schema` means: columns ("a INT, b STRING"), one type, or Spark's JSON of one."""
    text = text.strip()
    if text.startswith(("{", '"')):
        from pyspark.sql.types import _parse_datatype_json_string

        try:
            return _parse_datatype_json_string(text).simpleString()
        except Exception as error:
            raise ConfigError(f"value.schema is neither DDL nor Spark's JSON of a type: {error}") from None
    return text if WHOLE_TYPE.match(text) else f"STRUCT<{text}>"


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def ddl_of_schema(schema: Any, depth: int = 0) -> str:
    """The type of a JSON Schema. What is not closer described is a string of its JSON. Raises `ConfigError`."""
    if depth > DEEPEST:
        raise ConfigError(f"the JSON schema is deeper than {DEEPEST}")
    if not isinstance(schema, Mapping):
        return "STRING"
    branches = [row for row in schema.get("oneOf") or schema.get("anyOf") or () if row != {"type": "null"}]
    if len(branches) == 1:
        return ddl_of_schema(branches[0], depth + 1)
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [name for name in kind if name != "null"]
        kind = kinds[0] if len(kinds) == 1 else None
    if kind == "object":
        return _ddl_of_object(schema, depth)
    if kind == "array":
        return f"ARRAY<{ddl_of_schema(schema.get('items'), depth + 1)}>"
    if kind == "string":
        return {"date-time": "TIMESTAMP", "date": "DATE"}.get(str(schema.get("format")), "STRING")
    return {"integer": "BIGINT", "number": "DOUBLE", "boolean": "BOOLEAN"}.get(str(kind), "STRING")


def _ddl_of_object(schema: Mapping[str, Any], depth: int) -> str:
    properties = schema.get("properties")
    if properties:
        fields = (f"{quoted(name)}: {ddl_of_schema(found, depth + 1)}" for name, found in properties.items())
        return f"STRUCT<{', '.join(fields)}>"
    more = schema.get("additionalProperties")
    return f"MAP<STRING, {ddl_of_schema(more, depth + 1)}>" if isinstance(more, Mapping) else "STRING"


# ---------------------------------------------------------------- values


def reader(kind: pa.DataType, strict: bool) -> Callable[[bytes], Any]:
    """Text to what `pa.array(…, kind)` takes. It raises `ValueError` for what is no JSON, `Mismatch` if strict."""
    convert = converter(kind, strict)
    exact = _has_decimals(kind)

    def read(data: bytes) -> Any:
        return convert(json.loads(data, parse_float=Decimal) if exact else json.loads(data))

    return read


def _has_decimals(kind: pa.DataType) -> bool:
    import pyarrow as pa

    return pa.types.is_decimal(kind) or any(_has_decimals(kind.field(index).type) for index in range(kind.num_fields))


def converter(kind: pa.DataType, strict: bool) -> Convert:
    """What was parsed, to what `pa.array(…, kind)` takes; null stays null."""
    make = _made(kind, strict)

    def convert(found: Any) -> Any:
        if found is None:
            return None
        try:
            return make(found)
        except (Mismatch, ValueError, ArithmeticError):
            if strict:
                raise
            return None

    return convert


def _made(kind: pa.DataType, strict: bool) -> Convert:
    import pyarrow as pa

    types = pa.types
    if types.is_struct(kind):
        return _struct({field.name: converter(field.type, strict) for field in kind})
    if types.is_map(kind):
        if not types.is_string(kind.key_type):
            raise ConfigError(f"value.schema: the keys of JSON are strings, not {kind.key_type}")
        return _map(converter(kind.item_type, strict))
    if types.is_list(kind):
        return _list(converter(kind.value_type, strict))
    if types.is_integer(kind):
        return _integer(kind.bit_width)
    for test, convert in (
        (types.is_boolean, _boolean),
        (types.is_floating, _floating),
        (types.is_string, _string),
        (types.is_binary, _binary),
        (types.is_date, _date),
    ):
        if test(kind):
            return convert
    if types.is_decimal(kind):
        return _decimal(kind.precision, kind.scale)
    if types.is_timestamp(kind):
        return _timestamp if kind.tz else _local_timestamp
    raise ConfigError(f"value.schema: JSON is not read as {kind}")


def _need(holds: bool, found: object, what: str) -> None:
    if not holds:
        raise Mismatch(f"{found!r} is not {what}")


def _struct(fields: Mapping[str, Convert]) -> Convert:
    def convert(found: Any) -> Any:
        _need(isinstance(found, dict), found, "an object")
        return {name: field(found.get(name)) for name, field in fields.items()}

    return convert


def _map(item: Convert) -> Convert:
    def convert(found: Any) -> Any:
        _need(isinstance(found, dict), found, "an object")
        return [(key, item(value)) for key, value in found.items()]

    return convert


def _list(item: Convert) -> Convert:
    def convert(found: Any) -> Any:
        _need(isinstance(found, list), found, "an array")
        return [item(value) for value in found]

    return convert


def _integer(bits: int) -> Convert:
    low, high = -(1 << (bits - 1)), 1 << (bits - 1)

    def convert(found: Any) -> Any:
        _need(isinstance(found, int) and not isinstance(found, bool) and low <= found < high, found, f"of {bits} bits")
        return found

    return convert


def _boolean(found: Any) -> Any:
    _need(isinstance(found, bool), found, "a boolean")
    return found


def _floating(found: Any) -> Any:
    if isinstance(found, str):
        _need(found in ("NaN", "Infinity", "-Infinity"), found, "a number")
    else:
        _need(isinstance(found, (int, float, Decimal)) and not isinstance(found, bool), found, "a number")
    return float(found)


def _string(found: Any) -> Any:
    if isinstance(found, str):
        return found
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False, default=str)


def _binary(found: Any) -> Any:
    _need(isinstance(found, str), found, "base64")
    return base64.b64decode(found, validate=True)


def _decimal(precision: int, scale: int) -> Convert:
    unit, beyond = Decimal(1).scaleb(-scale), Decimal(1).scaleb(precision - scale)

    def convert(found: Any) -> Any:
        _need(isinstance(found, (int, str, Decimal)) and not isinstance(found, bool), found, "a decimal")
        try:
            exact = Decimal(found).quantize(unit, context=WIDE)
            fits = abs(exact) < beyond
        except InvalidOperation:  # of NaN, too
            fits = False
        _need(fits, found, f"a decimal of {precision} digits")
        return exact

    return convert


def _date(found: Any) -> Any:
    _need(isinstance(found, str), found, "a date")
    return date.fromisoformat(found)


def _timestamp(found: Any) -> Any:
    if isinstance(found, (int, float, Decimal)) and not isinstance(found, bool):
        return datetime.fromtimestamp(float(found), UTC)
    _need(isinstance(found, str), found, "a time")
    time = datetime.fromisoformat(found)
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _local_timestamp(found: Any) -> Any:
    _need(isinstance(found, str), found, "a time")
    return datetime.fromisoformat(found).replace(tzinfo=None)
