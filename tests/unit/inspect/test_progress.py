"""How far a check has come: a bar on a terminal, nothing elsewhere, and it ends at its end."""

from __future__ import annotations

import sys

import pytest

import logkernel
from logkernel.cli import main
from logkernel.inspect.findings import Report
from logkernel.inspect.folder import check_directory, log_bytes
from logkernel.kernel import Kernel
from logkernel.storage.disk import RealDisk
from logkernel.vocabulary import Record


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("progress") / "data"
    with logkernel.open(folder) as log:
        for topic in ("t", "u"):
            log.create_topic(topic, 2, segment_bytes=1 << 20)
            for number in range(20):
                log.append_many(topic, [Record(b"k", bytes(90_000), timestamp_ms=number)], partition=number % 2)
    return folder


@pytest.mark.parametrize("rotten", [False, True])
def test_every_byte_is_counted_once_whatever_is_wrong_with_it(folder, rotten, tmp_path):
    disk, steps = RealDisk(), []
    path = folder / "t-0" / f"{0:020d}.log"
    whole = path.read_bytes()
    try:
        if rotten:
            path.write_bytes(whole[:100_000] + b"\xff" * 20 + whole[100_020:])
        total = log_bytes(disk, str(folder))
        report = Report(lambda done, name: steps.append(done))
        check_directory(disk, str(folder), Kernel().codec_for, report)
    finally:
        path.write_bytes(whole)
    assert (report.errors > 0) == rotten
    assert sum(steps) == total > 3_000_000
    assert len(steps) > 10


def test_a_bar_is_drawn_on_a_terminal_alone(folder, capsys, monkeypatch):
    assert main(["check", str(folder)]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["check", str(folder)]) == 0
    told = capsys.readouterr()
    assert "checking" in told.err
    assert "checking" not in told.out
    assert main(["check", "--json", str(folder)]) == 0
    assert capsys.readouterr().err == ""
