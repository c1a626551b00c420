"""`logkernel produce TOPIC`: write the lines of files or of standard input as records."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import IO, Any

import click

from logkernel.cli import formats
from logkernel.cli.connection import ConnectionOptions, connected, makes_data, pairs
from logkernel.cli.output import progress, put_json
from logkernel.cli.parameters import IntRange
from logkernel.errors import ConfigError

CHUNK_BYTES = 1 << 16
LONGEST_LINE_BYTES = 1 << 28


@click.command
@click.argument("topic")
@click.argument("files", nargs=-1, type=click.Path(exists=True, dir_okay=False))
@click.option(
    "-k", "-K", "--key-delimiter", "between", metavar="DELIM", help="Split each line into key and value at this text."
)
@click.option("--key", metavar="TEXT", help="Set the key of every record.")
@click.option(
    "-H", "--header", "header", metavar="NAME=VALUE", multiple=True, help="Add a header to every record; repeatable."
)
@click.option("-p", "--partition", type=IntRange(0), help="Write every record to this partition.")
@click.option("-f", "--format", "form", metavar="FORMAT", help=r"Input format of a line, e.g. '%k\t%v' or '%p %k %v'.")
@click.option(
    "-D",
    "--delimiter",
    metavar="DELIM",
    default=r"\n",
    show_default=True,
    help="Split the input into records at this text.",
)
@click.option(
    "-z",
    "--compression",
    metavar="CODEC",
    help="Compress batches with gzip, snappy, lz4 or zstd, or with a plugin that replaces one of them.",
)
@click.option(
    "--acks",
    type=click.Choice(["all", "-1", "0", "1"]),
    help="Acknowledgements to wait for: all in-sync replicas (all, -1), the leader (1), none (0).  [default: all]",
)
@click.option("-Z", "--null", "nulls", is_flag=True, help="Write empty keys and values as null.")
@click.option("-v", "--verbose", is_flag=True, help="Print the partition and offset of each record.")
@connected
@makes_data
def produce(
    topic: str, files: tuple[str, ...], connection: ConnectionOptions, as_json: bool, verbose: bool, **how: Any
) -> int:
    """Write the lines of FILES, or of standard input, to TOPIC. Exit code 1 if a record was not written."""
    given = {"max_block_ms": str(int(connection.timeout_s * 1000)), **connection.settings.own("producer")}
    if how["compression"]:
        given["compression_type"] = how["compression"]
    if how["acks"]:
        given["acks"] = how["acks"]
    read = _reader(how["between"], how["form"], how["nulls"])
    end = formats.unescaped(how["delimiter"])
    if not end:
        raise click.UsageError("--delimiter is empty; give at least one character")
    common = [(name, value.encode()) for name, value in pairs(how["header"]).items()]
    failed: list[Exception] = []

    def delivered(metadata: Any, error: Exception | None) -> None:
        if error is not None:
            failed.append(error)
        elif as_json:
            put_json(dict(zip(("topic", "partition", "offset", "timestamp"), metadata, strict=True)))
        elif verbose:
            click.echo(f"{metadata.topic}-{metadata.partition} offset {metadata.offset}")

    with (
        connection.log(changes=True) as log,
        log.producer(**given) as producer,
    ):
        for line in _records(files, end, as_json or verbose):
            row = read(line)
            key = how["key"].encode() if how["key"] is not None else row.key
            producer.send(
                topic,
                row.value,
                key=key,
                headers=[*common, *row.headers],
                partition=how["partition"] if row.partition is None else row.partition,
                timestamp_ms=None if row.timestamp_ms < 0 else row.timestamp_ms,
                on_delivery=delivered,
            )
            if failed:
                break
        producer.flush()
    if failed:
        raise failed[0]
    return 0


def _reader(between: str | None, form: str | None, nulls: bool) -> Callable[[bytes], formats.Line]:
    if between is not None and form is not None:
        raise click.UsageError("--key-delimiter and --format exclude each other; give one of them")
    if form is not None:
        read = formats.reader(form)
    elif between is not None:
        read = _keyed(formats.unescaped(between))
    else:
        read = lambda line: formats.Line(value=line)  # noqa: E731
    if not nulls:
        return read

    def with_nulls(line: bytes) -> formats.Line:
        row = read(line)
        row.key, row.value = row.key or None, row.value or None
        return row

    return with_nulls


def _keyed(between: bytes) -> Callable[[bytes], formats.Line]:
    """A line without the delimiter is a value without a key, as in kcat."""
    if not between:
        raise click.UsageError("--key-delimiter is empty; give at least one character")

    def read(line: bytes) -> formats.Line:
        key, found, value = line.partition(between)
        return formats.Line(key, value) if found else formats.Line(value=line)

    return read


def _records(files: tuple[str, ...], end: bytes, quiet: bool) -> Iterator[bytes]:
    if not files:
        yield from _split(sys.stdin.buffer, end, lambda done: None)
        return
    total = sum(os.path.getsize(path) for path in files)
    with progress("producing", total, quiet=quiet) as advance:
        for path in files:
            with open(path, "rb") as file:
                yield from _split(file, end, lambda done, path=path: advance(done, path))  # type: ignore[misc]


def _split(file: IO[bytes], end: bytes, advance: Callable[[int], None]) -> Iterator[bytes]:
    """Yield the records between delimiters as they arrive; the last may lack its delimiter."""
    left = bytearray()
    read = getattr(file, "read1", file.read)
    while data := read(CHUNK_BYTES):
        advance(len(data))
        begin, seen = 0, max(0, len(left) - len(end) + 1)
        left += data
        while (at := left.find(end, seen)) >= 0:
            yield bytes(left[begin:at])
            begin = seen = at + len(end)
        del left[:begin]
        if len(left) > LONGEST_LINE_BYTES:
            raise ConfigError(f"a record is longer than {LONGEST_LINE_BYTES} bytes; check --delimiter")
    if left:
        yield bytes(left)
