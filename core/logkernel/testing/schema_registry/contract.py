"""What a format of schemas does for the registry, and the values that pass between them."""

from __future__ import annotations

import hashlib
import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

from logkernel.attrs_lite import frozen


class InvalidSchema(ValueError):
    """A text is no schema of its format; the text of the error says why."""


class Reference(NamedTuple):
    """`name` is how a schema's text names what is registered as `version` of `subject`."""

    name: str
    subject: str
    version: int


@frozen
class Schema:
    """A schema as it is registered. `metadata` and `rule_set` are JSON objects that the registry only keeps."""

    kind: str
    text: str
    references: tuple[Reference, ...] = ()
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None

    @property
    def _whole(self) -> bytes:
        parts = [self.kind, self.text, self.references, self.metadata, self.rule_set]
        return json.dumps(parts, sort_keys=True).encode()

    def unusual(self) -> dict[str, Any]:
        """Its fields in JSON, but for the text, where they are not Confluent's defaults: Avro, no references."""
        found: dict[str, Any] = {}
        if self.kind != "AVRO":
            found["schemaType"] = self.kind
        if self.references:
            found["references"] = [reference._asdict() for reference in self.references]
        if self.metadata is not None:
            found["metadata"] = self.metadata
        if self.rule_set is not None:
            found["ruleSet"] = self.rule_set
        return found

    @property
    def guid(self) -> str:
        """The same for equal schemas: what gives them one id."""
        return str(uuid.UUID(bytes=hashlib.md5(self._whole, usedforsecurity=False).digest()))

    @property
    def size_bytes(self) -> int:
        return len(self._whole)


class Import(NamedTuple):
    """A referenced schema, by the name by which it is referred to."""

    name: str
    text: str


class ParsedSchema(ABC):
    """A schema that its format has read."""

    @property
    @abstractmethod
    def canonical(self) -> str:
        """The text that is registered: the same for texts that differ in layout only."""

    @property
    @abstractmethod
    def normalized(self) -> str:
        """The text that is registered with `normalize`: the same for texts that also differ in order."""

    def formatted(self, form: str) -> str:
        """The text in another form that the format has. Unknown ones are `canonical`."""
        return self.canonical

    @abstractmethod
    def why_unreadable(self, written: Self) -> list[str]:
        """Why a reader with this schema cannot read what was `written` with another. Empty: it can."""


class SchemaFormat(Protocol):
    """A format, by Confluent's name in upper case."""

    name: str

    def parse(self, text: str, imports: Sequence[Import]) -> ParsedSchema:
        """Read a text. `imports` are what it refers to, transitively, each after those that it needs itself.

        Raises `InvalidSchema`.
        """
        ...
