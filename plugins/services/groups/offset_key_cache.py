"""Find the offsets that a record of `__consumer_offsets` belongs to, by its key without the partition."""

from __future__ import annotations

from struct import Struct
from typing import Final, Protocol

from .records import OFFSET_KEY, CommittedOffset
from .state import Group

KEY_HEAD: Final = Struct(">hh")
"""Version, length of the group's id."""
_TEXT_SIZE = Struct(">h")
MAX_KEYS: Final = 4_096


class OffsetKeyCache:
    """Finds a group's offsets by the key of their record; successive commits name the same topics of the same groups.

    Call `forget` whenever a group, or a group's last offset of a topic, may have been removed.
    """

    __slots__ = ("group", "head", "ids", "of_key", "texts")

    def __init__(self) -> None:
        self.of_key: dict[bytes, dict[int, CommittedOffset]] = {}
        """Key without its partition → partition → offset."""
        self.head = b""
        self.group: Group | None = None
        """The group that was found last; `head` is how its keys begin."""
        self.texts: dict[bytes, str] = {}
        self.ids: dict[bytes, bytes] = {}
        """Names and ids of topics seen so far, so that groups which read the same topics share one copy."""

    def forget(self) -> None:
        if self.head:
            self.of_key.clear()
            self.head, self.group = b"", None
            self.texts.clear()
            self.ids.clear()


class GroupOwner(Protocol):
    """What the cache needs of the coordinator."""

    @property
    def offset_keys(self) -> OffsetKeyCache: ...
    def group(self, group_id: str) -> Group:
        """Return the group; make it if it does not exist."""


def cached_offsets(owner: GroupOwner, key: bytes) -> dict[int, CommittedOffset] | None:
    """Like `offsets_of_key`, and remember the answer."""
    cache = owner.offset_keys
    kept = cache.of_key.get(key)
    if kept is None:
        if len(cache.of_key) >= MAX_KEYS:
            cache.forget()
        kept = offsets_of_key(owner, key)
        if kept is not None:
            cache.of_key[key] = kept
    return kept


def offsets_of_key(owner: GroupOwner, key: bytes) -> dict[int, CommittedOffset] | None:
    """Return the offsets (partition → offset) that keys beginning with `key` belong to; None if `key` is malformed."""
    if len(key) < KEY_HEAD.size:
        return None
    version, size = KEY_HEAD.unpack_from(key)
    end = KEY_HEAD.size + size
    if version != OFFSET_KEY or size < 0 or len(key) < end + _TEXT_SIZE.size:
        return None
    topic = key[end + _TEXT_SIZE.size :]
    if _TEXT_SIZE.unpack_from(key, end)[0] != len(topic):
        return None
    cache, head = owner.offset_keys, key[:end]
    texts, group = cache.texts, cache.group
    try:
        name = texts.get(topic) or texts.setdefault(topic, topic.decode())
        if group is None or cache.head != head:
            group = owner.group(head[KEY_HEAD.size :].decode())
            group.is_known = True
            cache.head, cache.group = head, group
    except UnicodeDecodeError:
        return None
    kept = group.offsets.get(name)
    if kept is None:
        kept = group.offsets[name] = {}
    return kept
