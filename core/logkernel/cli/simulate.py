"""`logkernel simulate`: simulate clusters under faults, from seeds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from logkernel.cli.connection import pairs
from logkernel.cli.output import json_option, put_json
from logkernel.cli.parameters import IntRange

if TYPE_CHECKING:
    from logkernel.testing.simulation.simulate import Simulation, SimulationFailed, SimulationReport


@click.command
@click.option("--seeds", type=IntRange(1), default=100, show_default=True, help="Number of histories to run.")
@click.option("--from", "first", type=IntRange(0), default=0, show_default=True, help="The first seed.")
@click.option("--seconds", type=IntRange(1), help="Run seeds for this time, instead of a number of them.")
@click.option("--replay", type=IntRange(0), metavar="SEED", help="Run only this seed, and print its events.")
@click.option(
    "--level",
    type=click.Choice(["protocol", "world"]),
    default="protocol",
    show_default=True,
    help="Simulate the machines of replication, or whole brokers and clients.",
)
@click.option("--election", metavar="NAME", help="Test this election strategy.  [default: each seed draws a built-in]")
@click.option("--isr", default="time", show_default=True, metavar="NAME", help="Test this ISR policy.")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="Give the topic a setting of a plugin.")
@json_option
def simulate(
    seeds: int,
    first: int,
    seconds: int | None,
    replay: int | None,
    level: str,
    election: str | None,
    isr: str,
    given: tuple[str, ...],
    as_json: bool,
) -> int:
    """Simulate clusters under faults: brokers crash, hang and lose their network while clients write; check promises.

    Each seed gives one history, the same each time. A seed that breaks a promise ends the run with exit code 1: the
    command prints the seed, the faults that suffice to break it, and how to replay it. The list shows how often rare
    states were reached. Exit code 1 also means that many seeds (1,000; 70 of level world) missed one.
    """
    from logkernel.testing.simulation.simulate import Simulation, SimulationFailed, endless, simulate

    settings = pairs(given)
    if replay is not None:
        return _replay(Simulation(election, isr, settings, level=level), replay, as_json)
    chosen: Any = seeds if seconds is None else endless(first)
    try:
        report = simulate(
            chosen, first=first, election=election, isr=isr, settings=settings, level=level, seconds=seconds
        )
    except SimulationFailed as failed:
        _put_failure(failed, as_json)
        return 1
    _put_report(report, as_json)
    return int(bool(report.unseen))


def _replay(simulation: Simulation, seed: int, as_json: bool) -> int:
    from logkernel.testing.simulation.simulate import SimulationFailed

    try:
        history = simulation.run(seed)
    except SimulationFailed as failed:
        if not as_json:
            for line in failed.trace:
                click.echo(line)
        _put_failure(failed, as_json)
        return 1
    if as_json:
        put_json({"seed": seed, "hash": history.trace_hash(), "trace": history.trace})
    else:
        for line in history.trace:
            click.echo(line)
        count, name = len(history.trace), history.trace_hash()
        click.echo(f"seed {seed} keeps every promise: {count} events, hash {name}")
    return 0


def _put_failure(failed: SimulationFailed, as_json: bool) -> None:
    if as_json:
        faults = [str(fault).strip() for fault in failed.faults]
        put_json({"seed": failed.seed, "what": failed.what, "faults": faults, "replay": failed.command})
    else:
        click.echo(str(failed))


def _put_report(report: SimulationReport, as_json: bool) -> None:
    if as_json:
        put_json(
            {
                "histories": report.histories,
                "cpuSeconds": round(report.seconds, 1),
                "rare": dict(report.rare.most_common()),
                "unseen": report.unseen,
            }
        )
        return
    pace = report.histories / report.seconds * 60 if report.seconds else 0
    click.echo(f"{report.histories} histories keep every promise ({pace:,.0f} a minute of CPU)")
    reached = [(name, number) for name, number in report.rare.most_common() if number]
    if reached:
        click.echo("rare states that they reached, how often:")
    for name, number in reached:
        click.echo(f"{number:>10}  {name}")
    for name in report.unseen:
        click.echo(f"never seen: {name}; draw worlds or faults that lead there")
