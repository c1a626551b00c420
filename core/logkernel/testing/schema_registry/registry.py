"""Pure: the registry decides over requests. It has neither clock nor lock; who shares it between threads brings one.

Source: Confluent's API reference, and what its registry answers where that leaves a question open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from importlib import import_module
from typing import Final

from logkernel.attrs_lite import evolve
from logkernel.testing.schema_registry import errors
from logkernel.testing.schema_registry.catalog import (
    Catalog,
    Change,
    Config,
    ConfigChange,
    ModeChange,
    Registered,
    SchemaChange,
)  # fmt: skip
from logkernel.testing.schema_registry.compatibility import Level, why_incompatible
from logkernel.testing.schema_registry.contract import (
    Import,
    InvalidSchema,
    ParsedSchema,
    Reference,
    Schema,
    SchemaFormat,
)  # fmt: skip

BUILT_IN: Final = {"AVRO": "avro", "JSON": "json_schema", "PROTOBUF": "protobuf"}
MODES: Final = ("READWRITE", "READONLY", "IMPORT")
LATEST: Final = -1
MAX_ID: Final = 2**31 - 1
MAX_SCHEMA_BYTES: Final = 1 << 20
"""As Kafka's default for a record, in which Confluent's registry keeps a schema."""
MAX_BYTES: Final = 256 << 20
"""Of all texts, and of what stands for the number of versions, configs and modes."""
MAX_REFERENCES: Final = 1000
"""Of one schema, transitively."""
MAX_SUBJECT: Final = 1000
_SUBJECT = re.compile(r"(?!:)[^\x00-\x1f\x7f]+")


class Registry:
    """Schemas by subjects and versions. Each call that changes something passes a `Change` to `keep` before it counts.

    All calls raise `RegistryError`.
    """

    def __init__(
        self,
        formats: Mapping[str, SchemaFormat] | None = None,
        *,
        compatibility: Level = Level.BACKWARD,
        catalog: Catalog | None = None,
        keep: Callable[[Change], None] | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> None:
        """`formats` are further ones, by name, or others in the place of built-in ones. `compatibility` is the default,
        and `catalog` what is registered already."""
        self.catalog = catalog if catalog is not None else Catalog()
        self._default = Config(compatibility)
        self._formats = dict(formats or {})
        self._keep = keep
        self._max_bytes = max_bytes
        self._parsed = lru_cache(maxsize=256)(self._parse)

    @property
    def types(self) -> list[str]:
        return sorted({*BUILT_IN, *self._formats})

    # ---------------------------------------------------------------- schemas

    def register(
        self,
        subject: str,
        schema: Schema,
        *,
        normalize: bool = False,
        version: int | None = None,
        id: int | None = None,
    ) -> Registered:
        """Register a schema, or find it if it is there. `id` is for imports: the schema gets it, unchecked."""
        _check_subject(subject)
        self._check_writable(subject, imports=id is not None)
        new = self._canonical(subject, schema, normalize)
        known = self.catalog.id_of(new)
        if version is None and (found := self._same(subject, new)) is not None and id in (None, found.id):
            return found
        if id is not None:
            self._check_id(id, new, known)
        else:
            reasons = self._why_incompatible(self.config(subject, scope=True), subject, new)
            if reasons:
                raise errors.incompatible(subject, reasons)
        following = self.catalog.next_version(subject)
        if version not in (None, following) and (id is None or self.catalog.get(subject, version) is not None):
            raise errors.invalid_schema(f"Version {version} is not one more than the previous version {following - 1}")
        number = version if version is not None else following
        if number > MAX_ID:
            raise errors.invalid_version(str(number))
        registered = Registered(subject, number, self._new_id(known) if id is None else id, new)
        self._check_room(registered.size_bytes)
        for old in self.catalog.versions(subject, deleted=True):
            referred = self.catalog.referring(subject, old.version, deleted=True)
            if old.deleted and old.id == registered.id and not referred:
                self._change(SchemaChange(subject, old.version, None))
        self._change(SchemaChange(subject, number, registered))
        return registered

    def lookup(self, subject: str, schema: Schema, *, normalize: bool = False, deleted: bool = False) -> Registered:
        """Find a schema among the versions of a subject."""
        found = self._same(subject, self._canonical(subject, schema, normalize), deleted=deleted)
        if found is not None:
            return found
        if not self.catalog.versions(subject, deleted=deleted):
            raise errors.subject_not_found(subject)
        raise errors.schema_not_found()

    def subjects(self, prefix: str = "", *, deleted: bool = False, deleted_only: bool = False) -> list[str]:
        """Names in order; with `deleted`, also those whose versions are all soft-deleted."""
        found = []
        for name in self.catalog.subjects:
            gone = self.catalog.latest(name) is None
            if name.startswith(prefix) and (gone if deleted_only else deleted or not gone):
                found.append(name)
        return sorted(found)

    def versions(self, subject: str, *, deleted: bool = False, deleted_only: bool = False) -> list[int]:
        everything = self.catalog.versions(subject, deleted=True)
        found = [one.version for one in everything if (one.deleted if deleted_only else deleted or not one.deleted)]
        if not found:
            raise errors.subject_not_found(subject)
        return found

    def version(self, subject: str, version: int, *, deleted: bool = False) -> Registered:
        """A version, or the newest one for `LATEST`."""
        found = self.catalog.latest(subject) if version == LATEST else self.catalog.get(subject, version)
        if found is None and version == LATEST and deleted:
            found = next(reversed(self.catalog.versions(subject, deleted=True)), None)
        if found is not None and (deleted or not found.deleted):
            return found
        if not self.catalog.versions(subject, deleted=deleted):
            raise errors.subject_not_found(subject)
        raise errors.version_not_found(version)

    def by_id(self, schema_id: int, subject: str | None = None) -> Registered:
        """A version with this id, of `subject` if it has one. A soft-deleted schema can still be read."""
        found = list(self.catalog.places(schema_id))
        if not found:
            raise errors.schema_not_found(schema_id)
        return next((one for one in found if one.subject == subject), found[0])

    def by_guid(self, guid: str) -> Registered:
        schema_id = self.catalog.id_of_guid(guid)
        if schema_id is None:
            raise errors.schema_not_found(guid)
        return self.by_id(schema_id)

    def places(self, schema_id: int, subject: str | None = None, *, deleted: bool = False) -> list[Registered]:
        """Every version with this id."""
        everything = list(self.catalog.places(schema_id))
        if not everything:
            raise errors.schema_not_found()
        return [one for one in everything if (deleted or not one.deleted) and subject in (None, one.subject)]

    def referenced_by(self, subject: str, version: int, *, deleted: bool = False) -> list[int]:
        """The ids of schemas that refer to a version."""
        found = self.version(subject, version, deleted=True)
        return sorted({one.id for one in self.catalog.referring(subject, found.version, deleted=deleted)})

    def with_metadata(self, subject: str, wanted: Mapping[str, str], *, deleted: bool = False) -> Registered:
        """The newest version whose metadata has these properties."""
        versions = self.catalog.versions(subject, deleted=deleted)
        if not versions:
            raise errors.subject_not_found(subject)
        for one in reversed(versions):
            properties = (one.schema.metadata or {}).get("properties") or {}
            if wanted.items() <= properties.items():
                return one
        raise errors.schema_not_found()

    def formatted(self, registered: Registered, form: str) -> str:
        """The text in another form, such as "serialized" of a Protobuf schema; "" is as it is registered."""
        return self._read(registered.schema).formatted(form) if form else registered.schema.text

    # ---------------------------------------------------------------- deletes

    def delete_version(self, subject: str, version: int, *, permanent: bool = False) -> int:
        """Delete a version: softly first, then for good."""
        self._check_not_read_only(subject)
        found = self.version(subject, version, deleted=permanent or version != LATEST)
        if found.deleted and not permanent:
            raise errors.version_soft_deleted(subject, found.version)
        if self.catalog.referring(subject, found.version, deleted=permanent):
            raise errors.reference_exists(subject, found.version)
        if permanent and not found.deleted:
            raise errors.version_not_soft_deleted(subject, found.version)
        self._change(SchemaChange(subject, found.version, None if permanent else evolve(found, deleted=True)))
        if subject not in self.catalog.subjects:
            self._forget_settings(subject)
        return found.version

    def delete_subject(self, subject: str, *, permanent: bool = False) -> list[int]:
        """Delete all versions of a subject: softly first, then for good, with its config and mode."""
        self._check_not_read_only(subject)
        everything = self.catalog.versions(subject, deleted=True)
        if not everything:
            raise errors.subject_not_found(subject)
        found = everything if permanent else self.catalog.versions(subject)
        if not found:
            raise errors.subject_soft_deleted(subject)
        for one in found:
            others = self.catalog.referring(subject, one.version, deleted=permanent)
            if any(other.subject != subject for other in others):
                raise errors.reference_exists(subject, one.version)
            if permanent and not one.deleted:
                raise errors.subject_not_soft_deleted(subject)
        for one in reversed(found):
            self._change(SchemaChange(subject, one.version, None if permanent else evolve(one, deleted=True)))
        if permanent:
            self._forget_settings(subject)
        return [one.version for one in found]

    def _forget_settings(self, subject: str) -> None:
        if subject in self.catalog.configs:
            self._change(ConfigChange(subject, None))
        if subject in self.catalog.modes:
            self._change(ModeChange(subject, None))

    # ---------------------------------------------------------------- compatibility

    def check(self, subject: str, schema: Schema, version: int | None, *, normalize: bool = False) -> list[str]:
        """Why a schema is incompatible by the subject's level; empty: it is compatible.

        It is compared with `version` only (`LATEST` may be none), or, for None, as `register` compares it.
        """
        against: list[Registered] | None = None
        if version == LATEST:
            newest = self.catalog.latest(subject)
            against = [newest] if newest is not None else []
        elif version is not None:
            one = self.catalog.get(subject, version)
            if one is None or one.deleted:
                raise errors.version_not_found(version)
            against = [one]
        new = self._canonical(subject, schema, normalize)
        return self._why_incompatible(self.config(subject, scope=True), subject, new, against)

    def config(self, subject: str | None = None, *, scope: bool = False) -> Config:
        """What a subject has of its own, or, with `scope`, what holds for it. Without a subject, the registry's."""
        own = self.catalog.configs.get(subject)
        if subject is not None and not scope:
            if own is None:
                raise errors.no_compatibility(subject)
            return own
        found = self._default
        for config in (self.catalog.configs.get(None), own):
            if config is not None:
                found = Config(
                    found.compatibility if config.compatibility is None else config.compatibility,
                    found.normalize if config.normalize is None else config.normalize,
                )
        return found

    def set_config(self, subject: str | None, config: Config) -> Config:
        """Set what is not None. Returns what is set now."""
        if subject is not None:
            _check_subject(subject)
        self._check_not_read_only(subject)
        old = self.catalog.configs.get(subject) or Config()
        new = Config(
            old.compatibility if config.compatibility is None else config.compatibility,
            old.normalize if config.normalize is None else config.normalize,
        )
        self._check_room(0)
        self._change(ConfigChange(subject, new))
        return new

    def delete_config(self, subject: str | None) -> Config:
        """Go back to the registry's config, or to the default. Returns what was set."""
        self._check_not_read_only(subject)
        old = self.config(subject) if subject is None or subject in self.catalog.configs else None
        if old is None:
            raise errors.subject_not_found(str(subject))
        self._change(ConfigChange(subject, None))
        return old

    # ---------------------------------------------------------------- modes

    def mode(self, subject: str | None = None, *, scope: bool = False) -> str:
        """The mode of a subject, or, with `scope`, the one that holds for it. Without a subject, the registry's."""
        own = self.catalog.modes.get(subject)
        if own is None and subject is not None and not scope:
            raise errors.no_mode(subject)
        return own or self.catalog.modes.get(None, "READWRITE")

    def set_mode(self, subject: str | None, mode: str, *, force: bool = False) -> str:
        """IMPORT needs an empty subject (an empty registry), or `force`."""
        if subject is not None:
            _check_subject(subject)
        if mode not in MODES:
            raise errors.invalid_mode()
        if mode == "IMPORT" and self.mode(subject, scope=True) != "IMPORT" and not force:
            names = list(self.catalog.subjects) if subject is None else [subject]
            if any(self.catalog.latest(name) is not None for name in names):
                raise errors.not_permitted(
                    "Cannot import since found existing subjects; delete them, or use force=true"
                )
            self._clear(names)
        self._check_room(0)
        self._change(ModeChange(subject, mode))
        return mode

    def delete_mode(self, subject: str | None) -> str:
        """Go back to the registry's mode, or to READWRITE. Returns the mode that was set."""
        old = self.catalog.modes.get(subject)
        if old is None and subject is not None:
            raise errors.subject_not_found(subject)
        self._change(ModeChange(subject, None))
        return old or "READWRITE"

    def _clear(self, names: list[str]) -> None:
        """Delete soft-deleted versions for good."""
        going = [one for name in names for one in self.catalog.versions(name, deleted=True)]
        places = {(one.subject, one.version) for one in going}
        for one in going:
            others = self.catalog.referring(one.subject, one.version, deleted=True)
            if any((other.subject, other.version) not in places for other in others):
                raise errors.reference_exists(one.subject, one.version)
        for one in going:
            self._change(SchemaChange(one.subject, one.version, None))

    def clear(self) -> None:
        """Forget everything; ids begin at 1 again."""
        for subject, versions in list(self.catalog.subjects.items()):
            for version in list(versions):
                self._change(SchemaChange(subject, version, None))
        for name in list(self.catalog.configs):
            self._change(ConfigChange(name, None))
        for name in list(self.catalog.modes):
            self._change(ModeChange(name, None))
        self.catalog = Catalog()

    # ---------------------------------------------------------------- inside

    def _change(self, change: Change) -> None:
        if self._keep is not None:
            self._keep(change)
        self.catalog.apply(change)

    def _check_writable(self, subject: str, *, imports: bool) -> None:
        self._check_not_read_only(subject)
        mode = self.mode(subject, scope=True)
        if imports and mode != "IMPORT":
            raise errors.not_permitted(f"Subject {subject} is not in import mode; an id is given in IMPORT mode only")
        if not imports and mode == "IMPORT":
            raise errors.not_permitted(f"Subject {subject} is not in read-write mode; give an id, or set its mode")

    def _check_not_read_only(self, subject: str | None) -> None:
        if self.mode(subject, scope=True) == "READONLY":
            raise errors.not_permitted(f"Subject {subject or 'of all'} is in read-only mode")

    def _check_id(self, schema_id: int, new: Schema, known: int | None) -> None:
        if not 0 < schema_id <= MAX_ID:
            raise errors.unprocessable(f"id {schema_id} is not between 1 and {MAX_ID}")
        for other in self.catalog.places(schema_id):
            if other.schema != new:
                raise errors.not_permitted(f"Overwrite new schema with id {schema_id} is not permitted.")
        if known not in (None, schema_id):
            raise errors.not_permitted(f"This schema has id {known} already; it cannot be imported with id {schema_id}")

    def _new_id(self, known: int | None) -> int:
        if known is not None:
            return known
        if self.catalog.last_id >= MAX_ID:
            raise errors.not_permitted(f"The largest id, {MAX_ID}, is taken; no further schema can be registered")
        return self.catalog.last_id + 1

    def _check_room(self, more_bytes: int) -> None:
        if self.catalog.size_bytes + more_bytes > self._max_bytes:
            raise errors.too_large(
                f"This registry holds at most {self._max_bytes} bytes of schemas; delete some for good"
            )

    def _canonical(self, subject: str, schema: Schema, normalize: bool) -> Schema:
        """The schema as it would be registered."""
        if not schema.text.strip():
            raise errors.invalid_schema("Empty schema")
        try:
            size_bytes = len(schema.text.encode())
        except UnicodeEncodeError:
            raise errors.invalid_schema("The schema is not Unicode text") from None
        if size_bytes > MAX_SCHEMA_BYTES:
            raise errors.too_large(f"A schema has at most {MAX_SCHEMA_BYTES} bytes, not {size_bytes}")
        schema = evolve(schema, references=tuple(self._resolved(one) for one in schema.references))
        parsed = self._read(schema)
        if normalize or self.config(subject, scope=True).normalize:
            return evolve(schema, text=parsed.normalized, references=tuple(sorted(schema.references)))
        return evolve(schema, text=parsed.canonical)

    def _same(self, subject: str, schema: Schema, *, deleted: bool = False) -> Registered | None:
        """The newest version of a subject that is equal."""
        versions = reversed(self.catalog.subjects.get(subject, {}).values())
        return next((one for one in versions if one.schema == schema and (deleted or not one.deleted)), None)

    def _why_incompatible(
        self, config: Config, subject: str, new: Schema, against: list[Registered] | None = None
    ) -> list[str]:
        level = config.compatibility
        assert level is not None, "that of a scope"
        versions = self.catalog.versions(subject) if against is None else against
        earlier = ((one.version, one.schema.kind, self._read(one.schema)) for one in reversed(versions))
        try:
            return why_incompatible(level, new.kind, self._read(new), earlier)
        except InvalidSchema as error:
            raise errors.invalid_schema(str(error)) from error
        except RecursionError:
            raise errors.invalid_schema("The schemas are nested too deeply to be compared") from None

    def _read(self, schema: Schema) -> ParsedSchema:
        return self._parsed(schema.kind, schema.text, tuple(self._imports(schema)))

    def _parse(self, kind: str, text: str, imports: tuple[Import, ...]) -> ParsedSchema:
        try:
            return self._format(kind).parse(text, imports)
        except InvalidSchema as error:
            raise errors.invalid_schema(f"Invalid schema of type {kind}, details: {error}") from error
        except RecursionError:
            raise errors.invalid_schema(f"Invalid schema of type {kind}, details: nested too deeply") from None

    def _format(self, kind: str) -> SchemaFormat:
        if kind not in self._formats:
            if kind not in BUILT_IN:
                raise errors.invalid_schema(f"Invalid schema type {kind}; there are {', '.join(self.types)}")
            module = import_module(f"logkernel.testing.schema_registry.{BUILT_IN[kind]}")
            self._formats[kind] = module.FORMAT
        return self._formats[kind]

    def _referred(self, reference: Reference) -> Registered:
        """A soft-deleted version can still be referred to."""
        latest = reference.version == LATEST
        found = self.catalog.latest(reference.subject) if latest else self.catalog.get(*reference[1:])
        if found is None:
            raise errors.invalid_schema(
                f"No schema reference found for subject '{reference.subject}' and version {reference.version}"
            )
        return found

    def _resolved(self, reference: Reference) -> Reference:
        """With a number in the place of `LATEST`."""
        return reference._replace(version=self._referred(reference).version)

    def _imports(self, schema: Schema) -> Iterator[Import]:
        """What a schema refers to, each after those that it refers to itself, and once a name."""
        waiting = list(reversed(schema.references))
        opened: set[str] = set()
        closed: set[str] = set()
        steps = 0
        while waiting:
            steps += 1
            if steps > 2 * MAX_REFERENCES:
                raise errors.invalid_schema(f"More than {MAX_REFERENCES} references")
            reference = waiting[-1]
            referred = self._referred(reference).schema
            if reference.name not in opened:
                opened.add(reference.name)
                waiting += reversed(referred.references)
                continue
            waiting.pop()
            if reference.name not in closed:
                closed.add(reference.name)
                yield Import(reference.name, referred.text)


def _check_subject(subject: str) -> None:
    """Names that begin with a colon are qualified by a context, which this registry has only one of."""
    if len(subject) > MAX_SUBJECT or not _SUBJECT.fullmatch(subject) or subject in ("__GLOBAL", "__EMPTY"):
        raise errors.invalid_subject(subject)
