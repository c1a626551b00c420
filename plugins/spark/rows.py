"""The columns of a read: their DDL, and the log's Arrow batches as Spark wants them, to the type's last flag."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from logkernel.attrs_lite import frozen
from logkernel.errors import ConfigError

from .options import COLUMNS, Options
from .typed import Typing, column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

TYPES: Final = {
    "key": "BINARY",
    "value": "BINARY",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "timestampType": "INT",
    "headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>",
}
"""As Spark's Kafka connector has them."""


def names(options: Options) -> tuple[str, ...]:
    if options.columns is not None:
        return options.columns
    return (*COLUMNS, "headers") if options.include_headers else COLUMNS


def ddl(options: Options, typing: Typing | None) -> str:
    """The schema that a read has when the user gives none."""
    types = dict(TYPES)
    if typing is not None:
        types["value"] = typing.ddl
    elif options.value_format.name == "string":
        types["value"] = "STRING"
    return ", ".join(f"`{name}` {types[name]}" for name in names(options))


@frozen
class Layout:
    """What a task must hand out: `columns` are the log's, in Spark's order."""

    columns: tuple[str, ...]
    schema: Any
    """Spark's `StructType`."""
    typing: Typing | None

    @classmethod
    def of(cls, schema: StructType, typing: Typing | None) -> Layout:
        """Raises `ConfigError` for a column that the log has not, or not so: the user may name fewer, and `key` and
        `value` as strings."""
        for field in schema.fields:
            if field.name not in TYPES:
                raise ConfigError(f"there is no column {field.name!r}; the log has {', '.join(TYPES)}")
            _check(field, typing)
        return cls(tuple(field.name for field in schema.fields), schema, typing)

    def batches(self, found: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The log's batches (of `columns`) as Spark's."""
        import pyarrow as pa

        wanted = arrow_schema(self.schema)
        for batch in found:
            if batch.num_rows == 0:
                continue
            arrays = [self._array(batch.column(index), field) for index, field in enumerate(wanted)]
            yield pa.RecordBatch.from_arrays(arrays, schema=wanted)

    def _array(self, found: pa.Array, field: pa.Field) -> pa.Array:
        import pyarrow as pa

        if field.name == "value" and self.typing is not None:
            return column(found, self.typing, field.type)
        if found.type.equals(field.type):
            return found
        if pa.types.is_binary(found.type) and pa.types.is_string(field.type):
            return found.view(field.type)  # not looked at, as Spark's own cast does not
        return found.cast(field.type)


def _check(field: Any, typing: Typing | None) -> None:
    kind = field.dataType.simpleString()
    if field.name == "value" and typing is not None:
        return
    allowed: Sequence[str] = {
        "key": ("binary", "string"),
        "value": ("binary", "string"),
        "headers": ("array<struct<key:string,value:binary>>",),
    }.get(field.name, (TYPES[field.name].lower(),))
    if kind not in allowed:
        raise ConfigError(f"column {field.name!r} is {' or '.join(allowed)}, not {kind}")


def arrow_schema(schema: StructType) -> pa.Schema:
    """As Spark builds it to compare: its function has had two ways to say UTC."""
    from pyspark.sql.pandas.types import to_arrow_schema

    says: dict[str, Any] = {"timezone": "UTC"} if "timezone" in inspect.signature(to_arrow_schema).parameters else {}
    found: pa.Schema = to_arrow_schema(schema, **says)
    return found
