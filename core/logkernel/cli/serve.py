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
from collections.abc import Iterable, Sequence
from functools import partial
from importlib import import_module
from types import FrameType
from typing import TYPE_CHECKING

from logkernel.cli.coordination_url import settings_of
from logkernel.cli.log_lines import LogLines

if TYPE_CHECKING:
    import asyncio

    from logkernel.broker.broker import Broker
    from logkernel.config.sources import RawSetting
    from logkernel.security.development import Development

DEFAULT_LISTEN = "127.0.0.1:9092"
DEFAULT_FOLDER = "./data"
NODE_IDS, COORDINATIONS = ("node.id", "broker.id"), ("coordination",)
FOLDERS, LISTENERS = ("log.dirs", "log.dir"), ("listeners",)
AS_VERSION = ("logkernel.as.version",)
"""The settings that options give, by all their names."""
HELP_WIDTH = 100
FOLDERS_S = 10.0
"""How long a start waits for brokers whose parent was killed."""
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
        "--coordination",
        metavar="URL",
        help="join the cluster whose metadata is in this ZooKeeper: zookeeper://h1:2181,h2:2181/chroot",
    )
    parser.add_argument(
        "--node-id", metavar="N", type=int, help="the id of this broker, unique in its cluster (node.id); default 1"
    )
    parser.add_argument(
        "--as-version",
        metavar="RELEASE",
        help="speak as this release of Kafka did, 2.8 to 4.3, for tests of clients (logkernel.as.version)",
    )
    _add_options_of_a_cluster(parser)
    parser.add_argument(
        "--secure",
        action="store_true",
        help="ask clients for TLS and a password; make a CA, a certificate and a first user in DIR/security",
    )
    for hidden in ("--child", "--known"):  # by which --processes starts a broker
        parser.add_argument(hidden, type=int, help=argparse.SUPPRESS)
    parser.add_argument(
        "--log-level",
        default="INFO",
        choices=["DEBUG", "INFO", "WARNING", "ERROR"],
        help="least severe events to log; default INFO",
    )
    return parser


def _add_options_of_a_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--brokers",
        metavar="N",
        type=int,
        help="run a cluster of N brokers, each with a directory in DIR and a port from PORT on",
    )
    parser.add_argument(
        "--processes",
        action="store_true",
        help="run each of the N brokers in a process of its own, so that they use several cores",
    )
    parser.add_argument(
        "--racks",
        metavar="RACK,...",
        help="the racks of the N brokers (broker.rack), in turn: a,b puts brokers 1 and 3 into a, 2 and 4 into b",
    )


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
    arguments.argv = argv
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LogLines(arguments.child))
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


def _overrides(arguments: argparse.Namespace) -> list[str | RawSetting]:
    """`--set`, and the options that stand for a setting. Raises `ConfigError` if both give one setting."""
    from logkernel.config.sources import RawSetting

    found: list[str | RawSetting] = list(arguments.settings)
    options = (
        ("--data", arguments.data, FOLDERS), ("--listen", arguments.listen, LISTENERS),
        ("--node-id", arguments.node_id, NODE_IDS), ("--coordination", arguments.coordination, COORDINATIONS),
        ("--as-version", arguments.as_version, AS_VERSION),
    )  # fmt: skip
    for option, given, names in options:
        if given is None or given == "":
            continue
        for word in arguments.settings:
            if word.partition("=")[0].strip() in names:
                from logkernel.errors import ConfigError

                raise ConfigError(f"{option} {given} and --set {word} give one setting twice; leave out one of them")
        if names is COORDINATIONS:
            found += settings_of(given)
        else:
            found.append(RawSetting(names[0], str(given), option))
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
    if arguments.child is not None:
        return _run_child(arguments)
    if arguments.processes:
        return _run_processes(arguments)
    if arguments.brokers is not None:
        return _run_cluster(arguments)
    if arguments.racks is not None:
        from logkernel.errors import ConfigError

        raise ConfigError(
            "--racks is for brokers of a cluster; say how many by --brokers N, or --set broker.rack=NAME for one"
        )
    made = None
    settings = _overrides(arguments)
    if arguments.secure:
        made, more = _secure(arguments, settings)
        settings += more
    broker = build(arguments.config, settings, serves=True)
    listeners = broker.addresses.configured_listeners()
    importing = threading.Thread(target=_import_event_loop)
    importing.start()
    try:
        if made is None:
            _check_protected(broker)
        _check_addresses(broker.logs.paths, [(host, port) for _, host, port in listeners])
        broker.start()
        importing.join()
        from logkernel.broker.serve import new_event_loop

        if made is not None:
            from logkernel.cli.secure import add_first_user, told

            add_first_user(broker, made)
            _, host, port = listeners[0]
            print(told(made, host, port), file=sys.stderr)
        _serve_on_loop(broker, listeners, new_event_loop())
    finally:
        importing.join()
        broker.close()
    return 0


