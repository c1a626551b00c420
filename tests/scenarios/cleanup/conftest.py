"""A log with a compacted topic; and the scenarios of this folder may import their helpers."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import logkernel

sys.path.insert(0, str(Path(__file__).parent))

from filling import SEGMENT


@pytest.fixture(params=["folder", "memory"])
def opened(request, tmp_path):
    with logkernel.open(tmp_path if request.param == "folder" else None, log_cleaner_enable=False) as log:
        log.create_topic("t", 1, cleanup_policy="compact", segment_bytes=SEGMENT)
        yield log
