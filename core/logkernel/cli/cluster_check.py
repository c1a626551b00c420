"""`logkernel cluster check`: does every broker say what the cluster has decided, and is all of it served?"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from logkernel.cli.connection import ConnectionOptions, connected, coordinated
from logkernel.cli.output import put_json, put_table
from logkernel.cli.parameters import IntRange

if TYPE_CHECKING:
    from logkernel.cli.cluster_findings import Facts, Finding

MAX_LAG = 10_000
AGAIN_S = 1.0
LOOKS = 3
COLOURS = {"error": "red", "warning": "yellow", "note": "blue"}


@click.command
@coordinated("Compare brokers with ZooKeeper, zookeeper://h1:2181,h2:2181/chroot; without it, with each other.")
@click.option(
    "--max-lag",
    type=IntRange(0),
    default=MAX_LAG,
    show_default=True,
    help="Records that a follower in sync may be behind.",
)
@connected
def check(
    coordination: str | None, config: str | None, max_lag: int, connection: ConnectionOptions, as_json: bool
) -> int:
    """Compare what every broker says with what the cluster has decided, and print what is wrong, with a remedy.

    It compares brokers, controller, topic ids, leaders, epochs, in-sync replicas, log directories, lag, reassignments
    and deletions. It looks again for some seconds at differences that an election can explain, and reports those that
    stay. It changes nothing. Exit code 1 if there are errors or warnings; 0: every replica is in sync, and all brokers
    agree.
    """
    from logkernel.cli import cluster_facts
    from logkernel.cli.cluster_findings import find, lasting

    with cluster_facts.coordination(coordination, config, connection.timeout_s) as session:
        connection = cluster_facts.reaching(connection, session)
        with connection.admins() as (admin, hasty):
            facts = cluster_facts.gather(admin, hasty, session)
            found = find(facts, max_lag)
            for _ in range(LOOKS - 1):
                if not any(row.passing for row in found):
                    break
                time.sleep(AGAIN_S)
                facts = cluster_facts.gather(admin, hasty, session)
                found = lasting(found, find(facts, max_lag))
    return _say(facts, found, as_json)


def _say(facts: Facts, found: list[Finding], as_json: bool) -> int:
    from logkernel.cli.cluster_findings import ERROR, NOTE, WARNING

    measure = facts.measure
    rows = [] if measure is None else [row for topic in measure.topics.values() for row in topic.partitions]
    counts = {severity: sum(row.severity == severity for row in found) for severity in (ERROR, WARNING, NOTE)}
    nodes = sorted({*facts.views, *facts.silent})
    if as_json:
        for finding in found:
            put_json(finding.row())
        put_json(
            {
                "clusterId": measure.cluster_id if measure is not None else "",
                "controller": measure.controller if measure is not None else -1,
                "controllerEpoch": facts.term,
                "brokers": [
                    {"id": node, "epoch": facts.epochs.get(node, -1), "answers": node in facts.views} for node in nodes
                ],
                "partitions": len(rows),
                "errors": counts[ERROR],
                "warnings": counts[WARNING],
                "notes": counts[NOTE],
            }
        )
        return int(counts[ERROR] + counts[WARNING] > 0)
    if measure is not None:
        epoch = "" if facts.term < 0 else f" in epoch {facts.term}"
        name = "none" if measure.controller < 0 else f"broker {measure.controller}"
        click.echo(f"cluster {measure.cluster_id}, controller: {name}{epoch}")
        cells = [
            (
                node, ", ".join(measure.brokers.get(node, ())) or "-", facts.epochs.get(node, "-"),
                "yes" if node in facts.views else "NO", sum(row.leader == node for row in rows),
                sum(node in row.replicas for row in rows), sum(node in row.isr for row in rows),
            )
            for node in nodes
        ]  # fmt: skip
        put_table(("BROKER", "ADDRESS", "EPOCH", "ANSWERS", "LEADS", "REPLICAS", "IN-SYNC"), cells)
    for finding in found:
        click.echo(f"{click.style(finding.severity, fg=COLOURS[finding.severity])}: {finding.about} {finding.what}")
        click.echo(f"    remedy: {finding.remedy}")
    click.echo(f"{len(rows)} partitions: {counts[ERROR]} errors, {counts[WARNING]} warnings, {counts[NOTE]} notes")
    return int(counts[ERROR] + counts[WARNING] > 0)
