"""Every call of the Java Admin, beside what Apache Kafka 4.3.1 answered to the same calls.

`kafka-4.3.1-admin-steps.txt` is the output of `AdminSteps.java` against a fresh KRaft node with two log directories,
`StandardAuthorizer` and `super.users=User:ANONYMOUS`, recorded by `record_admin_steps.py`.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.interop

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "kafka-4.3.1-admin-steps.txt"

DELIBERATE = {
    "quorum": "there is no quorum to describe",
    "unregister self": "the one broker can't be taken out of its cluster",
    "broker config": "node.id has a default here, and broker.id beside it",
    "default now": "KRaft keeps min.insync.replicas as a cluster default of its own",
    "default after": "KRaft keeps min.insync.replicas as a cluster default of its own",
    "group config": "streams.assignor.name is a setting of ours",
}
"""Steps that are answered otherwise here, and why."""


def steps(text: str) -> dict[str, str]:
    """Step → what was said; a step that comes again gets a number."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, _, said = line.partition("\t")
        number = 2
        unique = name
        while unique in found:
            unique = f"{name} {number}"
            number += 1
        found[unique] = said
    return found


EXPECTED = steps(RECORDED.read_text())


@pytest.fixture(scope="module")
def answered(apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("admin-steps")
    classes = folder / "classes"
    compile_command = ["javac", "-nowarn", "-cp", f"{apache_kafka.JARS}/*", "-d", str(classes)]
    subprocess.run([*compile_command, str(HERE / "AdminSteps.java")], check=True, capture_output=True)
    first, second = folder / "one", folder / "two"
    serve = [sys.executable, "-m", "logkernel", "serve", "--listen", "127.0.0.1:0"]
    command = [*serve, "--set", f"log.dirs={first},{second}"]
    with (folder / "stderr.log").open("w") as errors:
        serving = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True)
    try:
        assert serving.stdout is not None
        bootstrap = serving.stdout.readline().removeprefix("logkernel listening on ").split()[0]
        steps_command = apache_kafka.java("AdminSteps", bootstrap, str(second), classpath=str(classes))
        done = subprocess.run(steps_command, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        yield steps(done.stdout)
    finally:
        serving.terminate()
        serving.wait(300)


def test_the_same_steps_were_made(answered: dict[str, str]) -> None:
    assert list(answered) == list(EXPECTED)


@pytest.mark.parametrize("step", EXPECTED)
def test_a_step_is_answered_as_kafka_answers(answered: dict[str, str], step: str) -> None:
    if step in DELIBERATE:
        assert answered[step] != EXPECTED[step], f"{step} is as in Kafka now: take it off the list"
    else:
        assert answered[step] == EXPECTED[step]
