"""The records of `_schemas`: ours, and those that Confluent's registry writes."""

from __future__ import annotations

import pytest

from logkernel.testing.schema_registry.catalog import (
    Catalog,
    Config,
    ConfigChange,
    ModeChange,
    Registered,
    SchemaChange,
)  # fmt: skip
from logkernel.testing.schema_registry.compatibility import Level
from logkernel.testing.schema_registry.contract import Reference, Schema
from logkernel.testing.schema_registry.records import decoded, encoded

RULES = {"domainRules": []}
WHOLE = Schema("JSON", "{}", (Reference("a", "ä", 3),), {"properties": {"owner": "ann"}}, RULES)


@pytest.mark.parametrize(
    "change",
    [
        SchemaChange("s", 1, Registered("s", 1, 7, Schema("AVRO", '"int"'))),
        SchemaChange("ä", 2, Registered("ä", 2, 8, WHOLE, deleted=True)),
        SchemaChange("s", 1, None),
        ConfigChange(None, Config(Level.FULL_TRANSITIVE)),
        ConfigChange("s", Config(normalize=True)),
        ConfigChange("s", None),
        ModeChange(None, "IMPORT"),
        ModeChange("s", None),
    ],
)
def test_a_change_comes_back_from_its_record(change):
    assert decoded(*encoded(change), Catalog()) == [change]


def test_records_look_as_confluents_do():
    change = SchemaChange("s", 1, Registered("s", 1, 7, Schema("AVRO", '"int"')))
    assert encoded(change) == (
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}',
        b'{"subject":"s","version":1,"id":7,"schema":"\\"int\\"","deleted":false}',
    )


def test_a_deleted_subject_is_its_versions_deleted_softly():
    catalog = Catalog()
    for version in (1, 2, 3):
        catalog.apply(SchemaChange("s", version, Registered("s", version, version, Schema("AVRO", f'"{version}"'))))
    key, value = b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}', b'{"subject":"s","version":2}'
    for change in decoded(key, value, catalog):
        catalog.apply(change)
    assert [one.version for one in catalog.versions("s")] == [3]


@pytest.mark.parametrize("key", [b'{"keytype":"NOOP","magic":0}', b'{"keytype":"CONTEXT","tenant":"t","context":"."}'])
def test_records_that_say_nothing_of_schemas_are_passed_by(key):
    assert decoded(key, None, Catalog()) == []
    assert decoded(key, b"{}", Catalog()) == []


SCHEMA = b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, None), (b"", b""), (b"\xff", None), (b"1", b"1"), (b"[]", None), (b"{}", None),
        (b'{"keytype":5}', None), (b'{"keytype":"SCHEMA","subject":"s","version":"1"}', None),
        (b'{"keytype":"MODE","subject":5}', None), (b"[" * 100_000, None),
        (SCHEMA, b""), (SCHEMA, b"[]"), (SCHEMA, b"{}"), (SCHEMA, b'{"id":"1","schema":"x"}'),
        (SCHEMA, b'{"id":1,"schema":{}}'), (SCHEMA, b'{"id":1,"schema":"x","references":[5]}'),
        (b'{"keytype":"CONFIG","subject":null}', b'{"compatibilityLevel":"SIDEWARD"}'),
        (b'{"keytype":"MODE","subject":null}', b"{}"),
    ],
)  # fmt: skip
def test_records_that_no_registry_wrote_are_refused(key, value):
    with pytest.raises(ValueError):
        decoded(key, value, Catalog())
