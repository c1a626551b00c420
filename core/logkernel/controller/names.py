"""Which names a topic may have."""

from __future__ import annotations

from logkernel.errors import InvalidTopicException
from logkernel.vocabulary import MAX_TOPIC_CHARACTERS, is_topic_name

METADATA_TOPIC = "__cluster_metadata"
"""The topic of a KRaft cluster's metadata. No topic can be created with this name."""


def check_name(name: str) -> None:
    """Raises InvalidTopicException, which says what a name may hold."""
    if is_topic_name(name):
        return
    if not name:
        raise InvalidTopicException("a topic's name is empty; give it one")
    if name in (".", ".."):
        raise InvalidTopicException(f"a topic can't be called {name!r}, a folder's own name; choose another")
    if len(name) > MAX_TOPIC_CHARACTERS:
        raise InvalidTopicException(
            f"the topic name {name[:40] + '…'!r} has {len(name)} characters; {MAX_TOPIC_CHARACTERS} are the most"
        )
    raise InvalidTopicException(
        f"the topic name {name!r} has other characters than ASCII letters, digits, '.', '_' and '-'; leave them out"
    )


def flat(name: str) -> str:
    """The name as metrics write it, with '_' for '.'. Two topics may not have the same: `a.b` and `a_b`."""
    return name.replace(".", "_")
