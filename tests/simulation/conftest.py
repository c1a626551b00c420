"""Lets the simulations of a folder import what they share."""

from __future__ import annotations

import sys
from pathlib import Path

for folder in ("storage", "cluster", "world"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
