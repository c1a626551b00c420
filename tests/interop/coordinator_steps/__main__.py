"""Asks the broker whose address is given, and prints what it answers."""

from __future__ import annotations

import sys

from coordinator_steps import run

run(sys.argv[1], lambda line: print(line, flush=True))
