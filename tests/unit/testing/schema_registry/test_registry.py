"""What the registry decides, without HTTP. A format of letters stands for the real ones: a reader with "abc" can read
what was written with letters of these."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from random import Random

import pytest

from logkernel.testing.schema_registry.catalog import Catalog, Change, Config
from logkernel.testing.schema_registry.compatibility import Level
from logkernel.testing.schema_registry.contract import Import, InvalidSchema, ParsedSchema, Reference, Schema
from logkernel.testing.schema_registry.errors import RegistryError
from logkernel.testing.schema_registry.registry import (
    LATEST,
    MAX_ID,
    MAX_REFERENCES,
    MAX_SCHEMA_BYTES,
    MODES,
    Registry,
)  # fmt: skip


class Letters(ParsedSchema):
    def __init__(self, text: str) -> None:
        self.letters = text

    @property
    def canonical(self) -> str:
        return self.letters.replace(" ", "")

    @property
    def normalized(self) -> str:
        return "".join(sorted(self.canonical))

    def why_unreadable(self, written: Letters) -> list[str]:
        return sorted(set(written.canonical) - set(self.canonical))


class LettersFormat:
    name = "LETTERS"

    def __init__(self) -> None:
        self.imports: list[list[Import]] = []

    def parse(self, text: str, imports: list[Import]) -> ParsedSchema:
        self.imports.append(list(imports))
        if "!" in text:
            raise InvalidSchema("! is no letter")
        return Letters(text)


def letters(text: str, *references: tuple[str, str, int], **more: object) -> Schema:
    return Schema("LETTERS", text, tuple(Reference(*one) for one in references), **more)


class Bench:
    def __init__(self, **more: object) -> None:
        self.format = LettersFormat()
        self.changes: list[Change] = []
        formats = {"LETTERS": self.format, "OTHER": LettersFormat()}
        self.registry = Registry(formats, keep=self.changes.append, **more)

    def add(self, subject: str, text: str, *references: tuple[str, str, int], **more: object) -> tuple[int, int]:
        found = self.registry.register(subject, letters(text, *references), **more)
        return found.version, found.id

    def level(self, name: str, subject: str | None = None) -> None:
        self.registry.set_config(subject, Config(Level[name]))


@pytest.fixture
def bench() -> Bench:
    return Bench()


@contextmanager
def refused(code: int) -> Iterator[None]:
    with pytest.raises(RegistryError) as caught:
        yield
    assert caught.value.code == code, str(caught.value)


# -------------------------------------------------------------------- ids and versions


def test_equal_schemas_share_an_id_over_subjects(bench):
    assert bench.add("one", "a") == (1, 1)
    assert bench.add("one", "ab") == (2, 2)
    assert bench.add("two", "a b") == (1, 2)
    assert bench.add("one", "ab") == (2, 2), "registered already"
    assert [(one.subject, one.version) for one in bench.registry.places(2)] == [("one", 2), ("two", 1)]


def test_schemas_that_differ_in_what_belongs_to_them_have_ids_of_their_own(bench):
    schemas = [
        letters("a"),
        letters("a", metadata={"properties": {"owner": "ann"}}),
        letters("a", rule_set={"domainRules": []}),
        Schema("OTHER", "a"),
    ]
    found = [bench.registry.register(f"s{number}", schema) for number, schema in enumerate(schemas)]
    assert [one.id for one in found] == [1, 2, 3, 4]
    assert len({one.schema.guid for one in found}) == 4
    assert bench.registry.by_guid(found[1].schema.guid) == found[1]


def test_normalized_schemas_are_equal_in_another_order(bench):
    assert bench.add("s", "ba", normalize=True) == (1, 1)
    assert bench.add("s", "ab") == (1, 1)
    bench.registry.set_config("s", Config(normalize=True))
    assert bench.add("s", "ba") == (1, 1)


def test_what_is_there_is_found(bench):
    bench.add("s", "a")
    bench.add("s", "ab")
    assert bench.registry.lookup("s", letters("a")).version == 1
    assert bench.registry.version("s", LATEST).schema.text == "ab"
    assert bench.registry.version("s", 1).id == 1
    assert bench.registry.by_id(2).schema.text == "ab"
    assert bench.registry.subjects() == ["s"]
    assert bench.registry.versions("s") == [1, 2]


def test_what_is_not_there_is_told_apart(bench):
    bench.add("s", "a")
    registry = bench.registry
    for code, ask in [
        (40401, lambda: registry.lookup("t", letters("a"))),
        (40403, lambda: registry.lookup("s", letters("z"))),
        (40401, lambda: registry.versions("t")),
        (40401, lambda: registry.version("t", 1)),
        (40402, lambda: registry.version("s", 2)),
        (40403, lambda: registry.by_id(9)),
        (40403, lambda: registry.by_guid("x")),
        (40403, lambda: registry.places(9)),
        (40408, lambda: registry.config("s")),
        (40409, lambda: registry.mode("s")),
        (40401, lambda: registry.delete_config("s")),
        (40401, lambda: registry.delete_mode("s")),
        (40401, lambda: registry.delete_subject("t")),
        (40402, lambda: registry.delete_version("s", 2)),
        (40402, lambda: registry.check("s", letters("a"), 2)),
    ]:
        with refused(code):
            ask()


@pytest.mark.parametrize("subject", ["", ":.context:s", "a\nb", "a\x7f", "s" * 1001, "__GLOBAL"])
def test_subjects_that_cannot_be_are_refused(bench, subject):
    with refused(42208):
        bench.add(subject, "a")
    with refused(42208):
        bench.level("NONE", subject)
    with refused(42208):
        bench.registry.set_mode(subject, "READONLY")


@pytest.mark.parametrize(
    ("schema", "code"),
    [
        (letters("a!"), 42201),
        (letters(" "), 42201),
        (letters("\ud800"), 42201),
        (letters("a" * (MAX_SCHEMA_BYTES + 1)), 42209),
        (Schema("XML", "a"), 42201),
        (letters("a", ("x", "nosuch", 1)), 42201),
    ],
)
def test_schemas_that_are_none_are_refused(bench, schema, code):
    with refused(code):
        bench.registry.register("s", schema)
    assert bench.changes == []


# -------------------------------------------------------------------- compatibility


@pytest.mark.parametrize(
    ("level", "history", "fits", "fails"),
    [
        ("NONE", ["ab"], "xyz", None),
        ("BACKWARD", ["xyz", "ab"], "abc", "a"),
        ("BACKWARD_TRANSITIVE", ["abc", "ab"], "abcd", "ab d"),
        ("FORWARD", ["xyz", "ab"], "a", "abc"),
        ("FORWARD_TRANSITIVE", ["ab", "abc"], "b a", "bc"),
        ("FULL", ["xyz", "ab"], "ba", "abc"),
        ("FULL_TRANSITIVE", ["ab", "ba"], "b a a", "abc"),
    ],
)
def test_levels_compare_with_what_they_name(bench, level, history, fits, fails):
    bench.level("NONE")
    for text in history:
        bench.add("s", text)
    bench.level(level)
    if fails is not None:
        with refused(409):
            bench.add("s", fails)
        assert bench.registry.check("s", letters(fails), None) != []
    assert bench.registry.check("s", letters(fits), None) == []
    assert bench.add("s", fits)[0] == 3 - (len(history) == 1)


def test_a_refusal_names_the_version_and_the_level(bench):
    bench.add("s", "ab")
    with pytest.raises(RegistryError) as caught:
        bench.add("s", "a")
    assert caught.value.status == 409
    assert caught.value.message == (
        'Schema being registered is incompatible with an earlier schema for subject "s",'
        " details: [b, {oldSchemaVersion: 1}, {compatibility: 'BACKWARD'}]"
    )


def test_a_schema_of_another_format_is_incompatible(bench):
    bench.add("s", "a")
    with refused(409):
        bench.registry.register("s", Schema("OTHER", "a"))
    bench.level("NONE", "s")
    assert bench.registry.register("s", Schema("OTHER", "a")).version == 2


def test_deleted_versions_are_not_compared_with(bench):
    bench.add("s", "ab")
    bench.registry.delete_version("s", 1)
    assert bench.add("s", "x") == (2, 2)


def test_one_version_is_compared_with_by_its_number(bench):
    bench.level("NONE")
    bench.add("s", "ab")
    bench.add("s", "x")
    bench.level("BACKWARD")
    assert bench.registry.check("s", letters("abc"), 1) == []
    assert bench.registry.check("s", letters("abc"), LATEST) != []
    assert bench.registry.check("unheard", letters("abc"), LATEST) == []


def test_a_subjects_level_is_above_the_registrys(bench):
    registry = bench.registry
    assert registry.config().compatibility is Level.BACKWARD
    bench.level("FULL")
    bench.level("NONE", "s")
    assert registry.config("s").compatibility is Level.NONE
    assert registry.config("t", scope=True).compatibility is Level.FULL
    assert registry.delete_config("s").compatibility is Level.NONE
    assert registry.config("s", scope=True).compatibility is Level.FULL
    registry.delete_config(None)
    assert registry.config().compatibility is Level.BACKWARD


# -------------------------------------------------------------------- deletes


def test_a_version_is_deleted_softly_and_then_for_good(bench):
    registry = bench.registry
    bench.add("s", "a")
    bench.add("s", "ab")
    with refused(40407):
        registry.delete_version("s", 1, permanent=True)
    assert registry.delete_version("s", 1) == 1
    with refused(40406):
        registry.delete_version("s", 1)
    assert registry.versions("s") == [2]
    assert registry.versions("s", deleted=True) == [1, 2]
    assert registry.versions("s", deleted_only=True) == [1]
    assert registry.by_id(1).schema.text == "a", "data that is written can still be read"
    assert registry.version("s", 1, deleted=True).deleted
    assert registry.delete_version("s", 1, permanent=True) == 1
    with refused(40403):
        registry.by_id(1)
    with refused(40402):
        registry.version("s", 1, deleted=True)


def test_a_subject_is_deleted_with_its_settings(bench):
    registry = bench.registry
    bench.add("s", "a")
    bench.add("s", "ab")
    bench.level("FULL", "s")
    with refused(40405):
        registry.delete_subject("s", permanent=True)
    assert registry.delete_subject("s") == [1, 2]
    with refused(40404):
        registry.delete_subject("s")
    assert (registry.subjects(), registry.subjects(deleted=True), registry.subjects(deleted_only=True)) == (
        [], ["s"], ["s"],
    )  # fmt: skip
    assert registry.config("s").compatibility is Level.FULL
    assert registry.delete_subject("s", permanent=True) == [1, 2]
    with refused(40408):
        registry.config("s")
    assert bench.add("s", "a") == (1, 3), "versions begin again, ids do not"


def test_versions_are_numbered_past_deleted_ones(bench):
    bench.add("s", "a")
    bench.registry.delete_subject("s")
    assert bench.add("s", "ab") == (2, 2)
    assert bench.add("s", "a b c") == (3, 3)


def test_a_deleted_schema_that_is_registered_again_moves_to_a_new_version(bench):
    bench.add("s", "a")
    bench.registry.delete_version("s", 1)
    assert bench.add("s", "a") == (2, 1)
    assert bench.registry.versions("s", deleted=True) == [2]


# -------------------------------------------------------------------- references


def test_imports_come_in_the_order_in_which_they_need_one_another(bench):
    bench.add("base", "a")
    bench.add("middle", "b", ("base.x", "base", 1))
    bench.add("top", "c", ("middle.x", "middle", 1), ("base.x", "base", LATEST))
    assert bench.format.imports[-1] == [Import("base.x", "a"), Import("middle.x", "b")]
    assert bench.registry.version("top", 1).schema.references[1] == ("base.x", "base", 1)
    assert bench.registry.referenced_by("base", 1) == [2, 3]


def test_what_is_referred_to_is_not_deleted(bench):
    registry = bench.registry
    bench.add("base", "a")
    bench.add("base", "ab")
    bench.add("top", "c", ("x", "base", 1))
    with refused(42206):
        registry.delete_version("base", 1)
    with refused(42206):
        registry.delete_subject("base")
    assert registry.delete_version("base", 2) == 2
    registry.delete_subject("top")
    assert registry.delete_version("base", 1) == 1
    with refused(42206):
        registry.delete_version("base", 1, permanent=True)
    registry.delete_subject("top", permanent=True)
    assert registry.delete_subject("base", permanent=True) == [1, 2]
    assert registry.catalog.size_bytes == 0


def test_references_are_bounded_and_followed_once_a_name(bench):
    bench.add("s0", "a")
    for number in range(1, 30):  # two to the thirtieth ways lead to the first
        bench.add(f"s{number}", "a", *((f"{way}{number}", f"s{number - 1}", 1) for way in "lr"))
    with refused(42201):
        bench.add("many", "a", *((f"n{number}", "s0", 1) for number in range(MAX_REFERENCES + 1)))


# -------------------------------------------------------------------- modes


def test_a_read_only_subject_is_not_changed(bench):
    registry = bench.registry
    bench.add("s", "a")
    registry.set_mode("s", "READONLY")
    for change in [
        lambda: bench.add("s", "ab"),
        lambda: registry.delete_version("s", 1),
        lambda: registry.delete_subject("s"),
        lambda: bench.level("FULL", "s"),
    ]:
        with refused(42205):
            change()
    assert bench.add("t", "a") == (1, 1)
    assert registry.delete_mode("s") == "READONLY"
    assert bench.add("s", "ab") == (2, 2)


def test_an_import_brings_ids_and_versions_of_its_own(bench):
    registry = bench.registry
    with refused(42205):
        bench.add("s", "a", id=7)
    registry.set_mode(None, "IMPORT")
    with refused(42205):
        bench.add("s", "a")
    assert bench.add("s", "xyz", id=7, version=3) == (3, 7)
    assert bench.add("s", "a", id=5, version=1) == (1, 5), "what follows is not compared with it"
    assert registry.versions("s") == [1, 3]
    with refused(42205):
        bench.add("t", "other", id=7)
    with refused(42205):
        bench.add("t", "xyz", id=8)
    with refused(42201):
        bench.add("s", "b", id=9, version=3)
    registry.set_mode(None, "READWRITE")
    assert bench.add("s", "xyz0") == (4, 8)


def test_import_mode_needs_an_empty_registry_or_force(bench):
    registry = bench.registry
    bench.add("s", "a")
    with refused(42205):
        registry.set_mode(None, "IMPORT")
    with refused(42204):
        registry.set_mode(None, "WRITE")
    registry.delete_subject("s")
    registry.set_mode(None, "IMPORT")
    assert registry.subjects(deleted=True) == []
    registry.set_mode(None, "READWRITE")
    bench.add("s", "a")
    assert registry.set_mode("s", "IMPORT", force=True) == "IMPORT"


def test_ids_and_versions_end_where_kafkas_do(bench):
    bench.registry.set_mode(None, "IMPORT")
    bench.add("s", "a", id=MAX_ID, version=MAX_ID)
    bench.registry.set_mode(None, "READWRITE")
    with refused(42202):
        bench.add("s", "ab")
    with refused(42205):
        bench.add("t", "ab")
    assert bench.add("t", "a") == (1, MAX_ID)


# -------------------------------------------------------------------- the whole


def test_what_it_holds_is_bounded():
    bench = Bench(max_bytes=5_500)
    for number in range(4):
        bench.add(f"s{number}", "a")
    with refused(42209):
        bench.add("more", "a" * 2_000)
    bench.registry.delete_subject("s0")
    bench.registry.delete_subject("s0", permanent=True)
    bench.add("more", "a" * 900)
    bench.level("NONE", "more")
    with refused(42209):
        for number in range(9):
            bench.level("NONE", f"unheard{number}")


def test_a_catalog_is_the_sum_of_its_changes(bench):
    registry = bench.registry
    bench.level("NONE")
    bench.add("base", "a")
    bench.add("top", "b", ("x", "base", 1))
    bench.add("top", "c")
    registry.set_mode("top", "READONLY")
    registry.delete_mode("top")
    registry.delete_version("top", 1)
    registry.delete_version("top", 1, permanent=True)
    again = Catalog()
    for change in bench.changes:
        again.apply(change)
    assert vars(again) == vars(registry.catalog)


def test_metadata_finds_the_newest_version_that_has_it(bench):
    bench.level("NONE")
    for text, owner in [("a", "ann"), ("b", "bob"), ("c", "ann"), ("d", "cy")]:
        bench.registry.register("s", letters(text, metadata={"properties": {"owner": owner}}))
    assert bench.registry.with_metadata("s", {"owner": "ann"}).schema.text == "c"
    with refused(40403):
        bench.registry.with_metadata("s", {"owner": "dora"})
    with refused(40401):
        bench.registry.with_metadata("t", {})


@pytest.mark.parametrize("seed", range(8))
def test_whatever_is_asked_the_catalog_agrees_with_itself(seed, bench):
    random, registry = Random(seed), bench.registry

    def subject() -> str:
        return random.choice("rst")

    def schema() -> Schema:
        references = [("x", subject(), random.choice([1, 2, LATEST]))] if random.random() < 0.3 else []
        return letters("".join(random.choices("abc", k=2)), *references)

    asked = [
        lambda: registry.register(subject(), schema(), normalize=random.random() < 0.3),
        lambda: registry.register(subject(), schema(), version=random.randrange(1, 5), id=random.choice([None, 3, 9])),
        lambda: registry.lookup(subject(), schema(), deleted=random.random() < 0.5),
        lambda: registry.delete_version(subject(), random.choice([1, 2, 3, LATEST]), permanent=random.random() < 0.5),
        lambda: registry.delete_subject(subject(), permanent=random.random() < 0.5),
        lambda: registry.set_config(random.choice([None, "r"]), Config(random.choice(list(Level)))),
        lambda: registry.delete_config("r"),
        lambda: registry.set_mode(random.choice([None, "s"]), random.choice(MODES), force=random.random() < 0.5),
        lambda: registry.delete_mode(random.choice([None, "s"])),
    ]
    for _ in range(600):
        with suppress(RegistryError):
            random.choice(asked)()
        by_id: dict[int, Schema] = {}
        for versions in registry.catalog.subjects.values():
            assert list(versions) == sorted(versions)
            for one in versions.values():
                assert by_id.setdefault(one.id, one.schema) == one.schema, "one id, one schema"
                assert registry.by_id(one.id).schema == one.schema
                for reference in one.schema.references:
                    assert registry.catalog.get(reference.subject, reference.version) is not None, "none dangles"
    assert len(bench.changes) > 60
    again = Catalog()
    for change in bench.changes:
        again.apply(change)
    assert vars(again) == vars(registry.catalog)
    registry.clear()
    assert vars(registry.catalog) == vars(Catalog())
