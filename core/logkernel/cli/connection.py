"""Where a command finds its log: a cluster (`--bootstrap`), or a data directory that no broker uses (`--data`)."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import field, frozen

from logkernel.cli.client_settings import SET, ClientSettings, load, settings_options
from logkernel.cli.output import json_option
from logkernel.cli.parameters import FloatRange
from logkernel.errors import BrokerIdNotRegistered, ConfigError, DataDirectoryLocked, NetworkException

if TYPE_CHECKING:
    from logkernel.client.admin.client import Admin
    from logkernel.embed import EmbeddedLog
    from logkernel.remote import RemoteLog

F = TypeVar("F", bound=Callable[..., Any])
DEFAULT = "127.0.0.1:9092"
VARIABLE = "LOGKERNEL_BOOTSTRAP"
HASTY_MS = 2_000
"""How long a broker may take to answer a client that soon gives up; one that hangs takes longer."""
REACH_S = 5.0
ONE_PLACE = "--bootstrap and --data exclude each other; give one of them"


@frozen
class ConnectionOptions:
    """The values of `--bootstrap`, `--data` and `--timeout`, and the settings of clients."""

    bootstrap: str | None
    data: str | None
    timeout_s: float
    settings: ClientSettings = field(factory=ClientSettings)

    @contextlib.contextmanager
    def log(self, *, changes: bool = False, **settings: Any) -> Iterator[RemoteLog | EmbeddedLog]:
        """The log; a data directory is opened in this process. Raises `NetworkException` if no broker answers, and
        `ConfigError` where what the command `changes` would be changed in one broker of a cluster alone."""
        import logkernel

        if self.data is not None:
            try:
                opened = logkernel.open(self.data, **_owner(self.data, changes))
            except DataDirectoryLocked as error:
                raise DataDirectoryLocked(f"{error}, or talk to it with --bootstrap HOST:PORT") from None
            with opened:
                yield opened
            return
        servers = self.bootstrap or self.settings.servers or DEFAULT
        reach(servers)
        with logkernel.connect(servers, **{**self.settings.connection(), **settings}) as remote:
            yield remote

    @contextlib.contextmanager
    def admin(self, *, changes: bool = False) -> Iterator[Admin]:
        with self.log(changes=changes) as log, log.admin(**self.of_admin()) as admin:
            yield admin

    def of_admin(self, timeout_ms: int | None = None) -> dict[str, Any]:
        """Settings of an admin client of this log, with the time limit of the command, or another."""
        limit_ms = int(self.timeout_s * 1000) if timeout_ms is None else timeout_ms
        return {**self.settings.own("admin"), "default_api_timeout_ms": limit_ms}

    @contextlib.contextmanager
    def admins(self) -> Iterator[tuple[Admin, Admin]]:
        """A patient client, which asks another broker where one hangs, and one that soon gives up, for single
        brokers."""
        patient_ms = int(self.timeout_s * 1000)
        hasty_ms = min(HASTY_MS, patient_ms)
        with (
            self.log() as log,
            log.admin(**self.of_admin(patient_ms), request_timeout_ms=hasty_ms) as admin,
            log.admin(**self.of_admin(hasty_ms), request_timeout_ms=hasty_ms) as hasty,
        ):
            yield admin, hasty


def _owner(path: str, changes: bool) -> dict[str, Any]:
    """`node_id` of the broker that owns the data directory, if one does; where its cluster decides elsewhere, what is
    adopted of it is not kept.

    Raises `ConfigError` if the command `changes` such a directory.
    """
    from logkernel.cluster.folder import is_members
    from logkernel.inspect.repair import node_id_of
    from logkernel.storage.checkpoints import META_PROPERTIES
    from logkernel.storage.disk import RealDisk

    if not os.path.exists(os.path.join(path, META_PROPERTIES)):
        return {}
    owner: dict[str, Any] = {"node_id": node_id_of(RealDisk(), path)}
    if not is_members(path):
        return owner
    if changes:
        raise ConfigError(
            f"--data {path}: topics, users and rules of this folder's broker are kept elsewhere, by its cluster or in"
            " another of its folders; name a broker that runs by --bootstrap HOST:PORT"
        )
    return {**owner, "coordination": "memory"}


def reach(servers: str) -> None:
    """Raise `NetworkException` unless one of the servers accepts a connection; the client itself would retry."""
    from logkernel.client.cluster.bootstrap import bootstrap_addresses
    from logkernel.client.settings.producer import load_producer

    why = ""
    for host, port in bootstrap_addresses(load_producer({"bootstrap.servers": servers})):
        try:
            socket.create_connection((host, port), REACH_S).close()
        except OSError as error:
            why = error.strerror or str(error)
        else:
            return
    raise NetworkException(
        f"no broker answers at {servers} ({why}); start one with `logkernel serve`, or name another with --bootstrap,"
        f" or a data directory with --data"
    )


def bootstrap_option(text: str, envvar: str | None = VARIABLE) -> Callable[[F], F]:
    """`-b`, `--bootstrap`, and `--bootstrap-server` as Kafka's tools call it."""
    names = ("-b", "--bootstrap", "--bootstrap-server", "bootstrap")
    return click.option(*names, metavar="HOST:PORT", envvar=envvar, show_envvar=envvar is not None, help=text)


