"""Every API at every version against kio, a foreign implementation of the protocol.

Each message is filled with values that are all different and no defaults. What kio writes we must read,
and what we write kio must read, with every value in its place: a response replaced by defaults, or two
fields swapped, fails the test named after its API and version.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
from datetime import UTC, datetime, timedelta
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import attrs
import pytest
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from logkernel.plugins.transport.tcp.messages import default_of, field_specs, nested_class, schema
from logkernel.plugins.transport.tcp.registry import ROWS, load
from logkernel.vocabulary import NO_ID, FileSlice

ALL = [
    pytest.param(row.key, version, id=f"{row.name}-v{version}")
    for row in ROWS
    for version in range(3 if row.name == "Produce" else row.min_version, row.max_version + 1)
]
UNTOUCHED = {  # the forms of old versions, which the transport turns into the newest
    "FindCoordinator": 4, "LeaveGroup": 3, "OffsetFetch": 8, "DeleteTopics": 6,
    "AddPartitionsToTxn": 4, "ListTransactions": 2, "ListConfigResources": 1, "AlterPartition": 3,
}  # fmt: skip


class Filler:
    """Different values, none of them a default, all small enough for an int8."""

    def __init__(self) -> None:
        self._next = itertools.cycle(range(1, 32))

    def number(self) -> int:
        return next(self._next)

    def ours(self, kind: Any) -> Any:
        hint = without_none(kind)
        if get_origin(hint) is list:
            return [self.ours(get_args(hint)[0]) for _ in range(2)]
        if attrs.has(hint) and hint is not FileSlice:
            hints = get_type_hints(hint)
            return hint(**{field.name: self.ours(hints[field.name]) for field in attrs.fields(hint)})
        n = self.number()
        made: dict[Any, Any] = {int: n, str: f"s{n}", bool: True, float: n + 0.5, bytes: b"b%d" % n, UUID: UUID(int=n)}
        return made[hint]

    def kio(self, entity: Any) -> Any:
        return entity(**{field.name: self._kio_field(field) for field in dataclasses.fields(entity)})

    def _kio_field(self, field: dataclasses.Field[Any]) -> Any:
        hint = without_none(field.type)
        if get_origin(hint) is tuple:
            inner = without_none(get_args(hint)[0])
            return tuple(self._kio_value(inner, field) for _ in range(2))
        return self._kio_value(hint, field)

    def _kio_value(self, hint: Any, field: dataclasses.Field[Any]) -> Any:
        if dataclasses.is_dataclass(hint):
            return self.kio(hint)
        n = self.number()
        kind = field.metadata["kafka_type"]
        made: dict[str, Any] = {
            "string": f"s{n}", "bytes": b"b%d" % n, "records": b"r%d" % n, "uuid": UUID(int=n), "bool": True,
            "float64": n + 0.5,
            "error_code": ErrorCode(n), "timedelta_i32": timedelta(milliseconds=n),
            "timedelta_i64": timedelta(milliseconds=n), "datetime_i64": datetime.fromtimestamp(n, UTC),
        }  # fmt: skip
        return made.get(kind, n)


def without_none(hint: Any) -> Any:
    if get_origin(hint) not in (UnionType, Union):
        return hint
    rest = [part for part in get_args(hint) if part is not NoneType]
    return bytes if bytes in rest else rest[0]


def plain(value: Any) -> Any:
    """A value of kio's as ours has it."""
    if isinstance(value, timedelta):
        return round(value.total_seconds() * 1000)
    if isinstance(value, datetime):
        return round(value.timestamp() * 1000)
    if isinstance(value, ErrorCode):
        return value.value
    return value


