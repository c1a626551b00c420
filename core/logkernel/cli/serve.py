"""`logkernel serve`: its start-up is measured, so nothing here may import the libraries of the other commands."""

from __future__ import annotations

import argparse
import contextlib
import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logkernel.broker.broker import Broker

DEFAULT_LISTEN = "127.0.0.1:9092"
DEFAULT_FOLDER = "./data"
FOLDERS, LISTENERS = ("log.dirs", "log.dir"), ("listeners",)
"""The settings that `--data` and `--listen` give, by all their names."""
HELP_WIDTH = 100
COLLECT_AFTER = 10_000
"""New objects between garbage collections; the interpreter's default of 700 took 5 % of a busy broker's time."""
SUMMARY = "Run a broker for Kafka clients."


def _parser() -> argparse.ArgumentParser:
    lines = partial(argparse.HelpFormatter, width=HELP_WIDTH)  # without a width it imports four modules to find one
    parser = argparse.ArgumentParser(prog="logkernel serve", description=SUMMARY, formatter_class=lines)
    parser.add_argument("--data", metavar="DIR", help="data directory (log.dirs); default ./data")
    parser.add_argument(
        "--listen",
        metavar="HOST:PORT",
        help=f"address to listen on (listeners); port 0 picks a free port; default {DEFAULT_LISTEN}",
    )
    parser.add_argument(
        "--config", metavar="FILE", help="read settings from a logkernel YAML file or a Kafka server.properties"
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        dest="settings",
        help="set any setting by its Kafka name; repeatable",
    )
    parser.add_argument(
        "--brokers",
        metavar="N",
        type=int,
        help="run a cluster of N brokers in this process, each with a directory in DIR and a port from PORT on",
    )
    parser.add_argument(
        "--log-level",
        default="INFO",
        choices=["DEBUG", "INFO", "WARNING", "ERROR"],
        help="least severe events to log; default INFO",
    )
    return parser


