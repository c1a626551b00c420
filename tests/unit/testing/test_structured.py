"""Requests go over the control port of a broker in another process, and come back as they were."""

from __future__ import annotations

import pkgutil
import types
from collections.abc import Iterator
from importlib import import_module
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import attrs
import pytest

import logkernel.requests
from logkernel.client.admin.groups import GroupDescription, GroupMember
from logkernel.requests.data import PartitionProduceData, ProduceRequest, TopicProduceData
from logkernel.testing.child.structured import request_of, structured
from logkernel.testing.server.rows import plain
from logkernel.vocabulary import Record, TopicPartition

SIMPLE = {int: 7, str: "text", bool: True, float: 1.5, bytes: b"\xff\x00", UUID: UUID(int=5)}


def classes() -> Iterator[type]:
    for module in pkgutil.iter_modules(logkernel.requests.__path__):
        found = import_module(f"logkernel.requests.{module.name}")
        for name, each in vars(found).items():
            if name.endswith("Request") and isinstance(each, type) and each.__module__ == found.__name__:
                yield each


def example(kind: Any) -> Any:
    """A value of that type, with one element in each list."""
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return example(get_args(kind)[0])
    if origin is tuple and get_args(kind)[-1] is not Ellipsis:
        return tuple(map(example, get_args(kind)))
    if origin in (list, tuple, set, frozenset):
        return origin([example(get_args(kind)[0])])
    if origin is not None:
        return {example(get_args(kind)[0]): example(get_args(kind)[1])}
    if kind in SIMPLE:
        return SIMPLE[kind]
    hints = get_type_hints(kind)
    names = [each.name for each in attrs.fields(kind)] if attrs.has(kind) else kind._fields
    return kind(**{name: example(hints[name]) for name in names})


@pytest.mark.parametrize("kind", list(classes()), ids=lambda kind: kind.__name__)
def test_every_request_comes_back(kind: type) -> None:
    request = example(kind)
    assert request_of(f"{kind.__module__}.{kind.__name__}", plain(request)) == request


def test_none_and_text_among_bytes_come_back() -> None:
    rows = [PartitionProduceData(1, b"\xff\x00"), PartitionProduceData(2, b"text"), PartitionProduceData(3, None)]
    request = ProduceRequest("t", -1, 5, [TopicProduceData("orders", rows)])
    assert request_of("logkernel.requests.data.ProduceRequest", plain(request)) == request
    record = Record(None, b"{}", (("a", b"\xff"), ("b", None)), 5, 6)
    assert structured(Record, plain(record)) == record
    member = GroupMember("m", None, "c", "h", topics=("t",), assigned=(TopicPartition("t", 1),))
    group = GroupDescription("g", "classic", "Stable", "range", [member])
    assert structured(GroupDescription, plain(group)) == group


def test_other_classes_are_not_built() -> None:
    with pytest.raises(ValueError, match="is no request"):
        request_of("subprocess.Popen", {"args": "true"})
