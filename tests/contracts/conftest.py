"""Every way to a log as a fixture; and the suites of this folder may import it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from doors import WAYS


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """A way into a log, for `doors.way_into`."""
    return str(request.param)
