"""The compatibility levels.

level        a reader with the … schema   can read data written with the …   compared with
BACKWARD     new                          earlier                            the newest version
FORWARD      earlier                      new                                the newest version
FULL         both                                                            the newest version
…_TRANSITIVE                                                                 every version, the newest first
NONE         is compared with nothing
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from logkernel.testing.schema_registry.contract import ParsedSchema


class Level(Enum):
    """The value is (new reads earlier, earlier reads new, all versions)."""

    NONE = (False, False, False)
    BACKWARD = (True, False, False)
    BACKWARD_TRANSITIVE = (True, False, True)
    FORWARD = (False, True, False)
    FORWARD_TRANSITIVE = (False, True, True)
    FULL = (True, True, False)
    FULL_TRANSITIVE = (True, True, True)


def why_incompatible(
    level: Level, kind: str, new: ParsedSchema, earlier: Iterable[tuple[int, str, ParsedSchema]]
) -> list[str]:
    """Why `new`, of the format `kind`, must not follow; empty: it may.

    `earlier` are (version, format, schema), the newest first. It is read only as far as the level asks. The first
    version that does not fit is the one that is told of.
    """
    backward, forward, every = level.value
    if not (backward or forward):
        return []
    for version, its_kind, schema in earlier:
        if its_kind != kind:
            return [f"Incompatible because of different schema type: {kind} follows {its_kind}"]
        reasons = new.why_unreadable(schema) if backward else []
        if forward:
            reasons += schema.why_unreadable(new)
        if reasons:
            return [*reasons, f"{{oldSchemaVersion: {version}}}", f"{{compatibility: '{level.name}'}}"]
        if not every:
            break
    return []
