"""What a test does where an outside tool is missing."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    """Skip, or fail where LOGKERNEL_REQUIRE_TOOLS says that all tools are there (`.ci/run` does)."""
    if os.environ.get("LOGKERNEL_REQUIRE_TOOLS") == "1":
        pytest.fail(f"{reason}, and LOGKERNEL_REQUIRE_TOOLS=1", pytrace=False)
    pytest.skip(reason)
