"""What a new user meets first: names, signatures, and what is said of a wrong argument."""

from __future__ import annotations

import inspect
import pydoc
import socket
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hand_clock import BEGAN_MS, HandClock

import logkernel
from logkernel.errors import CannotListen, ConfigError, UnknownTopicOrPartition
from logkernel.hookspecs import hookimpl
from logkernel.storage.memory_disk import MemoryDisk
from logkernel.vocabulary import RecordMetadata

Write = Callable[..., Any]


@pytest.fixture(scope="module")
def log() -> Iterator[logkernel.EmbeddedLog]:
    with logkernel.open() as made:
        made.create_topic("t", partitions=3)
        made.create_topic("one", partitions=1)
        yield made


@pytest.fixture(scope="module")
def address(log: logkernel.EmbeddedLog) -> str:
    return log.listen()


@pytest.fixture(scope="module", params=["append", "send", "send behind another", "connect", "connect behind another"])
def write(request: pytest.FixtureRequest, log: logkernel.EmbeddedLog, address: str) -> Iterator[Write]:
    """`append`, and the ways of a batch's first record and of a further one through a producer."""
    if request.param == "append":
        yield log.append
        return
    how, *behind = request.param.split()
    place = log if how == "send" else logkernel.connect(address)
    with place.producer(linger_ms=50) as producer:

        def send(*arguments: Any, **more: Any) -> Any:
            if behind:
                for partition in range(3):
                    producer.send("t", b"first", partition=partition)
            return producer.send(*arguments, **more).result(60)

        yield send
    if place is not log:
        place.close()


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"value": "text"}, "the value is bytes or None, not str; pass text.encode()"),
        ({"value": 5}, "the value is bytes or None, not int"),
        ({"value": b"v", "key": "k"}, "the key is bytes or None, not str; pass text.encode()"),
        ({"value": b"v", "headers": {"a": "b"}}, "the value of header 'a' is bytes or None, not str; pass text.enc"),
        ({"value": b"v", "headers": {b"a": b"b"}}, "a header's name is text, not bytes: b'a'"),
        ({"value": b"v", "headers": ["a"]}, "headers are {name: bytes} or (name, bytes) pairs, not 'a'"),
        ({"value": b"v", "headers": 5}, "headers are {name: bytes} or (name, bytes) pairs, not int"),
    ],
)
def test_a_field_of_a_wrong_type_is_named_with_what_to_pass(write: Write, given: dict[str, Any], text: str) -> None:
    with pytest.raises(TypeError) as raised:
        write("t", **given)
    assert str(raised.value).startswith(text)
    assert write("t", b"and goes on").topic == "t"


def test_views_of_bytes_are_bytes(write: Write) -> None:
    assert write("t", bytearray(b"v"), key=memoryview(b"k"), headers=[("h", bytearray(b"1"))]).topic == "t"


@pytest.mark.parametrize("partition", [5, -1])
def test_a_partition_that_is_not_there_is_named_alike(write: Write, partition: int) -> None:
    with pytest.raises(Exception, match=rf"^t has no partition {partition} \(it has 3 partitions\)$"):
        write("t", b"v", partition=partition)


def test_a_partition_is_named_alike_when_read(log: logkernel.EmbeddedLog) -> None:
    text = r"^one has no partition 5 \(it has 1 partition\)$"
    for read in (lambda: list(log.read("one", 5)), lambda: log.end_offset("one", 5),
                 lambda: log.admin().list_offsets({("one", 5): "latest"})):  # fmt: skip
        with pytest.raises(UnknownTopicOrPartition, match=text):
            read()
    with pytest.raises(UnknownTopicOrPartition, match="there is no topic 'nix'; create it first"):
        log.append("nix", b"v", partition=5)


def test_an_address_that_is_taken_is_refused_with_a_remedy() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, logkernel.open() as log:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(CannotListen, match=f"cannot listen on {address}: another process listens there; stop it, "):
            log.listen(address)


def test_dir_shows_the_public_names() -> None:
    assert set(logkernel.__all__) <= set(dir(logkernel))
    assert {"__version__", "open", "connect"} <= set(dir(logkernel))


def test_value_classes_show_what_they_take() -> None:
    assert str(inspect.signature(logkernel.Record)) == (
        "(key: 'bytes | None' = None, value: 'bytes | None' = None,"
        " headers: 'tuple[tuple[str, bytes | None], ...]' = (), timestamp_ms: 'int' = -1, offset: 'int' = -1) -> None"
    )
    assert "*args" not in pydoc.render_doc(logkernel.Record)
    assert "offset" in inspect.signature(RecordMetadata).parameters


def test_a_clock_a_disk_and_plugins_are_lent_to_a_log() -> None:
    class First:
        def partition(self, key: bytes | None, value: bytes | None, partitions: int, available: Sequence[int]) -> int:
            return 0

        def on_batch_full(self, partition: int) -> None:
            """Each record has the same one."""

    class Plugin:
        @hookimpl
        def logkernel_partitioner(self, name: str) -> First | None:
            return First() if name == "first" else None

        @hookimpl
        def logkernel_names(self) -> list[tuple[str, str]]:
            return [("partitioner", "first")]

    disk = MemoryDisk()
    with logkernel.open(plugins=[Plugin()], clock=HandClock(7), disk=disk) as log:
        log.create_topic("orders", 3, partitioner="first")
        assert log.append("orders", b"1") == ("orders", 0, 0, BEGAN_MS + 7)
        assert disk.exists("/memory/orders-0/00000000000000000000.log")


def test_a_disk_of_its_own_has_no_folder_of_the_systems(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="names a folder of the system's disk; leave out path, or disk"):
        logkernel.open(tmp_path, disk=MemoryDisk())
