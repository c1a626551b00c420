"""`logkernel repair`: recovery of a damaged directory, said first, then done."""

from __future__ import annotations

import os
import time

import click

from logkernel.cli.output import json_option, progress, put_json


@click.command
@click.argument("directory", type=click.Path(exists=True, file_okay=False))
@click.option("--dry-run", is_flag=True, help="Say what would be done, and do nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--node-id", type=click.IntRange(0), help="Whose directory it is, where meta.properties does not say.")
@json_option
def repair(directory: str, dry_run: bool, yes: bool, node_id: int | None, as_json: bool) -> int:
    """Do to DIRECTORY what a broker's recovery would: cut what is rotten, make anew what is derived, close cleanly.

    Says first what it will do, and asks. Exit code 1 where it was not done.
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
        click.echo(f"{path}: open every log, finish what was begun, write checkpoints and snapshots anew;"
                   " no record is lost")  # fmt: skip
    if dry_run or not (yes or as_json or click.confirm("Do this?", err=True)):
        return int(not dry_run)
    if as_json and not yes:
        raise click.UsageError("with --json nobody is asked: say --yes or --dry-run")
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
