"""The column value as its format types it: `resolved` once by the planner, `Typing` in each task.

| format | `value.schema` | with a registry instead |
|---|---|---|
| json | DDL, or Spark's JSON of a type | JSON Schema |
| avro | Avro JSON | Avro; each value by the schema that wrote it |
| protobuf | path of a descriptor set, and `value.message` | protobuf; the newest one, field by number |

With a registry every value has its frame; without one none has. What a frame says is looked up: Avro needs the schema
that wrote a value, and a protobuf value may be of another message than the column.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from logkernel.attrs_lite import frozen
from logkernel.errors import ConfigError, LogkernelError

from . import avrovalues, jsonvalues, protovalues, registry
from .options import Subscription, ValueFormat

if TYPE_CHECKING:
    import pyarrow as pa

Decode = Callable[[bytes], Any]
NOT_FITTING: Final = (TypeError, ValueError, ArithmeticError)
"""What pyarrow raises for objects that a type does not hold; its own errors are among them."""


class UnreadableValue(LogkernelError):
    """A value is not of the format and schema named, and `value.mode` is failfast."""


@frozen
class Typing:
    """A format with all that was asked about its schema; it pickles."""

    name: str
    schema: str = ""
    """Avro JSON, or a protobuf descriptor set in base64; of JSON nothing but the column's type is needed."""
    message: str = ""
    registry_url: str = ""
    strict: bool = False
    ddl: str = ""
    """The column's type."""


def resolved(found: ValueFormat, subscription: Subscription | None) -> Typing | None:
    """None where values are not decoded. Raises `ConfigError`, `SchemaUnavailable`."""
    if found.name in ("binary", "string"):
        return None
    given = Typing(found.name, found.schema, found.message, found.registry_url, found.strict)
    return _completed(given, found.subject or _subject(subscription) if not found.schema else "")


def _subject(subscription: Subscription | None) -> str:
    topics = set(subscription.topics) | {row.topic for row in subscription.assigned} if subscription else set()
    if len(topics) != 1:
        raise ConfigError("value.subject is needed: only one topic's schema can be found by its name")
    return f"{topics.pop()}-value"


def _completed(given: Typing, subject: str) -> Typing:
    from logkernel.attrs_lite import evolve

    schema = given.schema
    if given.name == "protobuf":
        newest = registry.version(subject, "latest")
        schema = protovalues.file_set(schema) if schema else protovalues.from_registry(given.registry_url, newest)
        descriptor = protovalues.Messages(schema).named(given.message)
        return evolve(given, schema=schema, message=descriptor.full_name, ddl=protovalues.ddl(descriptor))
    if schema:
        ddl = jsonvalues.ddl_of_text(schema) if given.name == "json" else avrovalues.ddl_of_text(schema)
        return evolve(given, ddl=ddl)
    last = registry.latest(given.registry_url, subject)[1]
    found = _of_kind(last, given.name, subject, "give it whole by value.schema")
    if given.name == "json":
        import json

        return evolve(given, schema=found.text, ddl=jsonvalues.ddl_of_schema(json.loads(found.text)))
    return evolve(given, schema=found.text, ddl=avrovalues.ddl_of_text(found.text))


def _of_kind(schema: registry.Schema, name: str, place: object, remedy: str) -> registry.Schema:
    if schema.kind.lower() != name:
        raise registry.OtherKind(f"value.format={name}, but the registry's schema {place} is {schema.kind}")
    if schema.references and name != "protobuf":
        raise ConfigError(f"the registry's schema {place} refers to others; {remedy}")
    return schema


# ---------------------------------------------------------------- in a task


def column(values: pa.Array, typing: Typing, kind: pa.DataType) -> pa.Array:
    """Binary values as `kind`; null where one cannot be read. Raises `UnreadableValue` where the typing is strict, and
    `SchemaUnavailable` and `ConfigError` for a schema that the registry does not give, or that cannot be used."""
    import pyarrow as pa

    decode = decoder(typing, kind)
    rows: list[Any] = []
    for data in values.to_pylist():
        if data is None:
            rows.append(None)
            continue
        try:
            rows.append(decode(data))
        except Exception as error:  # decoders raise whatever they like for bytes that are not theirs
            if _of_the_query(error):
                raise
            if typing.strict:
                raise UnreadableValue(f"a value of {len(data)} bytes is not {typing.name}: {error!r}") from error
            rows.append(None)
    try:
        return pa.array(rows, kind)
    except NOT_FITTING:
        return pa.array([_fitting(row, kind, typing) for row in rows], kind)


def _of_the_query(error: Exception) -> bool:
    """Whether it is no fault of the one value. A schema of another format is: a stray record must not end a query."""
    return isinstance(error, ConfigError | registry.SchemaUnavailable) and not isinstance(error, registry.OtherKind)


def _fitting(row: Any, kind: pa.DataType, typing: Typing) -> Any:
    """What was read, or None where the column's type does not hold it: too many digits, half a surrogate pair."""
    import pyarrow as pa

    try:
        pa.array([row], kind)
    except NOT_FITTING as error:
        if typing.strict:
            raise UnreadableValue(f"a value is {typing.name}, but not of the column's type: {error}") from error
        return None
    return row


def decoder(typing: Typing, kind: pa.DataType) -> Decode:
    """One value's bytes to what `pa.array(…, kind)` takes."""
    if typing.name == "json":
        read = jsonvalues.reader(kind, typing.strict)
        return (lambda data: read(registry.unframed(data)[1])) if typing.registry_url else read
    if typing.name == "avro":
        return _avro(typing)
    return _protobuf(typing)


def _avro(typing: Typing) -> Decode:
    wanted = avrovalues.schema_of(typing.schema)
    if not typing.registry_url:
        return avrovalues.reader(wanted, None)

    @lru_cache(maxsize=1024)
    def writer(schema_id: int) -> Decode:
        written = registry.by_id(typing.registry_url, schema_id)
        found = _of_kind(written, "avro", schema_id, "values that it wrote cannot be read here")
        return avrovalues.reader(avrovalues.schema_of(found.text), wanted)

    def decode(data: bytes) -> Any:
        schema_id, rest = registry.unframed(data)
        return writer(schema_id)(rest)

    return decode


def _protobuf(typing: Typing) -> Decode:
    own = protovalues.Messages(typing.schema)
    read = protovalues.reader(own, own.named(typing.message))
    if not typing.registry_url:
        return read

    @lru_cache(maxsize=1024)
    def written(schema_id: int, path: tuple[int, ...]) -> str:
        messages = protovalues.Messages(protovalues.from_registry(typing.registry_url, f"/schemas/ids/{schema_id}"))
        name: str = messages.indexed(path).full_name
        return name

    def decode(data: bytes) -> Any:
        schema_id, rest = registry.unframed(data)
        path, body = protovalues.indexes(rest)
        name = written(schema_id, tuple(path))
        if name != typing.message:
            raise registry.Unframed(f"the message is a {name}, not a {typing.message}")
        return read(body)

    return decode
