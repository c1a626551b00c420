"""File and folder names inside a Kafka data directory.

    <topic>-<partition>/00000000000000000042.log        records; the number is the segment's base offset
                                            .index      offset → position
                                            .timeindex  timestamp → offset
                                            .txnindex   aborted transactions
                                            .snapshot   producer state; the number is the offset after it

A name that ends in `.deleted`, `.cleaned` or `.swap` is a step of a removal or of a rewrite.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from logkernel.vocabulary import TopicPartition

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"
SECURITY_FOLDER = "security"
"""In a data directory: the keys of `logkernel serve --secure`."""
BROKER_FOLDER: Final = "broker-"
"""Begins the name of a broker's directory in the folder of a cluster, before its node id."""
DELETE_DIR: Final = "-delete"
FUTURE_DIR: Final = "-future"
STRAY_DIR: Final = "-stray"
MOVED_DIR: Final = "-moved"
"""A whole copy, to take the place of the log in another directory; see `moving`."""
MAX_NAME: Final = 255

STATE_TOPIC: Final = "__logkernel_metadata"
"""The log that a broker lends to its coordination."""
NO_TOPICS: Final = frozenset(("__cluster_metadata", STATE_TOPIC))
"""Logs that are no topic's: Apache Kafka's metadata, and ours."""

SEGMENT_SUFFIXES: Final = (LOG, INDEX, TIME_INDEX, TXN_INDEX)
_DIGITS: Final = 20


def offset_name(offset: int, suffix: str) -> str:
    """`00000000000000000042.log` for offset 42."""
    return f"{offset:020d}{suffix}"


def offset_of(name: str, suffix: str) -> int | None:
    """The offset in a file name with `suffix`, or None for any other name."""
    stem = name[: -len(suffix)] if name.endswith(suffix) else ""
    return int(stem) if len(stem) == _DIGITS and stem.isascii() and stem.isdigit() else None


def partition_of(folder: str) -> TopicPartition | None:
    """Return the partition whose log is in `folder`; None for a folder that is not a live log, and for a path."""
    if "/" in folder or "\0" in folder:
        return None
    if folder.endswith((DELETE_DIR, FUTURE_DIR, STRAY_DIR, MOVED_DIR)):
        return None
    topic, dash, number = folder.rpartition("-")
    if not dash or not topic or not (number.isascii() and number.isdigit()):
        return None
    return TopicPartition(topic, int(number))


def doomed_name(topic: str, partition: int, unique: UUID) -> str:
    """The name of a log folder that waits for its removal; the topic is cut where 255 bytes would be passed."""
    suffix = f"-{partition}.{unique.hex}{DELETE_DIR}"
    return topic[: MAX_NAME - len(suffix)] + suffix


def future_name(topic: str, partition: int, unique: UUID) -> str | None:
    """The name of a copy that is being made; None where the topic's name leaves no room for it."""
    name = f"{topic}-{partition}.{unique.hex}{FUTURE_DIR}"
    return name if len(name) <= MAX_NAME else None


def copy_of(folder: str, suffix: str) -> TopicPartition | None:
    """The partition that a folder is a copy of, by its suffix FUTURE_DIR or MOVED_DIR; None for any other folder."""
    stem, dot, unique = folder.removesuffix(suffix).rpartition(".")
    return partition_of(stem) if folder.endswith(suffix) and dot and len(unique) == 32 else None
