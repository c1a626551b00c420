"""What becomes of pending records when nobody closes the producer; and how much memory a stalled broker costs."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import logkernel
from logkernel.errors import LogkernelError, PluginError, RequestTimedOut
from logkernel.vocabulary import RecordMetadata


@pytest.fixture
def served() -> Iterator[tuple[logkernel.EmbeddedLog, str]]:
    with logkernel.open() as log:
        log.create_topic("t")
        yield log, log.listen()


def values(log: logkernel.EmbeddedLog) -> list[bytes | None]:
    return [record.value for record in log.read("t")]


PROGRAM = """
import logkernel, sys
{before}
log = logkernel.connect(sys.argv[1])
producer = log.producer(linger_ms=60000, request_timeout_ms=30000)
for number in range(500):
    producer.send("t", b"%d" % number)
{after}
"""


# What an unhandled SIGINT ends with: CPython kills itself by it, but forgets to if any string is evaluated at exit.
INTERRUPTED = (-signal.SIGINT, 1)


def run(address: str, *, before: str = "", after: str = "", expected: tuple[int, ...] = (0,)) -> str:
    text = PROGRAM.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", text, address], capture_output=True, text=True, timeout=300)
    assert done.returncode in expected, done.stderr
    return done.stdout


ALL = [b"%d" % number for number in range(500)]

LISTENING = """
import atexit, sys
atexit.register(sys.stdin.readline)  # registered first, it runs last
import logkernel
log = logkernel.open(sys.argv[1])
log.create_topic("t", flush_messages=1)
producer = log.producer(linger_ms=60000, request_timeout_ms=30000)
address = log.listen()
for number in range(500):
    producer.send("t", b"%d" % number)
print(address, flush=True)
sys.stdin.readline()
"""


def test_a_listening_log_that_nobody_closed_is_stopped_at_exit_behind_its_clients(tmp_path: Path) -> None:
    # A loop that runs on in its daemon thread calls into an interpreter that is gone, and crashes the process.
    folder = str(tmp_path / "log")
    command = [sys.executable, "-c", LISTENING, folder]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            host, _, port = child.stdout.readline().decode().strip().rpartition(":")
            with socket.create_connection((host, int(port)), timeout=120) as connection:
                child.stdin.write(b"go\n")
                child.stdin.flush()
                assert connection.recv(1) == b""  # closed while the process still lives
                assert child.poll() is None
            _, errors = child.communicate(b"end\n", timeout=300)
        finally:
            child.kill()
    said = [line for line in errors.splitlines() if b"checked by crcmod" not in line]
    assert (child.returncode, said) == (0, [])
    with logkernel.open(folder) as log:
        assert values(log) == ALL


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("", (0,)),
        ("sys.exit(3)", (3,)),
        ("raise ValueError", (1,)),
        ("del producer", (0,)),
        ("import os, signal; os.kill(os.getpid(), signal.SIGINT); import time; time.sleep(30)", INTERRUPTED),
    ],
    ids=["end", "exit", "exception", "dropped", "interrupt"],
)
def test_what_is_pending_at_exit_is_sent(
    served: tuple[logkernel.EmbeddedLog, str], after: str, expected: tuple[int, ...]
) -> None:
    run(served[1], after=after, expected=expected)
    assert values(served[0]) == ALL


def test_a_close_that_is_interrupted_is_finished_at_exit(start_broker: Callable[..., Any], tmp_path: Path) -> None:
    """Ctrl-C while the last records wait for a broker that has stopped for a moment."""
    broker = start_broker()
    with logkernel.connect(broker.bootstrap) as log:
        log.create_topic("t")
    text = """
import logkernel, os, signal, sys, threading
pid = int(sys.argv[2])
producer = logkernel.connect(sys.argv[1]).producer(linger_ms=60000, request_timeout_ms=30000)
producer.send("t", b"first")
producer.flush(20)
os.kill(pid, signal.SIGSTOP)
for number in range(500):
    producer.send("t", b"%d" % number)
try:
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    producer.close()
except KeyboardInterrupt:
    print("interrupted", flush=True)
