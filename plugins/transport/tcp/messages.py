"""The generic codec: bytes to versionless objects and back, compiled from `kio`'s schemas.

`kio` holds Kafka's messages at every version as dataclasses whose fields carry their wire type, tag and nullability;
`schemas/` holds those that it lacks. From such a class and our versionless class of the same fields this module builds,
at first use, one closure that reads straight into our object and one that writes it. The values stay plain
(milliseconds and error codes are ints, an absent topic id is `NO_ID`), so kio's own entities are never made.

- A field that a version lacks keeps the default of our class on reading and is left out on writing.
- None in a field that has no null at this version is written as the empty string, bytes or array.
- Fixed-width neighbours are read and written by one `struct`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import datetime, timedelta
from functools import cache
from operator import attrgetter
from struct import Struct
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints
from uuid import UUID

from attrs import frozen

from logkernel.vocabulary import NO_ID

from .loading import LOADING, load_module
from .wire import I64, Cursor, WireError, put_length, put_string, put_tagged

Read = Callable[[Cursor], Any]
Write = Callable[[bytearray, Any], None]

FIXED: Final = {
    "bool": "?", "int8": "b", "int16": "h", "int32": "i", "int64": "q", "uint16": "H", "float64": "d",
    "error_code": "h", "timedelta_i32": "i", "timedelta_i64": "q",
}  # fmt: skip
"""kio's wire types of fixed width, as struct letters."""

OWN_SCHEMAS: Final = frozenset({"leader_and_isr", "stop_replica", "update_metadata", "controlled_shutdown"})
"""APIs whose classes are in `schemas/`."""


@frozen
class FieldSpec:
    """One field of a kio dataclass in our words."""

    name: str
    """Our name: kio's, with `_ms` where kio has a timedelta or datetime."""
    kind: str
    """kio's wire type, or "struct"."""
    array: bool
    nullable: bool
    tag: int | None
    entity: Any
    """The kio class of a struct, else None."""
    default: Any
    """Schema default in our values; `MISSING` where there is none."""


def field_specs(entity: Any) -> tuple[FieldSpec, ...]:
    return tuple(_spec(field) for field in fields(entity))


def _spec(field: Field[Any]) -> FieldSpec:
    inner, nullable = _without_none(field.type)
    array = get_origin(inner) is tuple
    if array:
        inner, _ = _without_none(get_args(inner)[0])
    struct = is_dataclass(inner)
    kind = "struct" if struct else field.metadata["kafka_type"]
    suffix = "_ms" if kind.startswith(("timedelta", "datetime")) else ""
    default = field.default
    if default is not MISSING:
        default = _plain(default)
    tag = field.metadata.get("tag")
    return FieldSpec(field.name + suffix, kind, array, nullable, tag, inner if struct else None, default)


def _without_none(hint: Any) -> tuple[Any, bool]:
    if get_origin(hint) in (UnionType, Union):
        rest = [part for part in get_args(hint) if part is not NoneType]
        return rest[0], len(rest) < len(get_args(hint))
    return hint, False


def _plain(value: Any) -> Any:
    """A default of kio's in our values."""
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, tuple):
        return list(value)
    return getattr(value, "value", value)


@cache
def _hints(ours: type) -> dict[str, Any]:
    return get_type_hints(ours)


def nested_class(ours: type, name: str) -> Any:
    """The versionless class of the struct, or of the elements, in field `name`."""
    hint, _ = _without_none(_hints(ours)[name])
    if get_origin(hint) is list:
        hint = get_args(hint)[0]
    return hint


@cache
def _load_base_types() -> None:
    """Where hypothesis is installed, kio would load it and give it strategies: seconds before the first answer."""
    with LOADING:  # nobody else is here, and no fork takes the gap in `sys.modules` along
        if "hypothesis" in sys.modules:
            return
        sys.modules["hypothesis"] = None  # type: ignore[assignment]
        try:
            load_module("kio.static.primitive")
        finally:
            sys.modules.pop("hypothesis", None)


def schema(api: str, version: int, half: str, name: str) -> Any:
    """kio's class, e.g. `schema("fetch", 12, "request", "FetchRequest")`, or ours of an API that kio lacks."""
    _load_base_types()
    own = api in OWN_SCHEMAS
    return getattr(load_module(f"{__package__}.schemas.{api}" if own else f"kio.schema.{api}.v{version}.{half}"), name)


