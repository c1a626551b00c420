"""`logkernel serve` that is refused: the option is named, and no folder is left behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--listen 9092", "logkernel: --listen: listeners=9092: '9092' is not an address"),
        ("--coordination bogus://x", "logkernel: --coordination bogus://x: bogus.connect=x: no setting of Kafka"),
        ("--as-version 1.0", "logkernel: --as-version: logkernel.as.version=1.0: String must be one of: 2.8, 3.0,"),
        ("--listen nohost.invalid:9092", "logkernel: cannot listen on nohost.invalid:9092: "),
        ("--listen nohost.invalid:9092 --brokers 2", "logkernel: cannot listen on nohost.invalid:9092: "),
    ],
)
def test_an_option_is_named_and_no_folder_is_left_behind(words: str, said: str, tmp_path: Path) -> None:
    """`--set` was named, and ./data was there after a failed start."""
    command = [sys.executable, "-m", "logkernel", "serve", *words.split()]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(said), done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
