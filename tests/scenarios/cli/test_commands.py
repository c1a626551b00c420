"""Commands as such: help, completion, folders, usage, interrupts, pipes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from shells import Shell

import logkernel


def test_a_folder_is_opened_in_this_process(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(tmp_path / "data")
    shell = Shell(None, "", capfdbinary, monkeypatch)  # type: ignore[arg-type]
    monkeypatch.setenv("LOGKERNEL_BOOTSTRAP", "127.0.0.1:1")
    shell(f"topic list --data {data}", 2)
    assert not os.path.exists(data)
    shell(f"topic create a --data {data}")
    shell(f"produce a --data {data}", stdin=b"one\ntwo\n")
    assert shell(f"consume a -e --data {data}") == "one\ntwo\n"
    assert shell(f"consume a -g g -e --data {data}") == "one\ntwo\n"
    assert shell.table(f"group describe g --data {data}")[0][3] == "2"
    assert shell.table(f"cluster log-dirs --data {data}")[0][1] == data
    with logkernel.open(data):
        shell(f"topic list --data {data}", 2)
        assert "--bootstrap" in shell.error


def test_a_folder_of_another_node_is_opened_as_that_node(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(tmp_path / "data")
    with logkernel.open(data, node_id=7) as log:
        log.create_topic("a")
    shell = Shell(None, "", capfdbinary, monkeypatch)  # type: ignore[arg-type]
    assert shell.rows(f"topic describe a --data {data}")[0]["partitions"][0]["leader"] == 7


def test_nobody_there_is_said_at_once(shell: Shell) -> None:
    shell("topic list -b 127.0.0.1:1", 1)
    assert "no broker answers at 127.0.0.1:1" in shell.error
    assert "Traceback" not in shell.error


@pytest.mark.parametrize(
    "line",
    [
        "topic",
        "topic lisp",
        "topic create",
        "topic create a -c nothing",
        "topic alter a",
        "topic trim a --before now",
        "topic list --data /nowhere",
        "topic list --data . -b h:1",
        "consume",
        "consume a -o soon -e",
        "consume a -g g -p 1",
        "consume a -g g -o 7",
        "consume a -f %z",
        "produce a -k = -f %v",
        "produce a -D ␣",
        "produce a -z fast",
        "produce a -X speed=1",
        "group describe g --members --state",
        "group reset-offsets g --all-topics",
        "group reset-offsets g --to-latest",
        "group reset-offsets g --to-latest --to-earliest --all-topics --shift-by 1",
        "group reset-offsets g --to-latest --to-earliest --all-topics",
        "topic list --timeout -1",
        "group remove-members g",
        "config get table a b",
        "config set topic a b",
        "config set topic a b=c --append --subtract",
        "offsets a:x",
        "cluster features --set group.version=high",
        "cluster reassignments --set a-0=x",
        "completion tcsh",
    ],
)
def test_bad_usage_ends_with_2(shell: Shell, line: str) -> None:
    if line.startswith(("topic alter", "offsets", "consume a -o")):
        shell.log.create_topic("a")
    if "-D" in line:
        line = "produce a --delimiter="
    shell(line, 2)
    assert shell.error
    assert "Traceback" not in shell.error


@pytest.mark.parametrize("name", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed_for_each_shell(shell: Shell, name: str) -> None:
    assert "_LOGKERNEL_COMPLETE" in shell(f"completion {name}")


def test_completion_knows_commands() -> None:
    environment = {
        **os.environ,
        "_LOGKERNEL_COMPLETE": "bash_complete",
        "COMP_WORDS": "logkernel group re",
        "COMP_CWORD": "2",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from logkernel.cli import main; main([])"],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["plain,reset-offsets", "plain,remove-members"]


def test_help_imports_no_client() -> None:
    code = (
        "import sys; from logkernel.cli import main; main(['--help']); main(['topic', '--help']);"
        "assert not [name for name in sys.modules if name.startswith(('logkernel.client', 'rich', 'asyncio', 'kio'))]"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
