"""Where an offset's record belongs, told by its key without the partition: commit after commit names the same."""

from __future__ import annotations

from struct import Struct
from typing import Final

from .records import OFFSET_KEY, CommittedOffset
from .shard import Shard

KEY_HEAD: Final = Struct(">hh")
"""Version, length of the group's id."""
_TEXT_SIZE = Struct(">h")
MAX_PLACES: Final = 4_096


def known_place(shard: Shard, key: bytes) -> dict[int, CommittedOffset] | None:
    """As `place`, which is remembered."""
    places = shard.places.of_key
    kept = places.get(key)
    if kept is None:
        if len(places) >= MAX_PLACES:
            shard.places.forget()
        kept = place(shard, key)
        if kept is not None:
            places[key] = kept
    return kept


def place(shard: Shard, key: bytes) -> dict[int, CommittedOffset] | None:
    """Where offsets belong whose keys begin so, whatever the partition; None where `key` is not all of that."""
    if len(key) < KEY_HEAD.size:
        return None
    version, size = KEY_HEAD.unpack_from(key)
    end = KEY_HEAD.size + size
    if version != OFFSET_KEY or size < 0 or len(key) < end + _TEXT_SIZE.size:
        return None
    topic = key[end + _TEXT_SIZE.size :]
    if _TEXT_SIZE.unpack_from(key, end)[0] != len(topic):
        return None
    places, head = shard.places, key[:end]
    texts, group = places.texts, places.group
    try:
        name = texts.get(topic) or texts.setdefault(topic, topic.decode())
        if group is None or places.head != head:
            group = shard.group(head[KEY_HEAD.size :].decode())
            group.is_known = True
            places.head, places.group = head, group
    except UnicodeDecodeError:
        return None
    kept = group.offsets.get(name)
    if kept is None:
        kept = group.offsets[name] = {}
    return kept
