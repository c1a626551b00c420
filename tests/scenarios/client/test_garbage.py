"""Consumers that nobody closed, dropped in the midst of a batch, with the garbage collector at work all the time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import faulthandler, gc, random, sys, threading

faulthandler.enable()
import logkernel

way, folder, seed = sys.argv[1], sys.argv[2], int(sys.argv[3])
SIZES = (0, 1, 100, 5000)
COUNT = 1200


def fill(log):
    log.create_topic("t", partitions=2)
    with log.producer(batch_size=40_000, linger_ms=50) as producer:
        for number in range(COUNT):
            headers = {"h": b"x" * (number % 3)} if number % 5 == 0 else {}
            producer.send("t", bytes(SIZES[number % 4]), key=b"%d" % number, headers=headers, partition=number % 2)


class Stop(Exception):
    pass


def refuse(data):
    raise Stop


def drop(log, random, kept):
    # A consumer somewhere in a batch, left in a cycle, closed, or in the traceback of an error.
    settings = {"auto_offset_reset": "earliest"}
    how = random.randrange(5)
    if how == 4:
        settings["value_deserializer"] = refuse
    consumer = log.consumer("t", **settings)
    rows = []
    try:
        for _ in range(random.randrange(1, 6)):
            if random.randrange(4) == 0:
                rows.append(consumer.poll_arrow(20, columns=("offset", "value"), max_rows=random.choice((1, 50, 5000))))
            else:
                rows += consumer.poll(20, random.choice((1, 3, 70, 200)))
            if how == 3:
                raise Stop
    except Stop as error:
        kept.append((error, rows))
        return
    if how == 0:
        consumer.close()
    elif how == 1:
        rows.append(rows)
        rows.append(consumer)
    else:
        consumer.itself = (consumer, rows)


def work(log, seed):
    rng = random.Random(seed)
    kept = []
    for turn in range(TURNS):
        drop(log, rng, kept)
        if turn % 3 == 0:
            kept.clear()
            gc.collect()


TURNS = 12
if way == "embedded":
    log = logkernel.open(folder)
    fill(log)
else:
    served = logkernel.open(folder)
    fill(served)
    log = logkernel.connect(served.listen())
gc.set_threshold(7, 2, 2)
failed = []


def guarded(seed):
    try:
        work(log, seed)
    except BaseException as error:
        failed.append(error)
        raise


threads = [threading.Thread(target=guarded, args=(seed + index,)) for index in range(3)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
gc.set_threshold(700, 10, 10)
gc.collect()
assert not failed, failed
log.close()
print("alive", flush=True)
"""


@pytest.mark.parametrize("way", ["embedded", "tcp"])
def test_consumers_are_dropped_in_the_midst_of_batches(way: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, way, str(tmp_path / "log"), "7"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr[-4000:]
