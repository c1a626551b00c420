"""Loading kio's schemas."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

LOAD = """
import sys
from logkernel.plugins.transport.tcp.messages import schema
schema("fetch", 12, "request", "FetchRequest")
assert not [name for name in sys.modules if name.startswith("hypothesis")], "it was loaded"
import hypothesis.strategies
"""


def test_hypothesis_is_not_loaded_with_the_schemas(tmp_path: Path) -> None:
    pytest.importorskip("hypothesis")
    subprocess.run([sys.executable, "-c", LOAD], cwd=tmp_path, check=True, timeout=60)
