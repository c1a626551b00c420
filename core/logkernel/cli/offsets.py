"""`logkernel offsets TOPIC…`: the first and last offsets of partitions, and those at a time."""

from __future__ import annotations

import click

from logkernel.cli.connection import ConnectionOptions, connected, time_ms
from logkernel.cli.output import put_json, put_table
from logkernel.cli.topics import named_partitions

BOTH = ("earliest", "latest")


@click.command
@click.argument("topics", metavar="TOPIC[:PARTITION,…]…", nargs=-1, required=True)
@click.option(
    "--at",
    "times",
    metavar="WHEN",
    multiple=True,
    help="earliest, latest, max-timestamp, earliest-local, latest-tiered, or a time (ms since 1970, or ISO 8601);"
    " repeatable.  [default: earliest and latest]",
)
@click.option(
    "--isolation",
    type=click.Choice(["read_uncommitted", "read_committed"]),
    default="read_uncommitted",
    show_default=True,
    help="read_committed: latest is the last stable offset.",
)
@connected
def offsets(
    topics: tuple[str, ...], times: tuple[str, ...], isolation: str, connection: ConnectionOptions, as_json: bool
) -> None:
    """Print offsets of partitions; - stands for no such record."""
    from logkernel.client.admin.offsets import SPECIAL

    wanted = {text: text if text in SPECIAL else time_ms(text) for text in times or BOTH}
    with connection.admin() as admin:
        names = named_partitions(admin, topics)
        found = {
            text: admin.list_offsets(dict.fromkeys(names, spec), isolation_level=isolation)
            for text, spec in wanted.items()
        }
    rows = []
    for topic, index in names:
        at = [found[text][topic, index] for text in wanted]  # type: ignore[index]
        if as_json:
            known = {text: None if row is None else row.offset for text, row in zip(wanted, at, strict=True)}
            put_json({"topic": topic, "partition": index, "offsets": known})
        rows.append((topic, index, *("-" if row is None else row.offset for row in at)))
    if not as_json:
        put_table(("TOPIC", "PARTITION", *(text.upper() for text in wanted)), rows)
