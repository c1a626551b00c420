"""`logkernel perf`: measure throughput and latency of a logkernel or Kafka cluster, or of a log in this process.

The options of Kafka's perf tools are accepted under their names there and under ours.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from logkernel.cli.client_settings import SERVERS, config_option, merged
from logkernel.cli.connection import ONE_PLACE, bootstrap_option, reach
from logkernel.cli.output import F, json_option, put_json, put_table
from logkernel.cli.parameters import IntRange, with_options

if TYPE_CHECKING:
    from logkernel.perf.sweep import Curve

TERMINAL_S = 0.5
"""Seconds between updates of a terminal's line; without a terminal, a line is printed each reporting interval."""


def _pairs(context: click.Context, parameter: click.Parameter, given: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in given:
        for part in text.split():
            name, equals, value = part.partition("=")
            if not equals or not name:
                raise click.BadParameter(f"{part!r} is not of the form NAME=VALUE", context, parameter)
            found[name.strip()] = value
    return found


def _where(command: F) -> F:
    """The options of the log and topic to measure."""
    options = (
        bootstrap_option(
            "Bootstrap brokers of a logkernel or Apache Kafka cluster.  [default: a log in this process]", None
        ),
        click.option("--data", metavar="DIR", help="Data directory of the log in this process.  [default: in memory]"),
        config_option("--command-config", "--producer.config", "--consumer.config"),
        click.option("--topic", default="perf", show_default=True, help="The topic; created if it is missing."),
        click.option("--partitions", type=IntRange(1), help="Partitions of a created topic.  [default: 1]"),
    )
    return with_options(options)(command)


def _settings(*names: str, text: str) -> Callable[[F], F]:
    return click.option(*names, "settings", multiple=True, callback=_pairs, metavar="NAME=VALUE", help=text)


_more = click.argument("more", nargs=-1, callback=_pairs, metavar="[NAME=VALUE]...")
"""Kafka's tools take several pairs after one option."""
_interval = click.option(
    "--reporting-interval",
    type=IntRange(1),
    default=5000,
    show_default=True,
    help="Time between two lines of results, in ms.",
)


def _place(
    bootstrap: str | None, data: str | None, command_config: str | None, settings: dict[str, str], kind: str
) -> Any:
    """The log to measure. `bootstrap.servers` may be given among the settings, as for Kafka's tools; those of a client
    of this `kind` are left there."""
    from logkernel.perf.target import open_log

    given = merged(command_config, settings)
    settings.clear()
    settings.update(given.own(kind))
    servers = bootstrap or (given.servers if data is None or SERVERS not in given.from_file else None)
    if servers is not None and data is not None:
        raise click.UsageError(ONE_PLACE)
    if servers is None:
        return open_log(None, data)
    reach(servers)
    return open_log(servers, data, given.connection())


class _Board:
    """Progress: on a terminal one line that changes, else a line for each window."""

    def __init__(self, as_json: bool, *, stream: Any = None) -> None:
        self._as_json = as_json
        self._stream = stream or sys.stdout
        self._live: Any = None
        self.is_terminal = not as_json and sys.stderr.isatty()

    def __enter__(self) -> _Board:
        if self.is_terminal:
            from rich.console import Console
            from rich.live import Live

            self._live = Live("", console=Console(stderr=True, highlight=False), transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def tell(self, window: Any) -> None:
        if self._as_json:
            put_json(window.row())
            sys.stdout.flush()
        else:
            self.say(window.line())

    def say(self, line: str) -> None:
        if self._live is not None:
            from rich.text import Text

            self._live.update(Text(line, style="cyan"))
        else:
            print(line, file=self._stream, flush=True)


@click.command
@_where
@click.option("--num-records", type=IntRange(1), required=True, help="Number of records to send.")
@click.option("--record-size", type=IntRange(0), default=100, show_default=True, help="Size of each value, in bytes.")
@click.option(
    "--throughput", type=float, default=-1.0, show_default=True, help="Limit of records a second; -1 sets no limit."
)
@_settings("--set", "--producer-props", "--command-property", text="Set a producer setting; repeatable.")
@_interval
@json_option
@_more
def produce(
    bootstrap: str | None,
    data: str | None,
    command_config: str | None,
    topic: str,
    partitions: int | None,
    num_records: int,
    record_size: int,
    throughput: float,
    settings: dict[str, str],
    reporting_interval: int,
    as_json: bool,
    more: dict[str, str],
) -> int:
    """Produce random records; print records a second and the latency of acknowledgements.

    The output is that of kafka-producer-perf-test.sh. Exit code 1 if a record failed.
    """
    from logkernel.perf.produce import ProduceJob
    from logkernel.perf.produce import produce as run
    from logkernel.perf.target import make_topic

    settings.update(more)
    with _place(bootstrap, data, command_config, settings, "producer") as log:
        make_topic(log, topic, partitions)
        with _Board(as_json) as board:
            interval_s = TERMINAL_S if board.is_terminal else reporting_interval / 1000
            total = run(log, ProduceJob(topic, num_records, record_size, throughput, settings, interval_s), board.tell)
    if as_json:
        put_json(total.row())
    else:
        print(total.line())
    if total.failed:
        print(f"logkernel: {total.failed} of {num_records} records failed", file=sys.stderr)
    return int(total.failed > 0)


@click.command
@_where
@click.option("--num-records", "--messages", type=IntRange(1), required=True, help="Number of records to read.")
@click.option(
    "--record-size",
    type=IntRange(0),
    default=100,
    show_default=True,
    help="Size of the values that are written first, in bytes, if the log is in memory.",
)
@click.option("--group", help="Join this group.  [default: assign all partitions, without a group]")
@click.option(
    "--timeout",
    type=IntRange(0),
    default=10_000,
    show_default=True,
    help="Stop after this long without a record, in ms.",
)
@_settings("--set", "--consumer-props", "--command-property", text="Set a consumer setting; repeatable.")
@click.option("--show-detailed-stats", "detailed", is_flag=True, help="Print each window on stdout.")
@click.option("--hide-header", is_flag=True, help="Do not print the line of column names.")
@_interval
@json_option
@_more
def consume(
    bootstrap: str | None,
    data: str | None,
    command_config: str | None,
    topic: str,
    partitions: int | None,
    num_records: int,
    record_size: int,
    group: str | None,
    timeout: int,
    settings: dict[str, str],
    detailed: bool,
    hide_header: bool,
    reporting_interval: int,
    as_json: bool,
    more: dict[str, str],
) -> int:
    """Consume records from the beginning; print records a second.

    The columns are those of kafka-consumer-perf-test.sh. A log in memory is filled first, which is not measured.
    Exit code 1 if fewer records came.
    """
    from logkernel.perf.consume import ConsumeJob
    from logkernel.perf.consume import consume as run
    from logkernel.perf.produce import ProduceJob
    from logkernel.perf.produce import produce as fill
    from logkernel.perf.target import make_topic

    settings.update(more)
    with _place(bootstrap, data, command_config, settings, "consumer") as log:
        made = make_topic(log, topic, partitions)
        if made and bootstrap is None and data is None:
            fill(log, ProduceJob(topic, num_records, record_size), lambda window: None)
        with _Board(as_json, stream=sys.stdout if detailed else sys.stderr) as board:
            interval_s = TERMINAL_S if board.is_terminal else reporting_interval / 1000
            job = ConsumeJob(topic, num_records, group, timeout, settings, interval_s)
            total, complete = run(log, job, board.tell)
    if as_json:
        put_json(total.row())
    else:
        if not hide_header:
            print(total.header())
        print(total.line())
    if not complete:
        why = f"no more came for {timeout} ms; raise --timeout, or lower --num-records"
        print(f"logkernel: only {total.records} of {num_records} records were read: {why}", file=sys.stderr)
    return int(not complete)


@click.command
@_where
@click.option("--num-records", type=IntRange(1), default=10_000, show_default=True, help="Number of records to send.")
@click.option("--record-size", type=IntRange(0), default=100, show_default=True, help="Size of each value, in bytes.")
@_settings("--set", "--producer-props", text="Set a producer setting; repeatable.")
@json_option
@_more
def latency(
    bootstrap: str | None,
    data: str | None,
    command_config: str | None,
    topic: str,
    partitions: int | None,
    num_records: int,
    record_size: int,
    settings: dict[str, str],
    as_json: bool,
    more: dict[str, str],
) -> int:
    """Send one record at a time; print the time until it is acknowledged and until a consumer has it, in ms.

    The output ends with the lines of kafka-e2e-latency.sh. Nobody else may write to the topic meanwhile.
    """
    from logkernel.perf.latency import LatencyJob
    from logkernel.perf.latency import latency as run
    from logkernel.perf.target import make_topic

    settings.update(more)
    with _place(bootstrap, data, command_config, settings, "producer") as log:
        make_topic(log, topic, partitions)
        with _Board(as_json, stream=sys.stderr) as board:
            step = max(1, num_records // (200 if board.is_terminal else 10))

            def tell(done: int) -> None:
                if not as_json and done % step == 0:
                    board.say(f"{done} of {num_records} records")

            trips = run(log, LatencyJob(topic, num_records, record_size, settings), tell)
    if as_json:
        for row in trips.rows():
            put_json(row)
    else:
        print("\n".join(trips.lines()))
    return 0


def _counts(context: click.Context, parameter: click.Parameter, given: str | None) -> tuple[int, ...] | None:
    if given is None:
        return None
    try:
        found = tuple(sorted({int(part) for part in given.split(",")}))
    except ValueError:
        raise click.BadParameter(
            f"{given!r} is not a list of whole numbers; write e.g. 1,2,4", context, parameter
        ) from None
    if found[0] < 1:
        raise click.BadParameter(f"{found[0]} is too small; give numbers of at least 1", context, parameter)
    return found


def _counts_option(name: str, text: str) -> Callable[[F], F]:
    return click.option(name, callback=_counts, metavar="N,N,...", help=text)


@click.command
@bootstrap_option(
    "Bootstrap brokers of a logkernel or Apache Kafka cluster.  [default: a broker started for the run]", None
)
@config_option("--command-config", "--producer.config")
@click.option("--out", metavar="DIR", default="perf-sweep", show_default=True, help="Directory for the pictures.")
@click.option(
    "--only", metavar="NAME,...", help="Run only these of producers, consumers, partitions, message-size, replication."
)
@click.option("--num-records", type=IntRange(1), default=100_000, show_default=True, help="Records of each run.")
@click.option("--record-size", type=IntRange(1), default=100, show_default=True, help="Size of each value, in bytes.")
@click.option("--runs", type=IntRange(1), default=3, show_default=True, help="Runs of each point; the median counts.")
@_counts_option("--producers", "Numbers of producers at once.")
@_counts_option("--consumers", "Numbers of consumers at once, of 4 partitions.")
@_counts_option("--partitions", "Numbers of partitions of the topic.")
@_counts_option("--sizes", "Sizes of a record, in bytes.")
@_counts_option("--replicas", "Numbers of replicas of the topic; at most the number of brokers.")
@_settings("--set", "--producer-props", text="Set a setting of the producers; repeatable.")
@json_option
def sweep(
    bootstrap: str | None,
    command_config: str | None,
    out: str,
    only: str | None,
    num_records: int,
    record_size: int,
    runs: int,
    settings: dict[str, str],
    as_json: bool,
    **counts: tuple[int, ...] | None,
) -> int:
    """Draw throughput against the number of producers, consumers, partitions and replicas, and the record size.

    Prints for each common claim about such a curve whether it held here. Each producer and consumer is a process.
    """
    from contextlib import nullcontext
    from pathlib import Path

    from logkernel.perf import plots
    from logkernel.perf.sweep import EXPERIMENTS, Plan, Sweep, served

    plots.check_installed()
    known = [row.name for row in EXPERIMENTS]
    chosen = known if only is None else [name.strip() for name in only.split(",")]
    unknown = [name for name in chosen if name not in known]
    if unknown:
        raise click.UsageError(f"--only: there is no experiment {', '.join(unknown)}; use some of {', '.join(known)}")
    clients = merged(command_config, settings)
    bootstrap = bootstrap or clients.servers
    plan = Plan(num_records, record_size, runs, settings=clients.own("producer"))
    for name, given in counts.items():
        if given is not None:
            setattr(plan, name, given)
    curves: list[Curve] = []
    target = nullcontext(bootstrap) if bootstrap is not None else served()
    with target as servers, _status(as_json) as say:
        assert servers is not None
        made = Sweep(servers, plan, say, clients.connection() if bootstrap else {})
        try:
            for name in chosen:
                curves.append(made.run(name))
                if as_json:
                    for row in curves[-1].rows():
                        put_json(row)
        finally:
            made.close()
    title = f"{'a cluster' if bootstrap else 'logkernel'}, {num_records:,} records a run, medians of {runs}"
    drawn = plots.draw(curves, Path(out), title)
    if as_json:
        put_json({"kind": "drawn", "paths": [str(path) for path in drawn]})
    else:
        _show(curves)
        print(f"drawn: {', '.join(map(str, drawn))}")
    return 0


@contextmanager
def _status(quiet: bool) -> Iterator[Callable[[str], None]]:
    """Tell what is being measured: a spinner on a terminal, else lines on stderr."""
    if quiet:
        yield lambda what: None
    elif sys.stderr.isatty():
        from rich.console import Console

        with Console(stderr=True).status("") as status:
            yield status.update
    else:
        yield lambda what: print(what, file=sys.stderr, flush=True)


def _show(curves: Sequence[Curve]) -> None:
    from logkernel.perf import plots

    for curve in curves:
        click.secho(f"\n{curve.experiment.name}", bold=True)
        if curve.points:
            rows = [(point.x, f"{point.records_s:,.0f}", f"{point.mib_s:.2f}") for point in curve.points]
            put_table((curve.experiment.axis, "records/sec", "MB/sec"), rows)
            print(plots.text(curve, colours=sys.stdout.isatty()))
        print(f"claim: {curve.experiment.claim}")
        click.secho(f"here: {curve.verdict.outcome}", bold=True, nl=False)
        print(f" ({curve.verdict.why})")
