"""Records what Apache Kafka answers to `large_cases.py`: python record_large.py > kafka-4.3.1-large.txt"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parents[2] / "bench"), str(HERE.parents[1])]

from golden.groups.large_cases import table  # noqa: E402
from golden.recording import record  # noqa: E402

if __name__ == "__main__":
    record(table)
