"""Commands to a running broker, through the control socket in its data directory."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from logkernel.broker.control_socket import NoBroker, ask
from logkernel.cli.output import json_option, put_json, put_table
from logkernel.errors import NetworkException

F = TypeVar("F", bound=Callable[..., Any])
SIZES = ("segments", "bytes", "records")


def _here(command: F) -> F:
    """`--data`. `-b`, which most commands take, is refused with the way there is: a control socket is a file."""
    asked = click.option(
        "--data", metavar="DIR", default="./data", show_default=True, help="A data directory of the running broker."
    )
    refused = click.option(
        "-b",
        "--bootstrap",
        "--bootstrap-server",
        hidden=True,
        expose_value=False,
        callback=_refuse_bootstrap,
        help="Refused: a control socket is reached by --data.",
    )
    return asked(refused(command))


def _refuse_bootstrap(ctx: click.Context, _: click.Parameter, servers: str | None) -> None:
    if servers is not None:
        elsewhere = f", or use `logkernel cluster status -b {servers}`" if ctx.info_name == "status" else ""
        raise click.UsageError(
            f"-b {servers}: {ctx.command_path} asks a broker on its own machine; give its data directory by --data DIR"
            f"{elsewhere}"
        )


def _result(folder: str, command: str, **arguments: Any) -> Any:
    """The broker's result. A refusal is printed on stderr and ends the command with exit code 1. Raises
    `NetworkException` if no broker runs there."""
    try:
        answer = ask(os.path.abspath(folder), command, arguments)
    except NoBroker as error:
        raise NetworkException(str(error)) from error
    if not answer.get("ok"):
        print(f"logkernel: {answer.get('error')}: {answer.get('message')}", file=sys.stderr)
        raise click.exceptions.Exit(1)
    return answer["result"]


@click.command
@_here
@json_option
def status(data: str, as_json: bool) -> int:
    """Show the health of the broker that runs on a data directory of this machine. `logkernel cluster status` asks
    brokers elsewhere.

    Exit code 1 if no broker runs there, a directory or partition is offline, topics need a plugin that is missing, or
    a plugin hangs. A plugin that failed, or was slow, is shown only.
    """
    found = _result(data, "status")
    offline = found["offline"] or found["unreadable"] or not all(row["online"] for row in found["directories"])
    ill = offline or found["missing"]
    if as_json:
        put_json(found)
        return int(bool(ill))
    click.echo(
        f"logkernel {found['version']}, node {found['nodeId']} of cluster {found['clusterId']}, pid {found['pid']}"
    )
    click.echo(f"{found['topics']} topics, {found['partitions']} partitions here, {found['led']} of them led")
    rows = [
        (row["path"], _state(row), row["partitions"], row["usableBytes"], row["failure"])
        for row in found["directories"]
    ]
    put_table(("directory", "state", "partitions", "usable bytes", "why"), rows)
    for name in found["offline"]:
        click.echo(f"{click.style('offline', fg='red')}: {name} {found['unreadable'].get(name, '')}")
    for name, why in found["uncleanable"].items():
        click.echo(f"no longer compacted: {name}: {why}")
    for row in found["missing"]:
        more = f" and {row['more']} more" if row["more"] else ""
        click.echo(f"{click.style('missing', fg='red')}: no plugin provides the {row['kind']} {row['name']!r}, which is"
                   f" set for topics {', '.join(row['topics'])}{more}: {row['consequence']}")  # fmt: skip
    for row in found["plugins"]:
        source = row["distribution"] or row["file"]
        click.echo(f"plugin {row['plugin']} of {source} failed: {row['in']}, {row['times']} times: {row['error']}")
    for row in found["cut"]:
        click.echo(f"cut by recovery: {row['partition']}: {row['path']}, byte {row['position']},"
                   f" {row['lostBytes']} bytes: {row['reason']}")  # fmt: skip
    return int(bool(ill))


def _state(row: dict[str, Any]) -> str:
    if not row["online"]:
        return "OFFLINE"
    return "FULL" if row["usableBytes"] == 0 else "online"


def _topic_command(name: str, command: str, text: str) -> Any:
    @click.command(name, help=text)
    @click.argument("topic")
    @_here
    @json_option
    def run(topic: str, data: str, as_json: bool) -> None:
        _say(_result(data, command, topic=topic), as_json)

    made: Callable[..., Any] = run
    return made


def _say(results: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        for row in results:
            put_json(row)
        return
    if not results:
        click.echo("Nothing to do.")
        return
    columns = ("partition", *(f"{name} {when}" for name in SIZES for when in ("before", "after")), "log start")
    rows = [
        (
            f"{row['topic']}-{row['partition']}",
            *(row[when][name] for name in SIZES for when in ("before", "after")),
            row["log_start_offset"],
        )
        for row in results
    ]
    put_table(columns, rows)


expire = _topic_command("expire", "topic.expire", "Apply TOPIC's retention now, wait for it, and print the result.")
compact = _topic_command("compact", "topic.compact", "Compact TOPIC now, wait for it, and print the result.")
