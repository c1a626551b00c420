"""`logkernel check`: verify that the files of a data directory are whole and agree with each other."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import TYPE_CHECKING

import click

from logkernel.cli.output import json_option, progress, put_json

if TYPE_CHECKING:
    from logkernel.inspect.findings import Report


@click.command
@click.argument("directories", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False))
@click.option(
    "--in-use", is_flag=True, help="Check even if a broker is running; in-flight writes may be reported as damage."
)
@json_option
def check(directories: tuple[str, ...], in_use: bool, as_json: bool) -> int:
    """Verify data directories: every checksum, record, index entry, offset, epoch, snapshot and checkpoint.

    Changes nothing. Exit code 0: no damage (warnings are normal after a crash; opening the directory repairs them).
    1: errors were found. 2: a broker uses the directory.
    """
    from logkernel.inspect.findings import Report
    from logkernel.inspect.folder import check_directory, held, log_bytes
    from logkernel.kernel import Kernel
    from logkernel.storage.disk import RealDisk

    disk, kernel, bad = RealDisk(), Kernel(), False
    for path in (os.path.abspath(path) for path in directories):
        with nullcontext() if in_use else held(disk, path):
            total = log_bytes(disk, path)
            with progress("checking", total, quiet=as_json) as advance:
                report = Report(advance)
                check_directory(disk, path, kernel.codec_for, report)
        _say(path, report, as_json)
        bad = bad or report.errors > 0
    return int(bad)


def _say(path: str, report: Report, as_json: bool) -> None:
    summary = report.summary()
    if as_json:
        for finding in report.findings:
            put_json(finding.row())
        put_json({**summary, "directory": path})
        return
    for finding in report.findings:
        place = "" if finding.position is None else f", byte {finding.position}"
        colour = "red" if finding.severity == "error" else "yellow"
        click.echo(f"{click.style(finding.severity, fg=colour)}: {finding.path}{place}")
        click.echo(f"    {finding.what}\n    remedy: {finding.remedy}")
    counts = ", ".join(f"{summary[name]} {name}" for name in ("partitions", "segments", "batches", "records", "bytes"))
    click.echo(f"{path}: {counts}; {summary['errors']} errors, {summary['warnings']} warnings")
