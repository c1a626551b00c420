"""Repair through the command line, on real folders: said first, nothing done unasked, then what recovery would do."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import logkernel
from logkernel.cli import main
from logkernel.vocabulary import Record


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    folder = tmp_path_factory.mktemp("original") / "data"
    with logkernel.open(folder) as log:
        log.create_topic("t", segment_bytes=1 << 20)
        for number in range(60):
            log.append_many("t", [Record(b"k", b"%2d" % number * 25_000, timestamp_ms=1000 + number)])
    return folder


@pytest.fixture
def folder(original, tmp_path):
    shutil.copytree(original, tmp_path / "data")
    return tmp_path / "data"


def run(capsys, *arguments) -> tuple[int, str]:
    code = main(list(map(str, arguments)))
    return code, capsys.readouterr().out


def values(folder: Path) -> list[int]:
    with logkernel.open(folder) as log:
        return [record.offset for record in log.read("t")]


def test_a_whole_directory_is_checked_and_left_alone(folder, capsys):
    before = tree(folder)
    code, out = run(capsys, "check", folder)
    assert (code, out.splitlines()[-1].split("; ")[1]) == (0, "0 errors, 0 warnings")
    assert run(capsys, "repair", folder) == (0, f"{folder}: nothing to repair\n")
    assert tree(folder) == before


def rot(folder: Path, name: str, at: int) -> Path:
    path = folder / "t-0" / name
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
    return path


def test_a_rotten_record_is_named_and_cut_only_when_told(folder, capsys):
    segments = sorted(path.name for path in (folder / "t-0").glob("*.log"))
    assert len(segments) > 2
    path = rot(folder, segments[1], 100)
    before = tree(folder)
    code, out = run(capsys, "check", "--json", folder)
    finding, summary = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert (finding["path"], finding["position"], finding["severity"]) == (str(path), 0, "error")
    assert "CRC" in finding["what"]
    assert summary["errors"] == 1
    code, out = run(capsys, "repair", "--dry-run", folder)
    assert code == 0
    assert f"TRUNCATE the log at byte 0 of {path}" in out
    assert tree(folder) == before
    code, out = run(capsys, "repair", "--yes", folder)
    assert code == 0
    assert "repaired" in out
    base = int(segments[1][:20])
    assert run(capsys, "check", folder)[0] == 0
    assert values(folder) == list(range(base))


def test_a_lying_index_costs_no_record(folder, capsys):
    name = sorted((folder / "t-0").glob("*.index"))[0].name
    rot(folder, name, 6)
    assert run(capsys, "check", folder)[0] == 1
    code, out = run(capsys, "repair", "--yes", folder)
    assert code == 0
    assert "no record is lost" in out
    assert run(capsys, "check", folder)[0] == 0
    assert values(folder) == list(range(60))


def test_lying_epochs_are_made_anew(folder, capsys):
    path = folder / "t-0" / "leader-epoch-checkpoint"
    was = path.read_text()
    path.write_text("0\n1\n9 0\n")
    assert run(capsys, "check", folder)[0] == 1
    assert run(capsys, "repair", "--yes", folder)[0] == 0
    assert run(capsys, "check", folder)[0] == 0
    assert path.read_text() == was


def test_a_directory_in_use_is_refused(folder, capsys):
    with logkernel.open(folder):
        for command in (["check"], ["repair", "--yes"]):
            assert main([*command, str(folder)]) == 2
            assert "is in use" in capsys.readouterr().err
        assert main(["check", "--in-use", str(folder)]) in (0, 1)


def test_a_directory_that_says_no_owner(folder, capsys):
    (folder / "meta.properties").unlink()
    assert main(["repair", "--yes", str(folder)]) == 2
    assert "--node-id" in capsys.readouterr().err
    assert main(["repair", "--yes", "--node-id", "1", str(folder)]) == 0
    assert values(folder) == list(range(60))


def test_behind_a_cut_nothing_counts_as_compacted(tmp_path, capsys):
    """The cleaner's checkpoint stayed above the end: what came next was never compacted with what had been there."""
    folder = tmp_path / "data"
    with logkernel.open(folder, log_cleaner_enable=False) as log:
        log.create_topic("t", cleanup_policy="compact", segment_bytes=1 << 20)
        for number in range(60):
            log.append_many("t", [Record(b"k%d" % number, bytes(1000), timestamp_ms=1000 + number)])
        log.compact("t")
    rot(folder, f"{0:020d}.log", 40_000)
    assert run(capsys, "repair", folder, "--yes")[0] == 0
    assert run(capsys, "check", folder)[0] == 0
    with logkernel.open(folder, log_cleaner_enable=False) as log:
        end = log.end_offset("t")
        assert 0 < end < 60
        for _ in range(100):
            log.append("t", b"new", key=b"k0")
        log.compact("t")
        assert [record.offset for record in log.read("t")] == [*range(1, end), end + 99]


def test_no_rotten_checkpoint_or_snapshot_is_left(tmp_path, capsys):
    folder = tmp_path / "data"
    with logkernel.open(folder, log_cleaner_enable=False) as log, log.producer(enable_idempotence=True) as producer:
        log.create_topic("t", cleanup_policy="compact", segment_bytes=1 << 20)
        for _ in range(2):
            producer.send("t", key=b"k", value=bytes(1000)).result()
            log.compact("t")
    (last,) = folder.glob(f"t-0/{2:020d}.snapshot")
    rot(folder, last.name, 10)
    (folder / "cleaner-offset-checkpoint").write_text("0\n9\n")
    code, out = run(capsys, "check", folder)
    assert (code, out.splitlines()[-1].split("; ")[1]) == (1, "1 errors, 1 warnings")
    assert run(capsys, "repair", folder, "--yes")[0] == 0
    code, out = run(capsys, "check", folder)
    assert (code, out.splitlines()[-1].split("; ")[1]) == (0, "0 errors, 0 warnings")
    with logkernel.open(folder) as log:
        assert [record.offset for record in log.read("t")] == [1]
