"""What a JSON schema says, as the rules of compatibility ask for it.

The rules compare kinds: a schema of objects with one of objects, a choice with a choice. A schema that says several
things at once (a type and an enum, two types, a type and `oneOf`) is a combination of schemas that say one each.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from logkernel.attrs_lite import frozen

COMBINATIONS: Final = ("allOf", "anyOf", "oneOf")
BY_TYPE: Final = {
    "string": "STRING", "number": "NUMBER", "integer": "NUMBER", "boolean": "BOOLEAN", "null": "NULL",
    "object": "OBJECT", "array": "ARRAY",
}  # fmt: skip
BY_KEYWORD: Final = {
    "ARRAY": ("items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"),
    "OBJECT": (
        "properties", "required", "minProperties", "maxProperties", "dependencies", "dependentRequired",
        "dependentSchemas", "patternProperties", "additionalProperties", "propertyNames",
    ),
    "NUMBER": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "STRING": ("minLength", "maxLength", "pattern", "format"),
}  # fmt: skip
"""What a schema without a type is about: the first row that it has a keyword of."""
MAX_CHAIN: Final = 100
"""How often one `$ref` may lead to another."""


class Kind(Enum):
    EMPTY = "true, or says nothing"
    FALSE = "false"
    STRING = "string"
    NUMBER = "number or integer"
    BOOLEAN = "boolean"
    NULL = "null"
    OBJECT = "object"
    ARRAY = "array"
    ENUM = "enum"
    CONST = "const"
    NOT = "not"
    COMBINED = "allOf, anyOf, oneOf, or several things at once"
    CONDITIONAL = "if, then, else"


@frozen
class Node:
    """A schema, or a part of one that says a single thing.

    `parts` are a combination's, and `criterion` is how it combines; of a typed schema, it is the type.
    """

    kind: Kind
    schema: Any
    resolver: Any
    criterion: str = ""
    parts: tuple[Node, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for the same part of the same text."""
        return (id(self.schema), self.kind, self.criterion, len(self.parts))

    def has(self, keyword: str) -> bool:
        return isinstance(self.schema, Mapping) and keyword in self.schema

    def get(self, keyword: str) -> Any:
        return self.schema.get(keyword) if isinstance(self.schema, Mapping) else None

    def child(self, keyword: str) -> Node | None:
        """The schema under a keyword, or None."""
        value = self.get(keyword)
        return Node.of(value, self.resolver) if isinstance(value, (bool, Mapping)) else None

    def children(self, keyword: str) -> dict[str, Node]:
        """The schemas under a keyword by their names."""
        value = self.get(keyword)
        rows = value.items() if isinstance(value, Mapping) else ()
        return {name: Node.of(one, self.resolver) for name, one in rows if isinstance(one, (bool, Mapping))}

    def items(self, keyword: str) -> list[Node]:
        value = self.get(keyword)
        return [Node.of(one, self.resolver) for one in value] if isinstance(value, list) else []

    @staticmethod
    def of(schema: Any, resolver: Any) -> Node:
        """Follow `$ref`, and tell what kind the schema is of."""
        for _ in range(MAX_CHAIN):
            if not (isinstance(schema, Mapping) and isinstance(schema.get("$ref"), str)):
                break
            found = resolver.lookup(schema["$ref"])
            schema, resolver = found.contents, found.resolver
        if schema is False:
            return Node(Kind.FALSE, schema, resolver)
        if not isinstance(schema, Mapping):
            return Node(Kind.EMPTY, schema, resolver)
        parts = _parts(schema, resolver)
        if not parts:
            return Node(Kind.EMPTY, schema, resolver)
        return parts[0] if len(parts) == 1 else Node(Kind.COMBINED, schema, resolver, "allOf", tuple(parts))


def _parts(schema: Mapping[str, Any], resolver: Any) -> list[Node]:
    found = []
    for criterion in COMBINATIONS:
        if isinstance(schema.get(criterion), list):
            # what is combined is told apart when it is compared, since it may lead back here
            found.append(Node(Kind.COMBINED, schema, resolver, criterion))
    for keyword, kind in (("enum", Kind.ENUM), ("const", Kind.CONST), ("not", Kind.NOT), ("if", Kind.CONDITIONAL)):
        if keyword in schema:
            found.append(Node(kind, schema, resolver))
    types = schema.get("type")
    if isinstance(types, list):
        nodes = tuple(Node(Kind[BY_TYPE[one]], schema, resolver, one) for one in types)
        found.append(Node(Kind.COMBINED, schema, resolver, "anyOf", nodes))
    elif types is not None:
        found.append(Node(Kind[BY_TYPE[types]], schema, resolver, types))
    else:
        about = next((kind for kind, names in BY_KEYWORD.items() if any(name in schema for name in names)), None)
        if about is not None:
            found.append(Node(Kind[about], schema, resolver))
    return found


def combined(node: Node) -> tuple[Node, ...]:
    """What a combination consists of."""
    return node.parts or tuple(node.items(node.criterion))
