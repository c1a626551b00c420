"""Avro schemas: read and compared by Apache's library, by Avro's rules of schema resolution.

The text that is registered is Java's form of a schema (`Schema.toString`), so that schemas which differ in layout, in
the order of attributes or in how names are qualified are one. Logical types do not matter to compatibility.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from logkernel.errors import ConfigError
from logkernel.testing.schema_registry.contract import Import, InvalidSchema, ParsedSchema
from logkernel.testing.schema_registry.json_text import dumped, loaded

try:
    from avro.compatibility import ReaderWriterCompatibilityChecker
    from avro.errors import AvroException
    from avro.name import Names
    from avro.schema import make_avsc_object
except ImportError as error:
    raise ConfigError(f"Avro schemas need Apache's avro ({error}); pip install 'logkernel[registry]'") from error

PRIMITIVES: Final = frozenset(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])
NAMED: Final = {
    "record": ("name", "namespace", "doc", "fields"),
    "error": ("name", "namespace", "doc", "fields"),
    "enum": ("name", "namespace", "doc", "symbols", "default"),
    "fixed": ("name", "namespace", "doc", "size"),
}
"""The attributes of named types in Java's order; other ones follow, aliases last."""
ATTRIBUTES: Final = NAMED | {"array": ("items",), "map": ("values",)}
FIELD: Final = ("name", "type", "doc", "default", "order", "aliases")


class AvroSchema(ParsedSchema):
    def __init__(self, text: str, imports: Sequence[Import]) -> None:
        self._json = loaded(text)
        names = Names()
        try:
            for _, imported in imports:
                make_avsc_object(_without_logical_types(loaded(imported)), names)
            self.schema = make_avsc_object(_without_logical_types(self._json), names)
            self._canonical = _printed(self._json, "")
        except AvroException as error:
            raise InvalidSchema(str(error)) from error
        except (TypeError, ValueError, AttributeError, KeyError) as error:  # the library does not check all of JSON
            raise InvalidSchema(f"malformed: {error!r}") from error

    @property
    def canonical(self) -> str:
        return dumped(self._canonical)

    @property
    def normalized(self) -> str:
        return dumped(_sorted_properties(self._canonical))

    def why_unreadable(self, written: AvroSchema) -> list[str]:
        try:
            result = ReaderWriterCompatibilityChecker().get_compatibility(self.schema, written.schema)
        except AvroException as error:
            return [f"{{errorType: 'TYPE_MISMATCH', description: '{error}'}}"]
        if result.compatibility.value != "incompatible":
            return []
        kinds = "/".join(sorted({kind.name.upper() for kind in result.incompatibilities}))
        where, why = ", ".join(sorted(result.locations)), ", ".join(sorted(result.messages))
        return [f"{{errorType: '{kinds}', description: 'at {where}: {why}'}}"]


class AvroFormat:
    name = "AVRO"

    def parse(self, text: str, imports: Sequence[Import]) -> ParsedSchema:
        return AvroSchema(text, imports)


FORMAT: Final = AvroFormat()


def _without_logical_types(schema: Any) -> Any:
    """As the library compares it. It warns of each logical type that it does not know, and knows no errors."""
    if isinstance(schema, list):
        return [_without_logical_types(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    found = {name: value for name, value in schema.items() if name != "logicalType"}
    for name in ("type", "items", "values", "fields"):
        if name in found:
            found[name] = _without_logical_types(found[name])
    return found | {"type": "record"} if found.get("type") == "error" else found


def _printed(schema: Any, space: str) -> Any:
    """A checked schema in Java's form, within the namespace `space`."""
    if isinstance(schema, list):
        return [_printed(one, space) for one in schema]
    if isinstance(schema, str):
        return schema if schema in PRIMITIVES else _short(schema, space)
    kind = schema["type"]
    if not isinstance(kind, str) or (kind not in ATTRIBUTES and kind not in PRIMITIVES):
        return _printed(kind, space)
    found: dict[str, Any] = {"type": kind}
    if kind in NAMED:
        name, own = _name(schema, space)
        found["name"] = name
        if own != space:
            found["namespace"] = own
        space = own
    for name in ATTRIBUTES.get(kind, ()):
        if name in schema and name not in ("name", "namespace"):
            found[name] = _attribute(name, schema[name], space)
    found |= {
        name: value for name, value in schema.items() if name not in found and name not in ("aliases", "namespace")
    }
    if "aliases" in schema:
        found["aliases"] = schema["aliases"]
    return kind if len(found) == 1 and kind in PRIMITIVES else found


def _attribute(name: str, value: Any, space: str) -> Any:
    if name in ("items", "values"):
        return _printed(value, space)
    return [_field(one, space) for one in value] if name == "fields" else value


def _field(field: Mapping[str, Any], space: str) -> dict[str, Any]:
    found = {name: field[name] for name in FIELD if name in field}
    found["type"] = _printed(field["type"], space)
    if found.get("order") == "ascending":
        del found["order"]
    return found | {name: value for name, value in field.items() if name not in FIELD}


def _name(schema: Mapping[str, Any], space: str) -> tuple[str, str]:
    """(name, namespace) of a definition: a dotted name has its namespace in it."""
    own, dot, name = schema["name"].rpartition(".")
    return name, own if dot else schema.get("namespace", space) or ""


def _short(name: str, space: str) -> str:
    own, _, last = name.rpartition(".")
    return last if own == space else name


def _sorted_properties(schema: Any) -> Any:
    """With the attributes that are none of Avro's last, in the order of their names."""
    if isinstance(schema, list):
        return [_sorted_properties(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    known = ATTRIBUTES.get(schema["type"], ())
    found = _last_by_name(schema, ("type", *known))
    for name in known:
        if name in ("items", "values"):
            found[name] = _sorted_properties(found[name])
        elif name == "fields":
            fields = [_last_by_name(field, FIELD) for field in found[name]]
            found[name] = [field | {"type": _sorted_properties(field["type"])} for field in fields]
    return found


def _last_by_name(row: Mapping[str, Any], known: Sequence[str]) -> dict[str, Any]:
    found = {name: value for name, value in row.items() if name in known}
    return found | {name: row[name] for name in sorted(row.keys() - set(known))}
