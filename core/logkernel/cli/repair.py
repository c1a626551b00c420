"""`logkernel repair`: print how a damaged directory would be recovered, then recover it."""

from __future__ import annotations

import os
import time

import click

from logkernel.cli.output import json_option, progress, put_json
from logkernel.cli.parameters import IntRange


@click.command
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option(
    "--node-id", type=IntRange(0), help="The node id of the directory's broker, if meta.properties is missing."
)
@json_option
def repair(directory: str, dry_run: bool, yes: bool, node_id: int | None, as_json: bool) -> int:
    """Recover DIRECTORY as a broker would: truncate damaged logs, rebuild indexes and snapshots, close cleanly.

    Prints the plan and asks before it changes anything. Exit code 1 if you decline.
    """
    from logkernel.inspect.findings import Report
    from logkernel.inspect.folder import check_directory, held, log_bytes
    from logkernel.inspect.repair import carry_out, node_id_of, plan
    from logkernel.kernel import Kernel
    from logkernel.storage.disk import RealDisk

    disk, path = RealDisk(), os.path.abspath(directory)
    with held(disk, path):
        owner = node_id_of(disk, path) if node_id is None else node_id
        with progress("checking", log_bytes(disk, path), quiet=as_json) as advance:
            report = Report(advance)
            checks = check_directory(disk, path, Kernel().codec_for, report)
    steps = plan(checks)
    for finding in report.findings if as_json else ():
        put_json(finding.row())
    for step in steps:
        if as_json:
            put_json({"kind": "step", "partition": str(step.name), "recoverFrom": step.recover_from, "cut": step.cut})
        else:
            click.echo(step.text())
    if not report.findings:
        if not as_json:
            click.echo(f"{path}: nothing to repair")
        return 0
    if not steps and not as_json:
        click.echo(f"{path}: open every log, finish interrupted changes, rewrite checkpoints and snapshots;"
                   " no record is lost")  # fmt: skip
    if dry_run or not (yes or as_json or click.confirm("Repair now?", err=True)):
        return int(not dry_run)
    if as_json and not yes:
        raise click.UsageError("--json cannot ask for confirmation; give --yes or --dry-run")
    for name, damage in carry_out(disk, path, steps, owner, time.time_ns() // 1_000_000):
        if as_json:
            row = {"position": damage.position, "lostBytes": damage.lost_bytes, "reason": damage.reason}
            put_json({"kind": "cut", "partition": name, "path": damage.path, **row})
        else:
            click.echo(f"{name}: cut at byte {damage.position} of {damage.path}, {damage.lost_bytes} bytes gone:"
                       f" {damage.reason}")  # fmt: skip
    if not as_json:
        click.echo(f"{path}: repaired")
    return 0