def by_argument(name: str) -> bool:
    """Whether an option of the running command was given on the command line, not by the environment."""
    return click.get_current_context().get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE


def connected(command: F) -> F:
    """`--bootstrap`, `--data`, `--timeout`, `--command-config`, `--set` and `--json`; the command gets them as
    `connection` and `as_json`."""

    @bootstrap_option(f"Bootstrap brokers, separated by commas.  [default: {DEFAULT}]")
    @click.option(
        "--data",
        metavar="DIR",
        type=click.Path(file_okay=False),
        help="Open this data directory in this process; no broker may use it.",
    )
    @click.option(
        "--timeout",
        "timeout_s",
        type=FloatRange(0),
        default=30.0,
        show_default=True,
        help="Time limit of one operation, in seconds.",
    )
    @json_option
    def run(
        *args: Any,
        bootstrap: str | None,
        data: str | None,
        timeout_s: float,
        command_config: str | None,
        properties: tuple[str, ...],
        **options: Any,
    ) -> Any:
        if data is not None:
            if by_argument("bootstrap"):
                raise click.UsageError(ONE_PLACE)
            bootstrap = None
            if not os.path.isdir(data) and not getattr(command, "makes_data", False):
                raise click.UsageError(f"--data: there is no directory {data!r}; check the path")
        settings = load(command_config, properties)
        return command(*args, connection=ConnectionOptions(bootstrap, data, timeout_s, settings), **options)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    return settings_options(run, getattr(command, "set_flags", SET))  # type: ignore[return-value]


def coordinated(text: str) -> Callable[[F], F]:
    """`--coordination` and `--config`: where the coordination is found; `text` says what for."""

    def add(command: F) -> F:
        command = click.option(
            "--config",
            metavar="FILE",
            type=click.Path(exists=True, dir_okay=False),
            help="A broker's settings file, which names the coordination and how to reach it (user, TLS).",
        )(command)
        return click.option("--coordination", metavar="URL", help=text)(command)

    return add


def sets_otherwise(command: F) -> F:
    """Mark a command whose `--set` is its own: settings of the client are given by `-X`."""
    command.set_flags = ("-X", "--command-property")  # type: ignore[attr-defined]
    return command


def makes_data(command: F) -> F:
    """Mark a command that creates the directory of `--data` if it is missing."""
    command.makes_data = True  # type: ignore[attr-defined]
    return command


def check_brokers(admin: Admin, ids: Iterable[int]) -> None:
    """Raise `BrokerIdNotRegistered` for an id that no broker has: a request to it would wait until --timeout."""
    known = [broker.id for broker in admin.describe_cluster().brokers]
    for broker in ids:
        if broker not in known:
            raise BrokerIdNotRegistered(f"there is no broker {broker}; use one of {', '.join(map(str, known))}")


# ---------------------------------------------------------------- what arguments mean


def pairs(given: Sequence[str], what: str = "NAME=VALUE") -> dict[str, str]:
    """`a=b` arguments as a dict."""
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise click.UsageError(f"{text!r} is not of the form {what}")
        found[name] = value
    return found


def time_ms(text: str) -> int:
    """Milliseconds since 1970 of a number of them, or of an ISO 8601 time; without a zone it is local."""
    if text.lstrip("-").isdigit():
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"{text!r} is not a time; give ms since 1970, or ISO 8601 such as 2026-01-31T12:00:00Z"
        ) from None
    return int(moment.timestamp() * 1000)


def iso(ms: int) -> str:
    """A time as text, in UTC; "" where there is none."""
    return "" if ms < 0 else datetime.fromtimestamp(ms / 1000, UTC).isoformat(timespec="milliseconds")


def partitions(text: str) -> tuple[str, list[int] | None]:
    """`orders` or `orders:0,2` as topic and partitions, None: all."""
    topic, colon, rest = text.rpartition(":")
    if not colon:
        return text, None
    try:
        return topic, [int(part) for part in rest.split(",")]
    except ValueError:
        raise click.UsageError(
            f"{text!r} is not of the form TOPIC or TOPIC:PARTITION,…; write e.g. orders or orders:0,2"
        ) from None
