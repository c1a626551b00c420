"""Which partitions a request is about. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final

from logkernel.vocabulary import TopicPartition

NameOf = Callable[[Any], str]
"""Topic id → name, "" where there is none."""
ANY_PARTITION: Final = -1
"""Of a topic that a request names without its partitions."""
TOPIC_FIELDS: Final = ("topic", "topic_name", "name")
LEFT_OUT: Final = ("forgotten_topics_data",)
"""What a fetch session is to be without."""
PARTITION_FIELDS: Final = ("partition_index", "partition", "index")


def partitions_named(request: Any, name_of: NameOf) -> list[TopicPartition]:
    """The partitions that a request of `logkernel.requests` names, whatever its API is."""
    found: dict[TopicPartition, None] = {}
    _walk(request, name_of, found)
    return list(found)


def _walk(part: Any, name_of: NameOf, found: dict[TopicPartition, None]) -> None:
    import attrs

    for each in attrs.fields(type(part)):
        if each.name in LEFT_OUT:
            continue
        for inner in _elements(getattr(part, each.name)):
            if not attrs.has(type(inner)):
                continue
            topic = _topic(inner, name_of)
            if topic:
                indexes = list(_partitions(inner)) or [ANY_PARTITION]
                found.update(dict.fromkeys(TopicPartition(topic, index) for index in indexes))
            else:
                _walk(inner, name_of, found)


def _topic(part: Any, name_of: NameOf) -> str:
    """The topic that this part of a request is about; "" for another part."""
    if "Topic" not in type(part).__name__:
        return ""
    names = [getattr(part, name, None) for name in TOPIC_FIELDS]
    topic_id = getattr(part, "topic_id", None)
    return next((name for name in names if isinstance(name, str) and name), "") or (
        name_of(topic_id) if topic_id is not None else ""
    )


def _partitions(topic: Any) -> list[int]:
    """The indexes in a topic's lists: numbers, or rows that have one."""
    import attrs

    found = []
    for each in attrs.fields(type(topic)):
        for row in _elements(getattr(topic, each.name)):
            indexes = [row] + [getattr(row, name, None) for name in PARTITION_FIELDS]
            found += [index for index in indexes if isinstance(index, int)][:1]
    return found


def _elements(value: Any) -> list[Any] | tuple[Any, ...]:
    return value if isinstance(value, (list, tuple)) else ()


class FetchSession:
    """The partitions that a connection fetches: a request within a session names only what changed."""

    def __init__(self) -> None:
        self._names: dict[TopicPartition, None] = {}

    def follow(self, request: Any, named: Collection[TopicPartition], name_of: NameOf) -> list[TopicPartition]:
        """What a FetchRequest is about, itself and by its session."""
        if request.session_epoch <= 0:
            self._names.clear()
        self._names.update(dict.fromkeys(named))
        for topic in request.forgotten_topics_data:
            for partition in topic.partitions:
                self._names.pop(TopicPartition(topic.topic or name_of(topic.topic_id), partition), None)
        return list(self._names)
