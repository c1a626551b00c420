"""Pure: the records that Confluent's registry keeps in its topic `_schemas`, from changes and back.

    key                                                              value
    {"keytype":"SCHEMA","subject":S,"version":V,"magic":1}           the version; none: it is deleted for good
    {"keytype":"CONFIG","subject":S or null,"magic":0}               {"compatibilityLevel":…}
    {"keytype":"MODE","subject":S or null,"magic":0}                 {"mode":…}
    {"keytype":"DELETE_SUBJECT","subject":S,"magic":0}               {"version":V}: those up to V are soft-deleted

The last one, which Confluent's registry writes, is read only. Others (NOOP, CONTEXT) say nothing of what we hold.
"""

from __future__ import annotations

import json
from typing import Any

from logkernel.attrs_lite import evolve
from logkernel.testing.schema_registry.catalog import (
    Catalog,
    Change,
    Config,
    ConfigChange,
    ModeChange,
    Registered,
    SchemaChange,
)  # fmt: skip
from logkernel.testing.schema_registry.compatibility import Level
from logkernel.testing.schema_registry.contract import Reference, Schema


def encoded(change: Change) -> tuple[bytes, bytes | None]:
    """(key, value) of a record."""
    match change:
        case SchemaChange(subject, version, registered):
            key: dict[str, Any] = {"keytype": "SCHEMA", "subject": subject, "version": version, "magic": 1}
            return _json(key), None if registered is None else _json(_version(registered))
        case ConfigChange(subject, config):
            key = {"keytype": "CONFIG", "subject": subject, "magic": 0}
            return _json(key), None if config is None else _json(_config(config))
        case ModeChange(subject, mode):
            key = {"keytype": "MODE", "subject": subject, "magic": 0}
            return _json(key), None if mode is None else _json({"subject": subject, "mode": mode})


def decoded(key: bytes | None, value: bytes | None, catalog: Catalog) -> list[Change]:
    """What a record changes in a catalog that has the records before it. Raises ValueError if it is none of these."""
    try:
        named, row = json.loads(key or b""), None if value is None else json.loads(value)
        match named:
            case {"keytype": "SCHEMA", "subject": str(subject), "version": int(version)}:
                return [SchemaChange(subject, version, None if row is None else _registered(subject, version, row))]
            case {"keytype": "CONFIG", "subject": str() | None as subject}:
                return [ConfigChange(subject, None if row is None else _read_config(row))]
            case {"keytype": "MODE", "subject": str() | None as subject}:
                return [ModeChange(subject, None if row is None else str(row["mode"]))]
            case {"keytype": "DELETE_SUBJECT", "subject": str(subject)} if row is not None:
                gone = [one for one in catalog.versions(subject) if one.version <= row["version"]]
                return [SchemaChange(subject, one.version, evolve(one, deleted=True)) for one in gone]
            case {"keytype": "SCHEMA" | "CONFIG" | "MODE"}:
                raise ValueError(f"{key!r} lacks a subject or a version")
            case {"keytype": str()}:
                return []
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(repr(error)) from error
    raise ValueError(f"{key!r} has no keytype")


def _json(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def _version(one: Registered) -> dict[str, Any]:
    found = {"subject": one.subject, "version": one.version, "id": one.id, **one.schema.unusual()}
    return found | {"schema": one.schema.text, "deleted": one.deleted}


def _registered(subject: str, version: int, row: dict[str, Any]) -> Registered:
    if not (isinstance(row["id"], int) and isinstance(row["schema"], str)):
        raise ValueError(f"version {version} of {subject} has no id, or no schema")
    references = tuple(Reference(one["name"], one["subject"], one["version"]) for one in row.get("references") or ())
    schema = Schema(row.get("schemaType") or "AVRO", row["schema"], references, row.get("metadata"), row.get("ruleSet"))
    return Registered(subject, version, row["id"], schema, bool(row.get("deleted")))


def _config(config: Config) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if config.compatibility is not None:
        found["compatibilityLevel"] = config.compatibility.name
    if config.normalize is not None:
        found["normalize"] = config.normalize
    return found


def _read_config(row: dict[str, Any]) -> Config:
    level = row.get("compatibilityLevel")
    return Config(None if level is None else Level[level], row.get("normalize"))