class _LogFormatter(logging.Formatter):
    """One `key=value` line an event on stderr; values with blanks are quoted."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        line = f"time={stamp}.{int(record.msecs):03d} level={record.levelname.lower()} logger={record.name}"
        line += f' event="{record.getMessage()}"'
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _end_unready(number: int, frame: FrameType | None) -> None:
    """A stop signal before the broker is ready: exit at once, as a kill would. The next start recovers."""
    logging.getLogger("logkernel.serve").info("stopping before it was ready")
    os._exit(0)


def _stop_signals() -> list[int]:
    """The signals that stop a broker cleanly. A closed terminal sends SIGHUP; under `nohup` it stays ignored."""
    found = [signal.SIGTERM, signal.SIGINT]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        found.append(signal.SIGHUP)
    return [int(number) for number in found]


def serve(argv: Sequence[str]) -> int:
    """Exit codes: 0 ended cleanly, 1 unexpected failure, 2 refused (bad settings, locked directory)."""
    for number in _stop_signals():  # until the event loop takes them
        signal.signal(number, _end_unready)
    arguments = _parser().parse_args(argv)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_LogFormatter())
    logging.basicConfig(level=arguments.log_level, handlers=[handler], force=True)
    try:
        return _serve(arguments)
    finally:
        _forget_closed_terminal()


def _forget_closed_terminal() -> None:
    """Discard what was logged after the terminal closed; unflushed, it would make Python's exit code 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _serve(arguments: argparse.Namespace) -> int:
    from logkernel.errors import LogkernelError

    try:
        return _run_broker(arguments)
    except LogkernelError as error:
        print(f"logkernel: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"logkernel: {error}", file=sys.stderr)
        return 2


def _overrides(arguments: argparse.Namespace) -> list[str]:
    """`--set`, and the options that stand for a setting. Raises `ConfigError` if both give one setting."""
    found = list(arguments.settings)
    for option, given, names in (("--data", arguments.data, FOLDERS), ("--listen", arguments.listen, LISTENERS)):
        if not given:
            continue
        for word in arguments.settings:
            if word.partition("=")[0].strip() in names:
                from logkernel.errors import ConfigError

                raise ConfigError(f"{option} {given} and --set {word} give one setting twice; leave out one of them")
        found.append(f"{names[0]}={given}")
    return found


def _raise_file_limit() -> None:
    """Raise the limit of open files to the hard limit: a busy partition holds three descriptors."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def _run_broker(arguments: argparse.Namespace) -> int:
    from logkernel.broker.build import build

    _raise_file_limit()
    if arguments.brokers is not None:
        return _run_cluster(arguments)
    broker = build(arguments.config, _overrides(arguments))
    listeners = broker.cluster.configured_listeners()
    importing = threading.Thread(target=_import_event_loop)
    importing.start()
    try:
        broker.start()
        importing.join()
        _serve_on_loop(broker, listeners)
    finally:
        importing.join()
        broker.close()
    return 0


def _run_cluster(arguments: argparse.Namespace) -> int:
    """Run the brokers of a cluster until a signal comes."""
    from logkernel.broker.serve import SWITCH_INTERVAL_S
    from logkernel.cluster.cluster import Cluster
    from logkernel.cluster.folder import check_brokers

    folder = arguments.data or DEFAULT_FOLDER
    check_brokers(folder, arguments.brokers)
    cluster = Cluster(
        arguments.brokers, folder, listen=_addresses(arguments), config=arguments.config,
        overrides=_cluster_settings(arguments),
    )  # fmt: skip
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    stop = threading.Event()
    for number in _stop_signals():
        signal.signal(number, lambda number, frame: stop.set())
    print(f"logkernel listening on {cluster.bootstrap_servers} data={os.path.abspath(folder)}", flush=True)
    try:
        stop.wait()
        logging.getLogger("logkernel.serve").info("stopping")
    finally:
        cluster.close()
    return 0


def _cluster_settings(arguments: argparse.Namespace) -> list[str]:
    """`--set` of all brokers. Raises `ConfigError` for what each must have of its own."""
    for word in arguments.settings:
        name = word.partition("=")[0].strip()
        if name in (*FOLDERS, *LISTENERS, "node.id", "broker.id"):
            from logkernel.errors import ConfigError

            raise ConfigError(
                f"--set {word}: with --brokers each broker has its own {name}; use --data DIR and --listen HOST:PORT"
            )
    return list(arguments.settings)


def _addresses(arguments: argparse.Namespace) -> dict[int, str]:
    """Node id → where it listens: ports follow one another, and 0 takes a free one for each."""
    where = arguments.listen or DEFAULT_LISTEN
    host, _, port = where.rpartition(":")
    if not port.isdigit() or "," in where:
        from logkernel.errors import ConfigError

        raise ConfigError(f"--listen {where}: with --brokers give one HOST:PORT; the brokers take ports from there on")
    first = int(port)
    return {node: f"{host}:{first + node - 1 if first else 0}" for node in range(1, arguments.brokers + 1)}


def _import_event_loop() -> None:
    """Import the event loop: a third of a start's work, done while the other thread waits for the disk."""
    for name in ("logkernel.broker.serve", "uvloop"):
        with contextlib.suppress(ImportError):
            import_module(name)


def _serve_on_loop(broker: Broker, listeners: list[tuple[str, str, int]]) -> None:
    from logkernel.broker.serve import Server, new_event_loop, run
    from logkernel.config.listeners import address

    def ready(server: Server) -> None:
        gc.freeze()
        gc.enable()
        gc.set_threshold(COLLECT_AFTER, 20, 10)
        addresses = ",".join(address(listener.host, listener.port) for listener in server.listeners)
        folders = ",".join(os.path.abspath(path) for path in broker.logs.paths)
        print(f"logkernel listening on {addresses} data={folders}", flush=True)

    loop = new_event_loop()
    try:
        loop.run_until_complete(run(broker, listeners, ready, _stop_signals()))
    finally:
        broker.close()
        loop.close()
