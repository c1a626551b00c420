"""JSON schemas: checked against their dialect's own schema by `jsonschema`, compared by `json_compatibility`.

A schema without `$schema` is one of draft 7, as for Confluent's registry. `$ref` reaches into the schema itself, and to
its references by their names; nothing is fetched.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from logkernel.errors import ConfigError
from logkernel.testing.schema_registry.contract import Import, InvalidSchema, ParsedSchema
from logkernel.testing.schema_registry.json_compatibility import Comparison
from logkernel.testing.schema_registry.json_nodes import Node
from logkernel.testing.schema_registry.json_text import dumped, loaded

try:
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable
    from referencing.jsonschema import DRAFT7, specification_with
except ImportError as error:
    raise ConfigError(f"JSON schemas need jsonschema ({error}); pip install 'logkernel[registry]'") from error


UNCHECKED: Final = "its dialect does not look: below a $ref to what is no schema, or a keyword of a later draft"


class JsonSchema(ParsedSchema):
    def __init__(self, text: str, imports: Sequence[Import]) -> None:
        self._json = _checked(text)
        resources = [(name, _resource(_checked(imported))) for name, imported in imports]
        registry: Any = Registry().with_resources(resources)
        own = _resource(self._json)
        resolver = registry.resolver_with_root(own)
        try:
            for reference in _references(self._json):
                resolver.lookup(reference)
            self.root = Node.of(self._json, resolver)
        except (Unresolvable, ValueError) as error:
            raise InvalidSchema(f"a $ref leads nowhere: {error}; name its schema among the references") from error
        except (LookupError, TypeError, AttributeError) as error:
            raise InvalidSchema(f"malformed where {UNCHECKED}: {error!r}") from error

    @property
    def canonical(self) -> str:
        return dumped(self._json)

    @property
    def normalized(self) -> str:
        return dumped(self._json, sort_keys=True)

    def why_unreadable(self, written: JsonSchema) -> list[str]:
        try:
            found = Comparison().differences(written.root, self.root)
        except InvalidSchema:
            raise
        except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
            raise InvalidSchema(f"malformed where {UNCHECKED}: {error!r}") from error
        return [f"{{errorType: '{kind}', description: 'at {path}'}}" for kind, path in found]


class JsonFormat:
    name = "JSON"

    def parse(self, text: str, imports: Sequence[Import]) -> ParsedSchema:
        return JsonSchema(text, imports)


FORMAT: Final = JsonFormat()


def _checked(text: str) -> Any:
    schema = loaded(text)
    if not isinstance(schema, (bool, dict)):
        raise InvalidSchema(f"a JSON schema is an object or a boolean, not {text[:40]}")
    if isinstance(schema, dict) and not isinstance(schema.get("$schema", ""), str):
        raise InvalidSchema("$schema is no text")
    try:
        validator_for(schema, default=Draft7Validator).check_schema(schema)
    except SchemaError as error:
        raise InvalidSchema(f"{error.json_path}: {error.message[:200]}") from error
    return schema


def _resource(schema: Any) -> Any:
    dialect = schema.get("$schema") if isinstance(schema, dict) else None
    specification = specification_with(dialect, default=DRAFT7) if isinstance(dialect, str) else DRAFT7
    return specification.create_resource(schema)


def _references(schema: Any) -> Iterator[str]:
    """Every `$ref` below a schema."""
    if isinstance(schema, list):
        for one in schema:
            yield from _references(one)
    if not isinstance(schema, dict):
        return
    if isinstance(schema.get("$ref"), str):
        yield schema["$ref"]
    for name, value in schema.items():
        if name not in ("enum", "const", "default", "examples"):
            yield from _references(value)
