"""`logkernel schema-registry`: a schema registry for tests in any language."""

from __future__ import annotations

import logging
import signal
import threading
from typing import Final

import click

from logkernel.cli.client_settings import load, settings_options
from logkernel.cli.connection import bootstrap_option
from logkernel.cli.parameters import host_and_port

LISTEN: Final = "127.0.0.1:8081"
LEVELS: Final = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE",
)  # fmt: skip


@click.command("schema-registry")
@click.option(
    "--listen",
    default=LISTEN,
    show_default=True,
    metavar="HOST:PORT",
    help="Address to listen on; port 0 is a free one.",
)
@click.option(
    "--compatibility",
    type=click.Choice(LEVELS, case_sensitive=False),
    default="BACKWARD",
    show_default=True,
    help="Level of subjects that have none of their own.",
)
@bootstrap_option("Keep schemas in the topic _schemas of this cluster.  [default: in memory]", envvar=None)
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]),
    default="WARNING",
    show_default=True,
    help="Least severe events to log on stderr; DEBUG logs each request.",
)
@settings_options
def schema_registry(
    listen: str,
    compatibility: str,
    bootstrap: str | None,
    log_level: str,
    command_config: str | None,
    properties: tuple[str, ...],
) -> int:
    """Run a schema registry for tests. Print its URL when it is ready. It ends by SIGTERM or SIGINT."""
    from logkernel.testing.schema_registry.server import SchemaRegistry

    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    host, port = host_and_port("--listen", listen)
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, frame: ended.set())
    client = load(command_config, properties).connection()
    with SchemaRegistry(
        host=host, port=port, compatibility=compatibility, bootstrap_servers=bootstrap, client_settings=client
    ) as registry:
        click.echo(f"logkernel schema-registry listening on {registry.url}")
        ended.wait()
    return 0
