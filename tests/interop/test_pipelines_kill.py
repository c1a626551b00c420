"""`logkernel pipeline run`, killed (kill -9) in the middle of micro-batches and run again until it is done: log →
Parquet, log → log, and log → log in mode update. What is written is there once.

`LOGKERNEL_PIPELINE_KILLS` says how often: the first step is killed first, then the next; three reach all of them.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("pyarrow")
import logkernel
from logkernel.plugins.spark.exactly_once import TOPIC

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from killing import Driver, Progress  # noqa: E402

KILLS = int(os.environ.get("LOGKERNEL_PIPELINE_KILLS", "2"))
STEPS = ("lake", "copy", "counts")
BATCH = 300
RECORDS = BATCH * (3 + KILLS)
PAUSE_S = 0.8
pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800 + 60 * KILLS)]

PIPELINE = f"""\
name: killed
parameters: {{bootstrap: , java: }}
state: state
log: {{bootstrap.servers: "${{bootstrap}}"}}
spark:
  master: local[2,4]
  spark.ui.enabled: "false"
  spark.driver.host: 127.0.0.1
  spark.driver.bindAddress: 127.0.0.1
  spark.driver.extraJavaOptions: "${{java}}"
  spark.sql.shuffle.partitions: "2"
steps:
  lake:
    read:
      topic: events
      maxOffsetsPerTrigger: {BATCH}
      value.format: json
      value.schema: &row "id BIGINT, who STRING"
    write: {{table: lake}}
  copy:
    read: {{topic: events, maxOffsetsPerTrigger: {BATCH}}}
    write: {{topic: copy, partition: "abs(hash(key)) % 2"}}
  counts:
    read: {{topic: events, maxOffsetsPerTrigger: {BATCH}, value.format: json, value.schema: *row}}
    mode: update
    sql: SELECT input.value.who AS key, count(*) AS value FROM input GROUP BY input.value.who
    write: {{topic: counts}}
"""


def events(bootstrap: str) -> list[dict[str, Any]]:
    """Three partitions of records, no two of them the same."""
    rows = [{"id": number, "who": f"w{number % 7}"} for number in range(RECORDS)]
    with logkernel.connect(bootstrap) as log:
        for topic, partitions in (("events", 3), ("copy", 2), ("counts", 2)):
            log.create_topic(topic, partitions)
        with log.producer() as producer:
            for row in rows:
                headers = {"n": b"%d" % row["id"]} if row["id"] % 3 == 0 else {}
                key = row["who"].encode()
                producer.send("events", json.dumps(row).encode(), key, partition=row["id"] % 3, headers=headers)
    return rows


def records(bootstrap: str, topic: str) -> list[Any]:
    """All that a reader of committed records gets, partition by partition."""
    with logkernel.connect(bootstrap) as log:
        columns = ["key", "value", "headers", "partition", "offset"]
        rows: list[Any] = log.table(topic, isolation="read_committed", columns=columns).read_all().to_pylist()
    return rows


def run_over_kills(folder: Path, parameters: Sequence[str], chance: random.Random) -> list[tuple[str, int]]:
    """The steps and micro-batches that were killed."""
    wanted = [STEPS[index * len(STEPS) // max(KILLS, len(STEPS) - 1)] for index in range(KILLS)]
    struck: list[tuple[str, int]] = []
    run = [sys.executable, "-m", "logkernel", "pipeline", "run", str(folder / "pipeline.yaml"), "--json"]
    run += [word for text in parameters for word in ("--set", text)]
    while True:
        log = folder / f"run-{len(struck)}.log"
        driver = Driver(run, log)
        killed, least = False, chance.randrange(3)
        try:
            while driver.running:
                step = wanted[len(struck)] if len(struck) < KILLS else None
                if step is None or not _has_begun(step, log) or not driver.workers():
                    time.sleep(0.05)
                    continue
                progress = Progress(folder / "state" / step)
                if progress.batch < least:
                    time.sleep(0.01)
                    continue
                time.sleep(chance.uniform(0.0, PAUSE_S))
                batch = progress.batch
                if batch >= 0:
                    driver.kill(chance)
                    struck.append((step, batch))
                    killed = True
                    break
        finally:
            driver.kill()
        if not killed:
            assert driver.process.returncode == 0, log.read_text()[-4000:]
            assert len(struck) == KILLS, f"{struck} are too few of {wanted}: more batches are needed"
            return struck


def _has_begun(step: str, log: Path) -> bool:
    """Every step says when it is done."""
    done = {json.loads(line)["step"] for line in log.read_text(errors="replace").splitlines() if line[:1] == "{"}
    return done.issuperset(STEPS[: STEPS.index(step)])


@pytest.mark.longest
def test_a_pipeline_that_is_killed_writes_all_once(start_broker: Any, spark_java: str, tmp_path: Path) -> None:
    bootstrap = start_broker().bootstrap
    rows = events(bootstrap)
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    parameters = [f"bootstrap={bootstrap}", f"java={spark_java}"]
    struck = run_over_kills(tmp_path, parameters, random.Random(int(os.environ.get("LOGKERNEL_SPARK_SEED", "7"))))
    print(f"killed: {struck}; {len(rows)} records")

    original = records(bootstrap, "events")
    assert len(original) == len(rows)

    import pyarrow.parquet as pq

    lake = pq.read_table(tmp_path / "lake").to_pylist()
    assert sorted((row["id"], row["who"], row["_partition"], row["_offset"]) for row in lake) == sorted(
        (row["id"], row["who"], found["partition"], found["offset"])
        for found in original
        for row in [json.loads(found["value"])]
    )

    copied, wanted = (
        Counter((row["key"], row["value"], repr(row["headers"])) for row in found)
        for found in (records(bootstrap, "copy"), original)
    )
    assert copied == wanted

    by_key: dict[bytes, list[int]] = defaultdict(list)
    for row in records(bootstrap, "counts"):
        by_key[row["key"]].append(int(row["value"]))
    assert {key: found[-1] for key, found in by_key.items()} == Counter(row["who"].encode() for row in rows)
    assert all(found == sorted(set(found)) for found in by_key.values()), "no update is there twice"
    journal = {row["key"].rpartition(b"/")[0] or row["key"] for row in records(bootstrap, TOPIC)}
    assert len(journal) == 2, "names in the journal: the copy's, and one for all updates"
