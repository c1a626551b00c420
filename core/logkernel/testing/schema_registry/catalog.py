"""Pure: what is registered. Only `apply` changes it, so that changes can be kept and replayed.

subject ─▶ version ─▶ Registered(schema, id, deleted)
id ─▶ places (subject, version), over all subjects;   guid ─▶ id
(subject, version) ─▶ places that refer to it
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from logkernel.attrs_lite import frozen
from logkernel.testing.schema_registry.compatibility import Level
from logkernel.testing.schema_registry.contract import Schema

Place = tuple[str, int]
Value = TypeVar("Value")
OVERHEAD_BYTES = 1000
"""What a version, a config or a mode costs beside its text, roughly; so their number is bounded, too."""


@frozen
class Registered:
    """A version of a subject."""

    subject: str
    version: int
    id: int
    schema: Schema
    deleted: bool = False

    @property
    def size_bytes(self) -> int:
        return OVERHEAD_BYTES + self.schema.size_bytes


class Config(NamedTuple):
    """What a subject, or the registry, has of its own; None is not set."""

    compatibility: Level | None = None
    normalize: bool | None = None


class SchemaChange(NamedTuple):
    """A version is there, or is changed; None: it is gone."""

    subject: str
    version: int
    registered: Registered | None


class ConfigChange(NamedTuple):
    """Without a subject, the registry's. None: there is none any more."""

    subject: str | None
    config: Config | None


class ModeChange(NamedTuple):
    """Without a subject, the registry's. None: there is none any more."""

    subject: str | None
    mode: str | None


Change = SchemaChange | ConfigChange | ModeChange


class Catalog:
    def __init__(self) -> None:
        self.subjects: dict[str, dict[int, Registered]] = {}
        """Each subject's versions in ascending order, with the soft-deleted ones."""
        self.configs: dict[str | None, Config] = {}
        self.modes: dict[str | None, str] = {}
        self.last_id = 0
        self.size_bytes = 0
        self._by_id: dict[int, dict[Place, None]] = defaultdict(dict)
        self._by_guid: dict[str, int] = {}
        self._referring: dict[Place, dict[Place, None]] = defaultdict(dict)

    # ---------------------------------------------------------------- changes

    def apply(self, change: Change) -> None:
        match change:
            case SchemaChange(subject, version, registered):
                self._forget(subject, version)
                if registered is not None:
                    self._keep(registered)
            case ConfigChange(subject, config):
                self._put(self.configs, subject, config)
            case ModeChange(subject, mode):
                self._put(self.modes, subject, mode)

    def _put(self, table: dict[str | None, Value], subject: str | None, value: Value | None) -> None:
        if table.pop(subject, None) is not None:
            self.size_bytes -= OVERHEAD_BYTES
        if value is not None:
            table[subject] = value
            self.size_bytes += OVERHEAD_BYTES

    def _keep(self, new: Registered) -> None:
        place = (new.subject, new.version)
        versions = self.subjects.setdefault(new.subject, {})
        among = next(reversed(versions), 0) > new.version  # an import, or a soft delete
        versions[new.version] = new
        if among:
            self.subjects[new.subject] = dict(sorted(versions.items()))
        self._by_id[new.id][place] = None
        self._by_guid[new.schema.guid] = new.id
        for reference in new.schema.references:
            self._referring[reference.subject, reference.version][place] = None
        self.last_id = max(self.last_id, new.id)
        self.size_bytes += new.size_bytes

    def _forget(self, subject: str, version: int) -> None:
        old = self.subjects.get(subject, {}).pop(version, None)
        if old is None:
            return
        if not self.subjects[subject]:
            del self.subjects[subject]
        place = (subject, version)
        del self._by_id[old.id][place]
        if not self._by_id[old.id]:
            del self._by_id[old.id]
            self._by_guid.pop(old.schema.guid, None)
        for reference in old.schema.references:
            referring = self._referring[reference.subject, reference.version]
            referring.pop(place, None)
            if not referring:
                del self._referring[reference.subject, reference.version]
        self.size_bytes -= old.size_bytes

    # ---------------------------------------------------------------- questions

    def get(self, subject: str, version: int) -> Registered | None:
        """A version, deleted or not."""
        return self.subjects.get(subject, {}).get(version)

    def versions(self, subject: str, *, deleted: bool = False) -> list[Registered]:
        """In ascending order; with `deleted`, the soft-deleted ones too."""
        return [one for one in self.subjects.get(subject, {}).values() if deleted or not one.deleted]

    def latest(self, subject: str) -> Registered | None:
        """The newest version that is not deleted."""
        return next((one for one in reversed(self.subjects.get(subject, {}).values()) if not one.deleted), None)

    def next_version(self, subject: str) -> int:
        return next(reversed(self.subjects.get(subject, {})), 0) + 1

    def id_of(self, schema: Schema) -> int | None:
        return self._by_guid.get(schema.guid)

    def id_of_guid(self, guid: str) -> int | None:
        return self._by_guid.get(guid)

    def places(self, schema_id: int) -> Iterator[Registered]:
        """Every version with this id, of all subjects, deleted or not."""
        for subject, version in self._by_id.get(schema_id, ()):
            yield self.subjects[subject][version]

    def referring(self, subject: str, version: int, *, deleted: bool) -> list[Registered]:
        """The versions that refer to one; with `deleted`, the soft-deleted ones too."""
        found = (self.subjects[one][number] for one, number in self._referring.get((subject, version), ()))
        return [one for one in found if deleted or not one.deleted]
