"""`logkernel dump`: print the files of a data directory, in the columns of kafka-dump-log.sh."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from logkernel.cli.output import json_option, put_json
from logkernel.cli.parameters import IntRange
from logkernel.errors import LogkernelError

if TYPE_CHECKING:
    from logkernel.contracts import RecordDecoder
    from logkernel.kernel import Kernel

OFFSETS, TRANSACTIONS, SHARES = "__consumer_offsets", "__transaction_state", "__share_group_state"


def _topic_option(flag: str, topic: str) -> Callable[[Any], Any]:
    text = f"Decode the records as records of {topic}."
    return click.option(flag, "topic", flag_value=topic, help=text)


@click.command
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True))
@click.option("--deep-iteration", "deep", is_flag=True, help="Print records, not only batches.")
@click.option("--print-data-log", "payload", is_flag=True, help="Print records with keys and values.")
@_topic_option("--offsets-decoder", OFFSETS)
@_topic_option("--transaction-log-decoder", TRANSACTIONS)
@_topic_option("--share-group-state-decoder", SHARES)
@click.option("--decoder", "topic", metavar="TOPIC", help="Decode the records as records of this internal topic.")
@click.option("--decode", is_flag=True, help="Decode the records of every topic that a plugin can decode.")
@click.option(
    "--max-bytes",
    type=IntRange(1),
    default=2**63 - 1,
    show_default=False,
    help="Stop after this many bytes of each file.",
)
@json_option
def dump(
    files: tuple[str, ...], deep: bool, payload: bool, topic: str | None, decode: bool, max_bytes: int, as_json: bool
) -> int:
    """Print the contents of FILES: segments, indexes, producer snapshots, checkpoints, ids. A directory stands for
    all of its files.

    Exit code 1 if a file cannot be read to its end.
    """
    from logkernel.inspect.columns import lines
    from logkernel.inspect.rows import UnknownFile, is_empty_index, rows_of
    from logkernel.kernel import Kernel
    from logkernel.storage.disk import RealDisk

    kernel, disk, bad = Kernel(), RealDisk(), False
    if topic is not None and kernel.decoder(topic) is None:
        raise click.UsageError(
            f"--decoder: no plugin decodes the records of {topic!r}; name an internal topic, e.g. {OFFSETS}"
        )
    decoded = decode or topic is not None
    for path in _files(files):
        decoder = _decoder(kernel, topic, decode, path)
        options = {"records": deep or payload or decoded, "payload": payload or decoded, "decoder": decoder}
        if as_json:
            put_json({"kind": "file", "name": path})
        else:
            print(f"Dumping {path}")
        try:
            if not as_json and is_empty_index(disk, path):
                print(f"{path} is empty.")
            for row in rows_of(disk, path, kernel.codec_for, max_bytes=max_bytes, **options):
                bad = bad or row["kind"] in ("trailing", "error")
                if as_json:
                    put_json(row)
                else:
                    print(lines(row))
        except UnknownFile:
            print(f"Ignoring unknown file {path}", file=sys.stderr)
        except LogkernelError as error:
            bad = True
            print(f"logkernel: {path}: {error}" if path not in str(error) else f"logkernel: {error}", file=sys.stderr)
    return int(bad)


def _files(paths: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        if os.path.isdir(path):
            names = sorted(os.listdir(path))
            yield from (found for name in names if os.path.isfile(found := os.path.join(path, name)))
        else:
            yield path


def _decoder(kernel: Kernel, topic: str | None, decode: bool, path: str) -> RecordDecoder | None:
    """The decoder of `topic`; with `--decode`, that of the topic whose directory holds the file."""
    if topic is None and decode:
        topic = os.path.basename(os.path.dirname(os.path.abspath(path))).rpartition("-")[0]
    return kernel.decoder(topic) if topic else None
