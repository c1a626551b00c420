"""Records what Apache Kafka answers to the cases: python tests/golden/settings/record.py > kafka-4.3.1.txt"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "bench"), str(HERE.parents[1])]

from golden.recording import record  # noqa: E402
from golden.settings import interval_cases, settings_cases  # noqa: E402

if __name__ == "__main__":
    record(settings_cases.table, interval_cases.table)
