"""Which changes of a JSON schema keep a reader able to read, by the published rules of Confluent's registry.

Where the rules ask whether properties may be added or removed, the content model decides:

    open        other properties are allowed (the default): none may be added, since data may have any of that name
    closed      additionalProperties: false: none may be removed
    partly open patternProperties, or a schema for additional ones: that schema must cover what is added or removed

The same holds for the items of tuples. What is not named here (title, description, format, conditions) does not matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

import re2

from logkernel.testing.schema_registry.contract import InvalidSchema
from logkernel.testing.schema_registry.json_nodes import Kind, Node, combined
from logkernel.testing.schema_registry.json_text import dumped

Difference = tuple[str, str]
"""(Confluent's name of an incompatible change, where it is)."""
MAX_COMPARISONS: Final = 20_000
"""Of schemas with schemas within one comparison."""

LOWER_BOUNDS: Final = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties", "minContains")
BOUNDS_OF: Final = {
    Kind.NUMBER: ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    Kind.STRING: ("minLength", "maxLength"),
    Kind.ARRAY: ("minItems", "maxItems", "minContains", "maxContains"),
    Kind.OBJECT: ("minProperties", "maxProperties"),
}


class Comparison:
    """Compares schemas. A pair that is compared already is taken for equal within itself, and is compared once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], list[Difference]] = {}

    def differences(self, old: Node, new: Node) -> list[Difference]:
        """What keeps a reader of `new` from reading data of `old`."""
        return list(self._compared(old, new, "#"))

    def _compared(self, old: Node | None, new: Node | None, path: str) -> Iterator[Difference]:
        """The same, where either may be missing."""
        if new is None:
            return
        if old is None:
            yield "SCHEMA_ADDED", path
            return
        key = (old.key, new.key)
        if key not in self._known:
            if len(self._known) >= MAX_COMPARISONS:
                raise InvalidSchema(f"the schemas have more than {MAX_COMPARISONS} parts to compare")
            self._known[key] = []
            self._known[key] = list(self._by_kind(old, new, ""))
        for kind, below in self._known[key]:
            yield kind, path + below

    def _fits(self, old: Node, new: Node) -> bool:
        return not self.differences(old, new)

    def _by_kind(self, old: Node, new: Node, path: str) -> Iterator[Difference]:
        if old.kind is not Kind.COMBINED and new.kind is Kind.COMBINED:
            choices = combined(new)
            one_is_enough = len(choices) == 1 or new.criterion in ("anyOf", "oneOf")
            if one_is_enough and any(self._fits(old, one) for one in choices):
                return
        elif old.kind is Kind.COMBINED and new.kind is not Kind.COMBINED:
            choices = combined(old)
            if (len(choices) == 1 or old.criterion == "allOf") and any(self._fits(one, new) for one in choices):
                return
        if old.kind is not new.kind:
            both_bytes = old.get("connect.type") == new.get("connect.type") == "bytes"
            if old.kind is not Kind.FALSE and new.kind is not Kind.EMPTY and not both_bytes:
                yield "TYPE_CHANGED", path
            return
        yield from _bounds(old, new, path)
        rule = self._rules().get(old.kind)
        if rule is not None:
            yield from rule(old, new, path)

    def _rules(self) -> Mapping[Kind, Callable[[Node, Node, str], Iterator[Difference]]]:
        return {
            Kind.STRING: _strings, Kind.NUMBER: _numbers, Kind.ENUM: _enums, Kind.CONST: _constants,
            Kind.NOT: self._negations, Kind.COMBINED: self._combinations, Kind.OBJECT: self._objects,
            Kind.ARRAY: self._arrays,
        }  # fmt: skip

    # ---------------------------------------------------------------- combinations

    def _negations(self, old: Node, new: Node, path: str) -> Iterator[Difference]:
        before, after = old.child("not"), new.child("not")
        if before is not None and after is not None and not self._fits(after, before):
            yield "NOT_TYPE_EXTENDED", f"{path}/not"

    def _combinations(self, old: Node, new: Node, path: str) -> Iterator[Difference]:
        before, after = combined(old), combined(new)
        one_each = len(before) == 1 and len(after) == 1
        if old.criterion != new.criterion and not (
            new.criterion == "anyOf"
            or one_each
            or (len(before) == 1 and new.criterion == "oneOf")
            or (len(after) == 1 and old.criterion == "allOf")
        ):
            yield "COMBINED_TYPE_CHANGED", path
            return
        before, after = _distinct(before), _distinct(after)
        if len(before) < len(after) and new.criterion == "allOf":
            yield "PRODUCT_TYPE_EXTENDED", path
        if len(before) > len(after) and old.criterion != "allOf":
            yield "SUM_TYPE_NARROWED", path
        fits = [[number for number, one in enumerate(after) if self._fits(other, one)] for other in before]
        if _matching(fits) < min(len(before), len(after)):
            yield "COMBINED_TYPE_SUBSCHEMAS_CHANGED", path

    # ---------------------------------------------------------------- objects

    def _objects(self, old: Node, new: Node, path: str) -> Iterator[Difference]:
        yield from self._properties(old, new, path)
        yield from self._dependencies(old, new, path)
        yield from self._rest(old, new, path, "additionalProperties", "ADDITIONAL_PROPERTIES")
        yield from self._unevaluated(old, new, path, "unevaluatedProperties", "UNEVALUATED_PROPERTIES")

    def _properties(self, old: Node, new: Node, path: str) -> Iterator[Difference]:
        before, after = old.children("properties"), new.children("properties")
        was_required, required = set(old.get("required") or ()), set(new.get("required") or ())
        for name in sorted(before.keys() | after.keys()):
            where = f"{path}/properties/{name}"
            if name not in after:
                yield from self._removed(before[name], new, _rest_of_object(new, name), where, "PROPERTY")
            elif name in before:
                yield from self._compared(before[name], after[name], where)
                if name in required - was_required and not after[name].has("default"):
                    yield "REQUIRED_ATTRIBUTE_ADDED", f"{path}/required/{name}"
            else:
                yield from self._property_added(old, after[name], name, name in required, where)

    def _property_added(self, old: Node, added: Node, name: str, required: bool, where: str) -> Iterator[Difference]:
        if _is_open(old, "Properties"):
            if added.kind is not Kind.EMPTY:
                how = "OPTIONAL" if not required else "REQUIRED"
                default = "_WITH_DEFAULT" if required and added.has("default") else ""
                yield f"{how}_PROPERTY{default}_ADDED_TO_OPEN_CONTENT_MODEL", where
            return
        rest = _rest_of_object(old, name)
        if rest is not None and not self._fits(rest, added):
            yield "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", where
        if required and not added.has("default"):
            yield "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL", where

    def _removed(self, gone: Node, new: Node, rest: Node | None, where: str, what: str) -> Iterator[Difference]:
        if _is_open(new, "Properties" if what == "PROPERTY" else "Items"):
            return
        if rest is not None:
            if not self._fits(gone, rest):
                yield f"{what}_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", where
        elif gone.kind is not Kind.FALSE:
            yield f"{what}_REMOVED_FROM_CLOSED_CONTENT_MODEL", where

    def _dependencies(self, old: Node, new: Node, path: str) -> Iterator[Difference]:
        before, after = _dependent_names(old), _dependent_names(new)
        for name, needed in sorted(after.items()):
            where = f"{path}/dependencies/{name}"
            if name not in before:
                yield "DEPENDENCY_ARRAY_ADDED", where
            elif needed - before[name]:
                yield "DEPENDENCY_ARRAY_" + ("EXTENDED" if needed > before[name] else "CHANGED"), where
        old_schemas, new_schemas = _dependent_schemas(old), _dependent_schemas(new)
        for name, schema in sorted(new_schemas.items()):
            where = f"{path}/dependencies/{name}"
            if name not in old_schemas:
                yield "DEPENDENCY_SCHEMA_ADDED", where
            else:
                yield from self._compared(old_schemas[name], schema, where)

    # ---------------------------------------------------------------- arrays

    def _arrays(self, old: Node, new: Node, path: str) -> Iterator[Difference]:
        if new.get("uniqueItems") and not old.get("uniqueItems"):
            yield "UNIQUE_ITEMS_ADDED", f"{path}/uniqueItems"
        yield from self._compared(_every_item(old), _every_item(new), f"{path}/items")
        before, after = _tuple_items(old), _tuple_items(new)
        for number in range(max(len(before), len(after))):
            where = f"{path}/items/{number}"
            if number >= len(after):
                yield from self._removed(before[number], new, _rest_of_array(new), where, "ITEM")
            elif number < len(before):
                yield from self._compared(before[number], after[number], where)
            elif _is_open(old, "Items"):
                if after[number].kind is not Kind.EMPTY:
                    yield "ITEM_ADDED_TO_OPEN_CONTENT_MODEL", where
            elif (rest := _rest_of_array(old)) is not None and not self._fits(rest, after[number]):
                yield "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL", where
        yield from self._rest(old, new, path, _additional_items(old, new), "ADDITIONAL_ITEMS")
        yield from self._unevaluated(old, new, path, "unevaluatedItems", "UNEVALUATED_ITEMS")

    # ---------------------------------------------------------------- what is allowed beside what is named

    def _rest(self, old: Node, new: Node, path: str, keyword: str, what: str) -> Iterator[Difference]:
        """True, or missing: anything; false: nothing; or a schema."""
        before, after = old.child(keyword), new.child(keyword)
        forbids, forbidden = (one is not None and one.kind is Kind.FALSE for one in (after, before))
        if forbids != forbidden:
            if forbids:
                yield f"{what}_REMOVED", f"{path}/{keyword}"
            return
        if forbids or after is None or after.kind is Kind.EMPTY:
            return
        if before is None or before.kind is Kind.EMPTY:
            yield f"{what}_NARROWED", f"{path}/{keyword}"
            return
        yield from self._compared(before, after, f"{path}/{keyword}")

    def _unevaluated(self, old: Node, new: Node, path: str, keyword: str, what: str) -> Iterator[Difference]:
        """As `_rest`; but true, where it was missing, counts as narrower."""
        before, after = old.child(keyword), new.child(keyword)
        if before is None and after is not None and after.kind is Kind.EMPTY:
            yield f"{what}_NARROWED", f"{path}/{keyword}"
        else:
            yield from self._rest(old, new, path, keyword, what)


# -------------------------------------------------------------------- rules without parts


def _bounds(old: Node, new: Node, path: str) -> Iterator[Difference]:
    for keyword in BOUNDS_OF.get(old.kind, ()):
        before, after = _number(old, keyword), _number(new, keyword)
        if after is None or before == after:
            continue
        lower, name = keyword in LOWER_BOUNDS, re.sub("([A-Z])", r"_\1", keyword).upper()
        if before is None:
            yield f"{name}_ADDED", f"{path}/{keyword}"
        elif lower and after > before:
            yield f"{name}_INCREASED", f"{path}/{keyword}"
        elif not lower and after < before:
            yield f"{name}_DECREASED", f"{path}/{keyword}"


def _strings(old: Node, new: Node, path: str) -> Iterator[Difference]:
    before, after = old.get("pattern"), new.get("pattern")
    if after is not None and before != after:
        yield ("PATTERN_ADDED" if before is None else "PATTERN_CHANGED"), f"{path}/pattern"


def _numbers(old: Node, new: Node, path: str) -> Iterator[Difference]:
    before, after = _number(old, "multipleOf"), _number(new, "multipleOf")
    if after is not None and before != after:
        if before is None:
            yield "MULTIPLE_OF_ADDED", f"{path}/multipleOf"
        elif _divides(before, after):
            yield "MULTIPLE_OF_EXPANDED", f"{path}/multipleOf"
        elif not _divides(after, before):
            yield "MULTIPLE_OF_CHANGED", f"{path}/multipleOf"
    if new.criterion == "integer" and old.criterion != "integer":
        yield "TYPE_NARROWED", path


def _enums(old: Node, new: Node, path: str) -> Iterator[Difference]:
    before, after = (set(map(_key, node.get("enum"))) for node in (old, new))
    if not before <= after:
        yield ("ENUM_ARRAY_NARROWED" if after < before else "ENUM_ARRAY_CHANGED"), f"{path}/enum"


def _constants(old: Node, new: Node, path: str) -> Iterator[Difference]:
    if _key(old.get("const")) != _key(new.get("const")):
        yield "ENUM_ARRAY_CHANGED", f"{path}/const"


# -------------------------------------------------------------------- reading a schema


def _number(node: Node, keyword: str) -> Decimal | None:
    """A boolean `exclusiveMaximum` (draft 4) is none."""
    value = node.get(keyword)
    return None if value is None or isinstance(value, bool) else Decimal(str(value))


def _divides(divisor: Decimal, number: Decimal) -> bool:
    try:
        return number % divisor == 0
    except ArithmeticError:  # a quotient of more digits than a decimal has
        return False


def _key(value: Any) -> str:
    return dumped(value, sort_keys=True)


def _distinct(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    return tuple({(one.kind, one.criterion, _key(one.schema)): one for one in nodes}.values())


def _matching(fits: list[list[int]]) -> int:
    """How many rows can have a column of their own among those that fit. (Augmenting paths.)"""
    owner: dict[int, int] = {}

    def find(row: int, seen: set[int]) -> bool:
        for column in fits[row]:
            if column not in seen:
                seen.add(column)
                if column not in owner or find(owner[column], seen):
                    owner[column] = row
                    return True
        return False

    return sum(find(row, set()) for row in range(len(fits)))


def _is_open(node: Node, what: str) -> bool:
    """Whether anything is allowed beside what is named; `what` is Properties or Items."""
    if what == "Properties":
        if node.get("patternProperties"):
            return False
        rest = node.child("additionalProperties")
    else:
        rest = node.child(_additional_items(node))
    unevaluated = node.child(f"unevaluated{what}")
    return all(one is None or one.kind is Kind.EMPTY for one in (rest, unevaluated))


def _rest_of_object(node: Node, name: str) -> Node | None:
    """The schema that a property has if it is not named, or None where none is allowed."""
    for pattern, schema in node.children("patternProperties").items():
        if _matches(pattern, name):
            return schema
    return _schema_only(node.child("additionalProperties"), node.child("unevaluatedProperties"))


def _rest_of_array(node: Node) -> Node | None:
    return _schema_only(node.child(_additional_items(node)), node.child("unevaluatedItems"))


def _schema_only(additional: Node | None, unevaluated: Node | None) -> Node | None:
    for one in (additional, unevaluated):
        if one is not None and one.kind is not Kind.EMPTY:
            return None if one.kind is Kind.FALSE else one
    return None


def _matches(pattern: str, name: str) -> bool:
    """By re2, which a pattern cannot make slow; patterns that it does not know match nothing."""
    try:
        return re2.search(pattern, name) is not None
    except re2.error:
        return False


def _every_item(node: Node) -> Node | None:
    return None if node.has("prefixItems") else node.child("items")


def _tuple_items(node: Node) -> list[Node]:
    return node.items("prefixItems") or node.items("items")


def _additional_items(*nodes: Node) -> str:
    """Beside `prefixItems` (draft 2020-12), further items are under `items`."""
    return "items" if any(node.has("prefixItems") for node in nodes) else "additionalItems"


def _dependent_names(node: Node) -> dict[str, set[str]]:
    found = {name: set(needed) for name, needed in (node.get("dependentRequired") or {}).items()}
    rows = (node.get("dependencies") or {}).items()
    return found | {name: set(needed) for name, needed in rows if isinstance(needed, list)}


def _dependent_schemas(node: Node) -> dict[str, Node]:
    return node.children("dependencies") | node.children("dependentSchemas")