def assert_same(ours: Any, kio: Any, where: str = "") -> None:
    """Every field that kio has at this version has the same value in ours."""
    if dataclasses.is_dataclass(kio):
        specs = field_specs(type(kio))
        for spec, field in zip(specs, dataclasses.fields(kio), strict=True):
            assert_same(getattr(ours, spec.name), getattr(kio, field.name), f"{where}.{spec.name}")
    elif isinstance(kio, tuple):
        assert len(ours) == len(kio), where
        for i, (a, b) in enumerate(zip(ours, kio, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    else:
        expected = NO_ID if kio is None and isinstance(ours, UUID) else plain(kio)
        assert (bytes(ours) if isinstance(ours, memoryview) else ours) == expected, where


def assert_no_defaults(ours: Any, kio: type, where: str = "") -> None:
    """The filler did its work: nothing that goes over the wire is a default."""
    for spec in field_specs(kio):
        value = getattr(ours, spec.name)
        if spec.kind == "struct":
            for element in value if spec.array else [value]:
                assert_no_defaults(element, spec.entity, f"{where}.{spec.name}")
        else:
            assert value not in (None, 0, -1, "", b"", NO_ID, []), f"{where}.{spec.name}"


def kio_bytes(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


def kio_read(entity: Any, data: bytes) -> Any:
    value, size = entity_reader(entity)(data, 0)
    assert size == len(data), "bytes are left over"
    return value


def classes(key: int, version: int, half: str) -> tuple[Any, Any, Any]:
    api = load(key)
    ours, kio = (lambda pair: (pair[1], pair[0]))(api.classes(version, half))
    return api, ours, kio


@pytest.mark.parametrize(("key", "version"), ALL)
def test_a_request_written_by_kio_is_read(key: int, version: int) -> None:
    api, _, kio = classes(key, version, "request")
    sent = Filler().kio(kio)
    data = kio_bytes(sent)
    if version < UNTOUCHED.get(api.row.name, 0):
        got = api.reader(version, "request")(cursor(data))
    else:
        got = api.request_decoder(version)(memoryview(data))
    assert_same(got, sent)


@pytest.mark.parametrize(("key", "version"), ALL)
def test_a_response_is_read_by_kio_with_every_value(key: int, version: int) -> None:
    api, ours, kio = classes(key, version, "response")
    response = Filler().ours(ours)
    if version < UNTOUCHED.get(api.row.name, 0):
        out = bytearray()
        api.writer(version, "response")(out, response)
    else:
        out = bytearray(b"".join(api.response_encoder(version)(response)))
    got = kio_read(kio, bytes(out))
    assert_no_defaults(response, kio)
    assert_same(response, got)


@pytest.mark.parametrize(("key", "version"), ALL)
def test_a_clients_request_is_read_by_kio(key: int, version: int) -> None:
    api, ours, kio = classes(key, version, "request")
    request = Filler().ours(ours)
    if version < UNTOUCHED.get(api.row.name, 0):
        out = bytearray()
        api.writer(version, "request")(out, request)
    else:
        out = bytearray(api.request_encoder(version)(request))
    assert_same(request, kio_read(kio, bytes(out)))


@pytest.mark.parametrize(("key", "version"), ALL)
def test_a_response_written_by_kio_is_read_by_the_client(key: int, version: int) -> None:
    api, _, kio = classes(key, version, "response")
    sent = Filler().kio(kio)
    data = kio_bytes(sent)
    if version < UNTOUCHED.get(api.row.name, 0):
        got = api.reader(version, "response")(cursor(data))
    else:
        got = api.response_decoder(version)(memoryview(data))
    assert_same(got, sent)


@pytest.mark.parametrize(("key", "version"), ALL)
def test_defaults_are_those_of_the_schema(key: int, version: int) -> None:
    """A tagged field that is absent, or a field that a version lacks, means the same to both."""
    api = load(key)
    for half in ("request", "response"):
        kio, ours = api.classes(version, half)
        check_defaults(kio, ours)


def check_defaults(kio: Any, ours: Any) -> None:
    made = ours()
    for spec in field_specs(kio):
        if spec.kind == "struct":
            check_defaults(spec.entity, nested_class(ours, spec.name))
        if spec.tag is not None or spec.default is not dataclasses.MISSING:
            assert getattr(made, spec.name) == default_of(spec, ours), f"{ours.__name__}.{spec.name}"


@pytest.mark.parametrize(("key", "version"), ALL)
def test_flexible_versions_are_those_of_the_schema(key: int, version: int) -> None:
    row = load(key).row
    assert schema(row.snake, version, "request", row.request_name).__flexible__ == (version >= row.flexible_from)


@pytest.mark.parametrize(("key", "version"), ALL)
def test_a_response_of_defaults_is_written(key: int, version: int) -> None:
    """None and empty are written at every version, also where it has no null."""
    api, ours, kio = classes(key, version, "response")
    kio_read(kio, b"".join(api.response_encoder(version)(ours())))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_file_of_an_api_is_headed_with_its_versions(row: Any) -> None:
    kind = type(load(row.key))
    head = (__import__(kind.__module__, fromlist=["_"]).__doc__ or "").splitlines()[0]
    span = f"{row.min_version}-{row.max_version}" if row.max_version > row.min_version else f"{row.max_version}"
    assert head.startswith(f"{row.name} (key {row.key}), version")
    assert f" {span}" in head


@pytest.mark.parametrize(("key", "version"), ALL)
def test_a_request_cut_off_anywhere_is_an_error(key: int, version: int) -> None:
    from logkernel.plugins.transport.tcp.wire import DECODE_ERRORS

    api, _, kio = classes(key, version, "request")
    data = kio_bytes(Filler().kio(kio))
    decode = api.request_decoder(version)
    for size in range(0, len(data), max(1, len(data) // 40)):
        with pytest.raises(DECODE_ERRORS):
            decode(memoryview(data[:size]))


def cursor(data: bytes) -> Any:
    from logkernel.plugins.transport.tcp.wire import Cursor

    return Cursor(data)


@pytest.mark.parametrize(("key", "version"), ALL)
def test_a_request_with_flipped_bytes_is_read_or_refused(key: int, version: int) -> None:
    import random

    from logkernel.plugins.transport.tcp.wire import DECODE_ERRORS

    api, _, kio = classes(key, version, "request")
    data = kio_bytes(Filler().kio(kio))
    decode = api.request_decoder(version)
    dice = random.Random(key * 100 + version)
    for _ in range(200 if data else 0):
        rotten = bytearray(data)
        for _ in range(dice.randint(1, 4)):
            rotten[dice.randrange(len(rotten))] = dice.choice([0, 1, 0x7F, 0x80, 0xFF, dice.randrange(256)])
        try:
            decode(memoryview(rotten))
        except DECODE_ERRORS:
            continue