os.kill(pid, signal.SIGCONT)
"""
    try:
        command = [sys.executable, "-c", text, broker.bootstrap, str(broker.pid)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    finally:
        os.kill(broker.pid, signal.SIGCONT)
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr
    with logkernel.connect(broker.bootstrap) as log, log.consumer("t", auto_offset_reset="earliest") as consumer:
        found: list[Any] = []
        while len(found) < 501:
            rows = consumer.poll(20)
            assert rows, f"{len(found)} of 501 records"
            found += rows
    assert [row.value for row in found] == [b"first", *ALL]


def test_an_interrupt_gives_back_memory_that_was_waited_for() -> None:
    """It comes when the memory was granted, and before the record lies in it."""
    with logkernel.open() as log:
        log.create_topic("t")
        with log.producer(buffer_memory=100_000, batch_size=50_000) as producer:
            producer.send("t", b"warm").result(120)
            pool = producer._accumulator.pool
            assert pool.take(pool.free)
            steps: Any = producer._appender.send("t", bytes(1000), None, (), None, None, None)
            next(steps)
            pool.release(100_000)
            assert not pool.waiting, "it was granted"
            with pytest.raises(KeyboardInterrupt):
                steps.throw(KeyboardInterrupt)
            assert pool.free == pool.total


def test_a_record_that_no_batch_can_hold_gives_its_memory_back_once() -> None:
    """It waited for memory, got it, and was refused: its grant was given back twice."""
    with logkernel.open() as log:
        log.create_topic("t")
        with log.producer(buffer_memory=100_000, batch_size=50_000) as producer:
            producer.send("t", b"warm").result(120)
            pool = producer._accumulator.pool
            assert pool.take(pool.free)
            steps: Any = producer._appender.send("t", b"v", None, (), None, 2**63, None)
            next(steps)
            pool.release(100_000)
            with pytest.raises(OverflowError):
                steps.send(True)
            assert producer.metrics()["buffer-available-bytes"] == 100_000


def test_an_embedded_log_sends_what_is_pending_at_exit(tmp_path: Path) -> None:
    text = """
import logkernel, sys
log = logkernel.open(sys.argv[1])
log.create_topic("t")
producer = log.producer(linger_ms=60000)
for number in range(500):
    producer.send("t", b"%d" % number)
"""
    subprocess.run([sys.executable, "-c", text, str(tmp_path)], check=True, timeout=300)
    with logkernel.open(tmp_path) as log:
        assert values(log) == ALL


def test_the_exit_waits_no_longer_than_its_bound() -> None:
    listening = socket.create_server(("127.0.0.1", 0))  # takes connections and never answers
    address = f"127.0.0.1:{listening.getsockname()[1]}"
    text = """
import logkernel, sys
from logkernel.client import shutdown
shutdown.EXIT_FLUSH_S = 0.5
producer = logkernel.connect(sys.argv[1]).producer(max_block_ms=200)
try:
    producer.send("t", b"v")
except logkernel.errors.RequestTimedOut:
    pass
"""
    text = text.replace("import logkernel, sys", "import logkernel, logkernel.errors, sys")
    subprocess.run([sys.executable, "-c", text, address], check=True, timeout=300)
    listening.close()


def test_a_producer_that_is_dropped_sends_what_it_holds(
    served: tuple[logkernel.EmbeddedLog, str], eventually: Any
) -> None:
    with logkernel.connect(served[1]) as remote:
        producer = remote.producer(linger_ms=60_000)
        producer.send("t", b"v")
        kept = [producer]
        del producer
        with pytest.warns(ResourceWarning):
            kept.clear()
        eventually(lambda: values(served[0]) == [b"v"])


def test_a_client_that_cannot_be_made_leaves_no_thread(
    served: tuple[logkernel.EmbeddedLog, str], eventually: Any
) -> None:
    def left() -> list[str]:
        names = ("logkernel-producer", "logkernel-consumer", "logkernel-connect")
        return [thread.name for thread in threading.enumerate() if thread.name in names]

    with logkernel.connect(served[1]) as remote:
        with pytest.raises(PluginError, match="interceptor 'nosuch'"):
            remote.producer(interceptor_classes=["nosuch"])
        with pytest.raises(PluginError, match="metrics reporter 'nosuch'"):
            remote.consumer("t", metric_reporters=["nosuch"])
        eventually(lambda: not left())


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_child_of_a_fork_leaves_the_parents_records_alone(served: tuple[logkernel.EmbeddedLog, str]) -> None:
    after = """
