"""Every call of the Java Admin, beside what Apache Kafka 4.3.1 answered to the same calls.

`kafka-4.3.1-admin-steps.txt` is the output of `AdminSteps.java` against a fresh KRaft node with two log directories,
`StandardAuthorizer` and `super.users=User:ANONYMOUS`, recorded by `record_admin_steps.py`.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

pytestmark = pytest.mark.interop

HERE = Path(__file__).resolve().parent
RECORDED = HERE / "kafka-4.3.1-admin-steps.txt"

DELIBERATE = {
    "quorum": "there is no quorum to describe",
    "unregister self": "the one broker can't be taken out of its cluster",
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
def answered(
    apache_kafka: ModuleType, tmp_path_factory: pytest.TempPathFactory, serve_module: Any
) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("admin-steps")
    classes = folder / "classes"
    compile_command = ["javac", "-nowarn", "-cp", f"{apache_kafka.JARS}/*", "-d", str(classes)]
    subprocess.run([*compile_command, str(HERE / "AdminSteps.java")], check=True, capture_output=True)
    first, second = folder / "one", folder / "two"
    broker = serve_module("--set", f"log.dirs={first},{second}", "--set", "node.id=1")
    command = apache_kafka.java("AdminSteps", broker.bootstrap, str(second), "messages", classpath=str(classes))
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    (folder / "out.txt").write_text(done.stdout)
    print(folder / "out.txt")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return steps(done.stdout)


def test_the_same_steps_were_made(answered: dict[str, str]) -> None:
    assert list(answered) == list(EXPECTED)