# ---------------------------------------------------------------- reading


@cache
def reader(entity: Any, ours: Any) -> Read:
    """Reads the bytes of kio's `entity` into an object of `ours`."""
    flexible: bool = entity.__flexible__
    specs = field_specs(entity)
    steps = [_read_step(run, flexible, ours) for run in _runs([spec for spec in specs if spec.tag is None])]
    tagged = {spec.tag: (spec.name, _read_value(spec, flexible, ours)) for spec in specs if spec.tag is not None}

    def read(cursor: Cursor) -> Any:
        values: dict[str, Any] = {}
        for step in steps:
            step(cursor, values)
        if flexible:
            _read_tags(cursor, values, tagged)
        return ours(**values)

    return read


def _read_tags(cursor: Cursor, values: dict[str, Any], known: dict[int, tuple[str, Read]]) -> None:
    for tag, start in cursor.tags():
        if tag in known:
            name, read = known[tag]
            after = cursor.pos
            cursor.pos = start
            values[name] = read(cursor)
            cursor.pos = after


def _runs(specs: list[FieldSpec]) -> list[list[FieldSpec]]:
    """Neighbours of fixed width together, every other field alone."""
    runs: list[list[FieldSpec]] = []
    for spec in specs:
        fixed = spec.kind in FIXED and not spec.array
        if fixed and runs and runs[-1][0].kind in FIXED and not runs[-1][0].array:
            runs[-1].append(spec)
        else:
            runs.append([spec])
    return runs


def _read_step(run: list[FieldSpec], flexible: bool, ours: Any) -> Callable[[Cursor, dict[str, Any]], None]:
    if run[0].kind in FIXED and not run[0].array:
        layout = Struct(">" + "".join(FIXED[spec.kind] for spec in run))
        names = [spec.name for spec in run]

        def fixed(cursor: Cursor, values: dict[str, Any]) -> None:
            values.update(zip(names, layout.unpack_from(cursor.data, cursor.pos), strict=True))
            cursor.pos += layout.size

        return fixed
    name = run[0].name
    read = _read_value(run[0], flexible, ours)

    def one(cursor: Cursor, values: dict[str, Any]) -> None:
        values[name] = read(cursor)

    return one


def _read_value(spec: FieldSpec, flexible: bool, ours: Any) -> Read:
    if spec.array:
        return _read_array(_read_single(spec, flexible, ours), spec.nullable, flexible)
    single = _read_single(spec, flexible, ours)
    if spec.kind == "struct" and spec.nullable and spec.tag is None:
        return lambda cursor: single(cursor) if cursor.i8() >= 0 else None
    return single


def _read_array(element: Read, nullable: bool, flexible: bool) -> Read:
    def read(cursor: Cursor) -> Any:
        count = cursor.nullable_count(flexible)
        if count < 0:
            if not nullable:
                raise WireError("null for an array that must not be null")
            return None
        return [element(cursor) for _ in range(count)]

    return read


def _read_single(spec: FieldSpec, flexible: bool, ours: Any) -> Read:
    kind, nullable = spec.kind, spec.nullable and not spec.array
    if kind == "struct":
        return reader(spec.entity, nested_class(ours, spec.name))
    if kind in FIXED:
        return _read_fixed(Struct(">" + FIXED[kind]))
    if kind == "string":
        return (lambda c: c.nullable_string(flexible)) if nullable else (lambda c: c.string(flexible))
    if kind == "bytes":
        return lambda cursor: _bytes(cursor.nullable_view(flexible), nullable)
    if kind == "records":
        return lambda cursor: cursor.nullable_view(flexible)
    if kind == "uuid":
        return Cursor.uuid
    if kind == "datetime_i64":
        return lambda cursor: _datetime(cursor.i64(), nullable)
    raise _unknown(spec)


def _unknown(spec: FieldSpec) -> TypeError:
    return TypeError(f"field {spec.name}: nothing is known here of the schemas' type {spec.kind!r}")


def _read_fixed(layout: Struct) -> Read:
    def read(cursor: Cursor) -> Any:
        value = layout.unpack_from(cursor.data, cursor.pos)[0]
        cursor.pos += layout.size
        return value

    return read


def _bytes(view: memoryview | None, nullable: bool) -> bytes | None:
    if view is None and not nullable:
        raise WireError("null for bytes that must not be null")
    return None if view is None else bytes(view)