import os
from logkernel.errors import LogkernelError
child = os.fork()
if child == 0:
    try:
        producer.send("t", b"from the child")
    except LogkernelError as error:
        print("refused" if "fork" in str(error) else error, flush=True)
    own = logkernel.connect(sys.argv[1])
    with own.producer() as mine:
        mine.send("t", b"own").result(120)
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
producer.flush(20)
"""
    assert run(served[1], after=after) == "refused\n"
    found = values(served[0])
    assert found[0] == b"own"
    assert found[1:] == ALL


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_client_for_asyncio_knows_a_fork_too(served: tuple[logkernel.EmbeddedLog, str]) -> None:
    program = """
import asyncio, os, sys
import logkernel.aio
from logkernel.errors import LogkernelError

async def main():
    log = logkernel.aio.connect(sys.argv[1])
    producer, consumer = log.producer(), log.consumer("t")
    await producer.send("t", b"the parent's")
    child = os.fork()
    if child == 0:
        for call in (lambda: producer.send("t", b"the child's"), lambda: consumer.poll(1)):
            try:
                await call()
            except LogkernelError as error:
                print("refused" if "fork" in str(error) else error, flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    await producer.close()
    await consumer.close()

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program, served[1]], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "refused\nrefused\n"), done.stderr
    assert values(served[0]) == [b"the parent's"]


@pytest.mark.parametrize("kind", ["tcp", "embedded"])
def test_threads_share_a_producer(served: tuple[logkernel.EmbeddedLog, str], kind: str) -> None:
    log, address = served
    with logkernel.connect(address) as remote:
        producer = (remote if kind == "tcp" else log).producer(batch_size=1000, linger_ms=1)

        def work(number: int) -> None:
            for step in range(200):
                producer.send("t", b"%d:%03d" % (number, step))

        threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        producer.close()
        found = [value or b"" for value in values(log)]
        assert len(found) == 800
        for number in range(4):
            mine = [value for value in found if value.startswith(b"%d:" % number)]
            assert mine == sorted(mine)


def test_close_in_a_callback_and_sends_in_a_callback(
    served: tuple[logkernel.EmbeddedLog, str], eventually: Any
) -> None:
    log, address = served
    for place in (log, logkernel.connect(address)):
        producer = place.producer(linger_ms=0)  # type: ignore[attr-defined]
        told: list[Any] = []

        def again(metadata: Any, error: Any, producer: Any = producer, told: list[Any] = told) -> None:
            told.append(producer.send("t", b"again"))
            producer.close()

        producer.send("t", b"first", on_delivery=again)
        with contextlib.suppress(LogkernelError):
            producer.flush(5)
        eventually(lambda told=told: bool(told) and told[0].done())
        producer.close()


# ---------------------------------------------------------------- a stalled broker


def send_until_it_fails(producer: logkernel.Producer, size: int) -> None:
    for number in range(1_000_000):
        producer.send("t", number.to_bytes(4, "big") * (size // 4))


@pytest.mark.setting("buffer.memory", "max.block.ms")
@pytest.mark.parametrize("size", [100, 1000])
def test_a_stalled_broker_costs_no_more_than_the_pool_and_a_fifth(start_broker: Callable[..., Any], size: int) -> None:
    broker = start_broker()
    memory = 8 << 20
    with logkernel.connect(broker.bootstrap) as log:
        log.create_topic("t", partitions=4)
        producer = log.producer(buffer_memory=memory, max_block_ms=2000)
        assert isinstance(producer.send("t", b"warm").result(120), RecordMetadata)
        os.kill(broker.pid, signal.SIGSTOP)
        try:
            tracemalloc.start()
            before = tracemalloc.get_traced_memory()[0]
            begun_s = time.monotonic()
            with pytest.raises(RequestTimedOut, match=r"buffer\.memory"):
                send_until_it_fails(producer, size)
            assert 2 <= time.monotonic() - begun_s < 300
            peak = tracemalloc.get_traced_memory()[1] - before
            tracemalloc.stop()
        finally:
            os.kill(broker.pid, signal.SIGCONT)
        assert 0.7 * memory < peak < 1.2 * memory, f"{peak / memory:.2f} of buffer.memory"
        producer.flush(60)
        assert producer.metrics()["buffer-available-bytes"] == memory
