"""`logkernel query`: SQL on a log, with topics as tables."""

from __future__ import annotations

import csv
import datetime
import sys
from decimal import Decimal
from typing import Any

import click

from logkernel.cli.client_settings import load, settings_options
from logkernel.cli.connection import ONE_PLACE, bootstrap_option, by_argument, reach
from logkernel.cli.output import json_option, put_json, put_table


@click.command
@click.argument("sql")
@click.option(
    "--data", metavar="DIR", help="Read this data directory, whether its broker runs or not.  [default: ./data]"
)
@bootstrap_option("Read a cluster, logkernel or Apache Kafka: bootstrap brokers, separated by commas.")
@click.option(
    "--value-format",
    type=click.Choice(["string", "json", "binary"]),
    default="string",
    show_default=True,
    help="How to decode values. Keys are strings; with binary, bytes.",
)
@click.option("--committed", is_flag=True, help="Skip records of open and aborted transactions.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV instead of a table.")
@settings_options
@json_option
def query(
    sql: str,
    data: str | None,
    bootstrap: str | None,
    value_format: str,
    committed: bool,
    as_csv: bool,
    as_json: bool,
    command_config: str | None,
    properties: tuple[str, ...],
) -> int:
    """Run an SQL query with DuckDB. Every topic is a table with the columns partition, offset, timestamp, key, value,
    headers, timestampType, topic; put its name in double quotes if it has dots or dashes.

    Only the columns, partitions, offsets and times that the query needs are read.
    """
    from logkernel.table import open_source
    from logkernel.table.query import run

    if data is not None:
        if by_argument("bootstrap"):
            raise click.UsageError(ONE_PLACE)
        bootstrap = None
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other; give one of them")
    settings = load(command_config, properties)
    if data is None and bootstrap is None:
        bootstrap = settings.servers
    if bootstrap is not None:
        reach(bootstrap)
        source = open_source(bootstrap=bootstrap, settings={**settings.connection(), **settings.own("consumer")})
    else:
        source = open_source(path=data or "./data")
    try:
        isolation = "read_committed" if committed else "read_uncommitted"
        with run(source, sql, isolation=isolation, value_format=value_format) as (columns, rows):
            if as_json:
                for row in rows:
                    put_json({name: plain(cell) for name, cell in zip(columns, row, strict=True)})
            elif as_csv:
                writer = csv.writer(sys.stdout, lineterminator="\n")
                writer.writerow(columns)
                writer.writerows([text(cell) for cell in row] for row in rows)
            else:
                put_table(columns, [[cell if isinstance(cell, int) else text(cell) for cell in row] for row in rows])
    finally:
        source.close()
    return 0


def plain(cell: Any) -> Any:
    """A cell as a JSON value: times in ISO 8601, bytes as text if they are UTF-8, else in hexadecimal."""
    if isinstance(cell, dict):
        return {name: plain(value) for name, value in cell.items()}
    if isinstance(cell, list):
        return [plain(value) for value in cell]
    if isinstance(cell, bytes):
        try:
            return cell.decode()
        except UnicodeDecodeError:
            return "0x" + cell.hex()
    if isinstance(cell, Decimal):
        return int(cell) if cell == cell.to_integral_value() else float(cell)
    if isinstance(cell, datetime.datetime | datetime.date | datetime.time):
        return cell.isoformat()
    return cell if cell is None or isinstance(cell, bool | int | float | str) else str(cell)


def text(cell: Any) -> Any:
    """A cell as one line of text."""
    found = plain(cell)
    if isinstance(found, dict | list):
        import json

        return json.dumps(found, ensure_ascii=False)
    return found
