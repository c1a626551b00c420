"""`logkernel history`: judge what clients recorded of a cluster."""

from __future__ import annotations

import click

from logkernel.cli.output import json_option, put_json


@click.command
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--no-real-time", is_flag=True, help="The lines come from several machines: their order tells nothing.")
@json_option
def check(file: str, no_real_time: bool, as_json: bool) -> int:
    """Check a history of clients for lost, doubled and reordered records, broken transactions and lost offsets.

    FILE has one JSON object a line; docs/testing.md describes them. Exit code 1: the history has anomalies.
    """
    from logkernel.testing.history import check, load

    with open(file, encoding="utf-8") as lines:
        history = load(lines)
    anomalies = check(history, real_time=not no_real_time)
    if as_json:
        for found in anomalies:
            operations = [str(one) for one in found.operations]
            put_json({"anomaly": found.kind, "what": found.what, "operations": operations})
        put_json({"operations": len(history.operations), "anomalies": len(anomalies)})
    else:
        for found in anomalies:
            click.echo(str(found))
        click.echo(f"{len(history.operations)} operations, {len(anomalies)} anomalies")
    return int(bool(anomalies))