def _datetime(value_ms: int, nullable: bool) -> int | None:
    return None if nullable and value_ms == -1 else value_ms


# ---------------------------------------------------------------- writing


@cache
def writer(entity: Any, ours: Any) -> Write:
    """Writes an object of `ours` as the bytes of kio's `entity`."""
    flexible: bool = entity.__flexible__
    specs = field_specs(entity)
    steps = [_write_step(run, flexible, ours) for run in _runs([spec for spec in specs if spec.tag is None])]
    tagged = sorted(
        (spec.tag, attrgetter(spec.name), default_of(spec, ours), _write_value(spec, flexible, ours))
        for spec in specs
        if spec.tag is not None
    )

    def write(out: bytearray, value: Any) -> None:
        for step in steps:
            step(out, value)
        if not flexible:
            return
        if not tagged:
            out.append(0)
            return
        present: list[tuple[int, bytes | bytearray]] = []
        for tag, get, default, put in tagged:
            field = get(value)
            if field != default:
                data = bytearray()
                put(data, field)
                present.append((tag, data))
        put_tagged(out, present)

    return write


def default_of(spec: FieldSpec, ours: Any) -> Any:
    """The value that a tagged field has where it is absent: the schema's default, else the zero of its type."""
    if spec.kind == "struct" and not spec.array and not spec.nullable:
        nested = nested_class(ours, spec.name)
        return nested(**{inner.name: default_of(inner, nested) for inner in field_specs(spec.entity)})
    if spec.default is not MISSING:
        return NO_ID if spec.kind == "uuid" and spec.default is None else spec.default
    if spec.array:
        return []
    if spec.nullable and spec.kind != "uuid":
        return None
    return {"string": "", "bytes": b"", "uuid": NO_ID, "bool": False}.get(spec.kind, 0)


def _write_step(run: list[FieldSpec], flexible: bool, ours: Any) -> Write:
    get = attrgetter(*(spec.name for spec in run))
    if run[0].kind in FIXED and not run[0].array:
        pack = Struct(">" + "".join(FIXED[spec.kind] for spec in run)).pack
        if len(run) == 1:

            def one_fixed(out: bytearray, value: Any) -> None:
                out += pack(get(value))

            return one_fixed

        def fixed(out: bytearray, value: Any) -> None:
            out += pack(*get(value))

        return fixed
    put = _write_value(run[0], flexible, ours)
    return lambda out, value: put(out, get(value))


def _write_value(spec: FieldSpec, flexible: bool, ours: Any) -> Write:
    single = _write_single(spec, flexible, ours)
    if spec.array:
        return _write_array(single, spec.nullable, flexible)
    if spec.kind == "struct" and spec.nullable and spec.tag is None:

        def nullable_struct(out: bytearray, value: Any) -> None:
            if value is None:
                out.append(0xFF)
            else:
                out.append(1)
                single(out, value)

        return nullable_struct
    return single


def _write_array(element: Write, nullable: bool, flexible: bool) -> Write:
    def write(out: bytearray, values: Any) -> None:
        if values is None:
            put_length(out, -1 if nullable else 0, flexible)
            return
        put_length(out, len(values), flexible)
        for value in values:
            element(out, value)

    return write


def _write_single(spec: FieldSpec, flexible: bool, ours: Any) -> Write:
    kind, nullable = spec.kind, spec.nullable and not spec.array
    if kind == "struct":
        return writer(spec.entity, nested_class(ours, spec.name))
    if kind in FIXED:
        pack = Struct(">" + FIXED[kind]).pack
        return lambda out, value: out.extend(pack(value))
    if kind == "string":
        return lambda out, value: put_string(out, "" if value is None and not nullable else value, flexible)
    if kind in ("bytes", "records"):
        return lambda out, value: _put_bytes(out, b"" if value is None and not nullable else value, flexible)
    if kind == "uuid":
        return lambda out, value: out.extend(_uuid_bytes(value))
    if kind == "datetime_i64":
        return lambda out, value: out.extend(I64.pack(-1 if value is None else value))
    raise _unknown(spec)


def _uuid_bytes(value: UUID | None) -> bytes:
    return (NO_ID if value is None else value).bytes


def _put_bytes(out: bytearray, value: Any, flexible: bool) -> None:
    if value is None:
        put_length(out, -1, flexible)
        return
    put_length(out, len(value), flexible)
    out += value
