"""The example distributions of `docs/plugins`, found by their entry points and at work."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from outside_distribution import lay_out

import logkernel
from logkernel.errors import InvalidRecord

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


SEAMS = (
    "acme-fair-use", "acme-masking", "acme-plugins", "acme-revisions", "acme-shares", "acme-tenants", "acme-weights",
)  # fmt: skip


def install(name: str, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lay_out(EXAMPLES / name, site)
    monkeypatch.syspath_prepend(str(site))


def test_their_own_tests_pass_which_use_the_contract_kits(tmp_path: Path) -> None:
    for name in SEAMS:
        lay_out(EXAMPLES / name, tmp_path)
    folders = [str(EXAMPLES / name / "tests") for name in SEAMS]
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--import-mode=importlib", "-c", os.devnull]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "--rootdir", str(tmp_path), *folders],
        capture_output=True, text=True, timeout=300, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def test_masking_masks_and_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install("acme-masking", tmp_path / "site", monkeypatch)
    with logkernel.open() as log:
        log.create_topic("payments", config={"produce.interceptors": "mask", "acme.mask.fields": "card,iban"})
        for value in (b'{"card": "4111111111111111", "sum": 7}', b'{"sum": 8}', None):
            log.append("payments", value, key=b"k")
        for refused, why in ((b"7", "not a JSON object"), (b"{", "not JSON")):
            with pytest.raises(InvalidRecord, match=why):
                log.append("payments", refused)
        assert [record.value for record in log.read("payments")] == [
            b'{"card": "************1111", "sum": 7}', b'{"sum": 8}', None
        ]  # fmt: skip
