"""Every fault that a cleaner may meet: rot, a disk that is full or fails, an end in the middle."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import pytest
from filling import NAME, SEGMENT, fill, state, wait

import logkernel
from logkernel.broker import cleaner
from logkernel.errors import CorruptMessage
from logkernel.storage.disk import RealDisk, RealFile


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 0x40
    path.write_bytes(data)


def test_bit_rot_is_named_and_the_rest_is_served(tmp_path, caplog):
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        fill(log)
        rotten = tmp_path / "t-0" / f"{0:020d}.log"
        flip(rotten, 20_150)
        with pytest.raises(CorruptMessage) as caught:
            log.compact("t")
        assert str(rotten) in str(caught.value)
        assert "byte 20" in str(caught.value)
        assert "CRC" in str(caught.value)
        assert NAME in log.broker.cleaner.uncleanable
        assert "it is served on" in caplog.text
        assert len([*log.read("t", offset=2)]) == 148
        log.append("t", b"lives on", key=b"k")
        assert not [*(tmp_path / "t-0").glob("*.cleaned")]
        flip(rotten, 20_150)  # mended
        assert log.compact("t")
        assert NAME not in log.broker.cleaner.uncleanable


def fail_appends(monkeypatch, number: int) -> None:
    """Appends to files that a rewrite makes fail."""
    plain = RealDisk.open

    class Failing(RealFile):
        def append(self, data):
            raise OSError(number, "told to")

    def opened(self, path, *, create=False, write=True):
        file = plain(self, path, create=create, write=write)
        if path.endswith(".cleaned"):
            made = Failing(file.fileno(), file.size)
            file._fd = -1
            return made
        return file

    monkeypatch.setattr(RealDisk, "open", opened)


@pytest.mark.parametrize(("number", "tried_again"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_a_disk_that_is_full_or_failing_drops_the_rewrite(tmp_path, monkeypatch, caplog, number, tried_again):
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        fill(log)
        wanted = state(log)
        with monkeypatch.context() as patch:
            fail_appends(patch, number)
            with pytest.raises(OSError, match="told to"):
                log.compact("t")
        assert (NAME in log.broker.cleaner.uncleanable) is not tried_again
        assert ("the disk is full" in caplog.text) is tried_again
        assert state(log) == wanted
        assert not [*(tmp_path / "t-0").glob("*.cleaned"), *(tmp_path / "t-0").glob("*.swap")]
        log.append("t", b"lives on", key=b"k")
        assert log.compact("t")


def test_an_error_while_swapping_takes_the_directory_offline(tmp_path, monkeypatch):
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        fill(log)
        wanted = state(log)
        plain = RealDisk.rename

        def rename(self, old, new):
            if new.endswith(".log.swap"):
                raise OSError(errno.EIO, "told to")
            plain(self, old, new)

        with monkeypatch.context() as patch:
            patch.setattr(RealDisk, "rename", rename)
            with pytest.raises(logkernel.errors.KafkaStorageError):
                log.compact("t")
        with pytest.raises(logkernel.errors.KafkaStorageError):
            log.append("t", b"v", key=b"k")
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        assert state(log) == wanted
        assert log.compact("t")
        assert state(log) == wanted


def test_closing_in_the_middle_loses_nothing(tmp_path):
    """A slow rewrite is cut short by `close`; no leftovers stay, and all is there."""
    options = {"log_cleaner_backoff_ms": 1, "log_cleaner_io_max_bytes_per_second": 1e5}
    with logkernel.open(tmp_path, **options) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        fill(log, rounds=6)
        wanted = state(log)
        wait(log, lambda: log.broker.replicas.get(NAME).log.rewriting is not None, "nothing begins")
        begun = time.monotonic()
    assert time.monotonic() - begun < 60, "close waits for the throttle"
    assert not [*(tmp_path / "t-0").glob("*.cleaned"), *(tmp_path / "t-0").glob("*.swap")]
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        assert state(log) == wanted


@pytest.mark.parametrize(("number", "tried_again"), [(errno.ENOSPC, True), (errno.EIO, False)])
def test_the_clock_leaves_alone_what_failed_for_a_while_or_until_somebody_asks(
    tmp_path, monkeypatch, number, tried_again
):
    with logkernel.open(tmp_path, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        fill(log)
        broker = log.broker
        replica, now_ms = broker.replicas.get(NAME), broker.runtime.clock.mono_ms()
        broker.runtime.clock.mono_ms = lambda: now_ms
        with monkeypatch.context() as patch:
            fail_appends(patch, number)
            with pytest.raises(OSError, match="told to"):
                log.compact("t")
        for passed_ms, begins in ((0, False), (cleaner.PAUSE_MS - 1, False), (1, tried_again)):
            now_ms += passed_ms
            broker.cleaner.start_dirtiest()
            assert (broker.cleaner.job_of(replica) is not None) is begins
        wait(log, lambda: not broker.cleaner.under_way, "the rewrite does not end")
        assert (replica.log.clean_offset is not None) is tried_again
