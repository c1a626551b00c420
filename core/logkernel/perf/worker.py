"""`python -m logkernel.perf.worker`: one producer or consumer in a process of its own, as a sweep needs several.

A line of JSON on stdin is the job. The worker connects and prints "ready"; a second line starts it. It prints a line of
JSON with the result, with times of the machine's monotonic clock, so that results of several workers can be merged.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import logkernel
from logkernel.perf.consume import size_of
from logkernel.perf.target import payloads

QUIET_S = 60.0


def _start() -> float:
    print("ready", flush=True)
    sys.stdin.readline()
    return time.monotonic()


def produce(log: Any, job: dict[str, Any]) -> dict[str, Any]:
    values, topic = payloads(job["size"]), job["topic"]
    with log.producer(**job["settings"]) as producer:
        producer.partitions_for(topic)
        send, count = producer.send, len(values)
        begun_s = _start()
        last = None
        for number in range(job["records"]):
            last = send(topic, values[number % count])
        producer.flush()
        ended_s = time.monotonic()
        failed = producer.metrics()["record-error-total"]
        if failed or last is None:
            raise SystemExit(f"{failed:g} records failed" + (f": {last.exception()!r}" if last is not None else ""))
    return {"begun_s": begun_s, "ended_s": ended_s, "records": job["records"], "bytes": job["records"] * job["size"]}


def consume(log: Any, job: dict[str, Any]) -> dict[str, Any]:
    """Read `records` records of `partitions` of a topic."""
    with log.consumer(auto_offset_reset="earliest", **job["settings"]) as consumer:
        names = [(job["topic"], index) for index in job["partitions"]]
        consumer.partitions_for(job["topic"])
        begun_s = _start()
        consumer.assign(names)
        records = size = 0
        heard_s = begun_s
        while records < job["records"]:
            rows = consumer.poll(0.5)
            if rows:
                records += len(rows)
                size += size_of(rows)
                heard_s = time.monotonic()
            elif time.monotonic() - heard_s > QUIET_S:
                raise SystemExit(f"only {records} of {job['records']} records came")
        return {"begun_s": begun_s, "ended_s": time.monotonic(), "records": records, "bytes": size}


def main() -> None:
    job = json.loads(sys.stdin.readline())
    with logkernel.connect(job["bootstrap"], **job["connect"]) as log:
        print(json.dumps({"produce": produce, "consume": consume}[job["kind"]](log, job)), flush=True)


if __name__ == "__main__":
    main()
