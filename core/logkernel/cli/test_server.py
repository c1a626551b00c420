"""`logkernel test-server`: a broker for tests in any language, with a control port."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any, Final

import click

from logkernel.cli.connection import pairs
from logkernel.cli.parameters import IntRange, host_and_port
from logkernel.config.listeners import PROTOCOLS
from logkernel.config.sources import RawSetting
from logkernel.errors import ConfigError

LOCAL: Final = "127.0.0.1:0"
MOST_BROKERS: Final = 50


@click.command("test-server")
@click.option(
    "--topic", "topics", multiple=True, metavar="NAME[=PARTITIONS]", help="Create a topic at the start; repeatable."
)
@click.option(
    "--set", "given", multiple=True, metavar="NAME=VALUE", help="Set a broker setting by its Kafka name; repeatable."
)
@click.option(
    "--brokers",
    type=IntRange(1, MOST_BROKERS),
    help="Run so many brokers, whose leaders move and die.  [default: one, without a cluster]",
)
@click.option(
    "--listen", default=LOCAL, show_default=True, metavar="HOST:PORT", help="Address for clients; port 0 is a free one."
)
@click.option(
    "--advertised",
    metavar="HOST:PORT",
    help="Address that clients are told, if it differs; port 0 is the one listened on.",
)
@click.option(
    "--security-protocol",
    type=click.Choice(PROTOCOLS),
    default=PROTOCOLS[0],
    show_default=True,
    help="How clients connect; certificates are made for the broker.",
)
@click.option(
    "--user",
    "users",
    multiple=True,
    metavar="NAME[=PASSWORD]",
    help="Let a user log in, by certificate with SSL and by password with SASL; repeatable.",
)
@click.option(
    "--security-folder", metavar="DIR", help="Keep certificates in this directory.  [default: a temporary one]"
)
@click.option("--control", default=LOCAL, show_default=True, metavar="HOST:PORT", help="Address of the control port.")
@click.option("--as-version", metavar="RELEASE", help="Look like this release of Kafka to clients, 2.8 to 4.3.")
@click.option("--faults", metavar="FILE", help="Read faults from a YAML file.")
@click.option("--seed", type=IntRange(0), default=0, show_default=True, help="Seed of faults with a probability.")
@click.option("--data", metavar="DIR", help="Keep the data in this directory.  [default: in memory]")
@click.option("--plugin", "plugins", multiple=True, metavar="MODULE", help="Load a module with hooks; repeatable.")
@click.option("--stay", is_flag=True, help="Go on when the process that started this one ends.")
@click.option(
    "--log-level",
    type=click.Choice(["DEBUG", "INFO", "WARNING", "ERROR"]),
    default="WARNING",
    show_default=True,
    help="Least severe events to log on stderr.",
)
def test_server(
    topics: tuple[str, ...],
    given: tuple[str, ...],
    brokers: int | None,
    listen: str,
    advertised: str | None,
    security_protocol: str,
    users: tuple[str, ...],
    security_folder: str | None,
    control: str,
    as_version: str | None,
    faults: str | None,
    seed: int,
    data: str | None,
    plugins: tuple[str, ...],
    stay: bool,
    log_level: str,
) -> int:
    """Run a broker for tests, or several, with a control port over HTTP. Print one line of JSON when both are ready.

    The line has bootstrap_servers, control, listen, pid and version; and as client what a client sets, if it has to log
    in. The server ends by SIGTERM, and with the process that started it: when its standard input is a pipe that closes,
    or when its parent process ends.
    """
    from logkernel.testing.server.needed import check_werkzeug

    check_werkzeug()
    from logkernel.testing.server.main import run

    logging.basicConfig(level=log_level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    options: dict[str, Any] = {
        "topics": dict(_topic(text) for text in topics),
        "settings": {name: RawSetting(name, text, "--set") for name, text in pairs(given).items()},
        "plugins": [_module(name) for name in plugins],
        "path": data,
        "as_version": as_version,
        "seed": seed,
        "faults": faults or (),
        "listen": listen,
        "advertised": advertised,
        "security_protocol": security_protocol,
        "users": dict(_user(text) for text in users),
        "security_folder": security_folder,
    }
    run(options, brokers=brokers, control=host_and_port("--control", control), stay=stay, ready=click.echo)
    return 0


def _topic(text: str) -> tuple[str, Any]:
    name, equals, count = text.partition("=")
    if not name or (equals and not (count.isascii() and count.isdecimal() and len(count) < 10)):
        raise click.UsageError(f"--topic {text!r} is not of the form NAME or NAME=PARTITIONS")
    return name, int(count) if equals else {}


def _user(text: str) -> tuple[str, str]:
    name, _, password = text.partition("=")
    return name, password


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise ConfigError(f"--plugin {name}: cannot be imported: {error}; name a module on PYTHONPATH") from None