def _secure(arguments: argparse.Namespace, given: Sequence[str | RawSetting]) -> tuple[Development, list[RawSetting]]:
    from logkernel.cli.secure import prepare

    return prepare(arguments, DEFAULT_FOLDER, arguments.listen or DEFAULT_LISTEN, given)


def _check_protected(broker: Broker) -> None:
    """Raise `ConfigError` for a folder of `--secure` that would be served to everybody."""
    from logkernel.storage.names import SECURITY_FOLDER

    if any(os.path.isdir(os.path.join(path, SECURITY_FOLDER)) for path in broker.logs.paths):
        from logkernel.cli.secure import check_protected

        check_protected(broker.runtime.config, broker.logs.paths)


def _run_cluster(arguments: argparse.Namespace) -> int:
    """Run the brokers of a cluster until a signal comes."""
    from logkernel.broker.serve import SWITCH_INTERVAL_S
    from logkernel.cluster.cluster import Cluster
    from logkernel.cluster.folder import check_brokers

    folder = arguments.data or DEFAULT_FOLDER
    check_brokers(folder, arguments.brokers)
    settings = _cluster_settings(arguments)
    addresses = _addresses(arguments)
    _check_addresses([folder], map(_pair, addresses.values()))
    cluster = Cluster(
        arguments.brokers, folder, listen=addresses, config=arguments.config, overrides=settings,
        racks=_racks(arguments),
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


def _run_processes(arguments: argparse.Namespace) -> int:
    """Run the brokers of a cluster in processes of their own until a signal comes."""
    import asyncio

    from logkernel.cluster.folder import check_brokers, open_store, wait_for_folders
    from logkernel.cluster.processes.parent import Parent, program
    from logkernel.errors import ConfigError

    if arguments.brokers is None or arguments.brokers < 1:
        raise ConfigError("--processes runs the brokers of a cluster; say how many by --brokers N")
    folder = arguments.data or DEFAULT_FOLDER
    check_brokers(folder, arguments.brokers)
    _cluster_settings(arguments)
    _racks(arguments)
    addresses = _addresses(arguments)
    _check_addresses([folder], map(_pair, addresses.values()))
    store = open_store(folder)

    def command(node: int, address: str, known: int) -> list[str]:
        return [*program(), "serve", *arguments.argv, "--listen", address, "--child", str(node), "--known", str(known)]

    async def run() -> int:
        parent = Parent(folder, store, addresses, command)

        def ready() -> None:
            listening = ",".join(address for _, address in sorted(parent.addresses.items()))
            print(f"logkernel listening on {listening} data={os.path.abspath(folder)}", flush=True)

        return await parent.run(ready, _stop_signals())

    try:
        wait_for_folders(folder, arguments.brokers, FOLDERS_S)
        return asyncio.run(run())
    finally:
        store.close()


def _run_child(arguments: argparse.Namespace) -> int:
    """Run broker `--child` of a cluster whose parent is `_run_processes`."""
    import asyncio

    from logkernel.broker.serve import new_event_loop
    from logkernel.cluster.processes.child import build_child, live_with_parent

    folder, loop, alone = arguments.data or DEFAULT_FOLDER, new_event_loop(), asyncio.Event()
    live_with_parent(lambda: loop.call_soon_threadsafe(alone.set))
    settings = _cluster_settings(arguments)
    rack = _racks(arguments).get(arguments.child)
    settings += [f"broker.rack={rack}"] if rack else []
    broker = build_child(folder, arguments.child, arguments.brokers, arguments.listen, arguments.config, settings, loop)
    broker.start()
    _serve_on_loop(broker, broker.addresses.configured_listeners(), loop, arguments.known, alone)
    return 0


def _cluster_settings(arguments: argparse.Namespace) -> list[str | RawSetting]:
    """`--set` of all brokers. Raises `ConfigError` for what each must have of its own, for another coordination, and
    for protection that these brokers would not have."""
    from logkernel.cli.cluster_protection import check, refuse_secure
    from logkernel.config.sources import RawSetting
    from logkernel.errors import ConfigError

    refuse_secure(arguments)
    for option, given in (("--coordination", arguments.coordination), ("--node-id", arguments.node_id)):
        if given is not None:
            raise ConfigError(
                f"{option} {given}: the brokers of --brokers have node ids from 1 on and a coordination of their own;"
                f" leave out {option}, or start one broker without --brokers"
            )
    for word in arguments.settings:
        name = word.partition("=")[0].strip()
        if name in COORDINATIONS:
            raise ConfigError(
                f"--set {word}: the brokers of --brokers have a coordination of their own; leave it out, or start one"
                " broker without --brokers"
            )
        if name in (*FOLDERS, *LISTENERS, *NODE_IDS):
            raise ConfigError(
                f"--set {word}: with --brokers each broker has its own {name}; use --data DIR and --listen HOST:PORT"
            )
    release = arguments.as_version
    settings = [*arguments.settings, *([] if release is None else [RawSetting(AS_VERSION[0], release, "--as-version")])]
    if arguments.child is None:
        check(arguments, settings)
    return settings


def _racks(arguments: argparse.Namespace) -> dict[int, str]:
    """Node id → rack. Raises `ConfigError`."""
    if arguments.racks is None:
        return {}
    named = [rack.strip() for rack in arguments.racks.split(",")]
    if not all(named):
        from logkernel.errors import ConfigError

        raise ConfigError(f"--racks {arguments.racks}: a rack has no name; separate names by single commas")
    return {node: named[(node - 1) % len(named)] for node in range(1, arguments.brokers + 1)}


def _addresses(arguments: argparse.Namespace) -> dict[int, str]:
    """Node id → where it listens. Raises `ConfigError`."""
    from logkernel.config.listeners import following
    from logkernel.errors import ConfigError

    where = arguments.listen or DEFAULT_LISTEN
    try:
        return following(where, arguments.brokers)
    except ValueError as error:
        raise ConfigError(f"--listen {where}: {error}") from None


def _check_addresses(folders: Iterable[str], addresses: Iterable[tuple[str, int]]) -> None:
    """Raise `CannotListen` for an address that cannot be had, before a new folder is made that would be left behind."""
    if not all(map(os.path.exists, folders)):
        from logkernel.broker.can_listen import check_address

        for host, port in addresses:
            check_address(host, port)


def _pair(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)


def _import_event_loop() -> None:
    """Import the event loop: a third of a start's work, done while the other thread waits for the disk."""
    for name in ("logkernel.broker.serve", "uvloop"):
        with contextlib.suppress(ImportError):
            import_module(name)


def _serve_on_loop(
    broker: Broker,
    listeners: list[tuple[str, str, int]],
    loop: asyncio.AbstractEventLoop,
    known: int = 1,
    alone: asyncio.Event | None = None,
) -> None:
    """`known` and `alone` are of `run`. The loop is closed in the end."""
    from logkernel.broker.serve import Server, run
    from logkernel.config.listeners import Listener, listening

    def ready(server: Server) -> None:
        gc.freeze()
        gc.enable()
        gc.set_threshold(COLLECT_AFTER, 20, 10)
        bound = [Listener(each.name, each.host, each.port) for each in server.listeners]
        where = listening([(each, broker.runtime.config.security_protocol(each.name)) for each in bound])
        folders = ",".join(os.path.abspath(path) for path in broker.logs.paths)
        print(f"logkernel listening on {where} data={folders}", flush=True)

    try:
        loop.run_until_complete(run(broker, listeners, ready, _stop_signals(), known, alone))
    finally:
        broker.close()
        loop.close()
