"""docs/cluster.md keeps its word: every example runs, and says what the page says; every call is there."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import zookeepers
from outside_tools import missing

from logkernel.cluster.cluster import Cluster

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "cluster.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
CALLS = re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE)


def test_every_example_says_something() -> None:
    assert len(EXAMPLES) == PAGE.count("```python") >= 5


@pytest.mark.parametrize(("code", "said"), EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example(code: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "docs/cluster.md", "exec"), {})
    assert capsys.readouterr().out == said


def test_every_call_of_a_test_author_is_listed() -> None:
    """Those that act on brokers, and those that ask or wait; the rest is what every log has, has a section, or is for
    tools that look into brokers."""
    elsewhere = {"close", "closed", "forked", "run", "create_topic", "delete_topic", "bootstrap_servers", "kernel",
                 "producer", "consumer", "admin", "host", "gate", "running", "broker", "disk", "in_sync",
                 "leading_broker", "is_replicated"}  # fmt: skip
    listed = {name for name in CALLS if hasattr(Cluster, name)}
    assert {name for name in vars(Cluster) if not name.startswith("_")} - elsewhere == listed


def lines_to_paste() -> tuple[str, list[str]]:
    """(the lines of the section on ZooKeeper that run on one machine, what they say in the end)"""
    section = PAGE.partition("\n## Brokers on several machines\n")[2].partition("\nOn machines of their own")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    said = re.findall(r"^```text\n(.*?)^```", section, re.MULTILINE | re.DOTALL)
    return "".join(block for block in blocks if "pip install" not in block), said[0].splitlines()


def complaints(folder: Path) -> str:
    """The end of what the programs in `folder` wrote beside their answers."""
    files = sorted([*folder.glob("*.log"), folder / "stderr"])
    return "\n".join(f"{path.name}: {path.read_text()[-1500:]}" for path in files)


@pytest.mark.long
@pytest.mark.longest
def test_a_cluster_over_zookeeper_by_the_lines_of_the_page(tmp_path: Path) -> None:
    why = zookeepers.absent()
    if why is not None:
        missing(why)
    code, expected = lines_to_paste()
    ports = ("2181", "9092", "9093", "9094")
    for port, free in zip(ports, zookeepers.free_ports(len(ports)), strict=True):
        assert port in code
        code = code.replace(f"127.0.0.1:{port}", f"127.0.0.1:{free}").replace(
            f"clientPort={port}", f"clientPort={free}"
        )
        if port == "9092":
            code = f"export LOGKERNEL_BOOTSTRAP=127.0.0.1:{free}\n{code}"  # the default, on another port
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    with (tmp_path / "stderr").open("wb") as errors:
        shell = subprocess.Popen(
            ["bash", "-c", code], cwd=tmp_path, env={**os.environ, "PATH": path}, start_new_session=True, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
    try:
        said, _ = shell.communicate(timeout=300)
    except subprocess.TimeoutExpired:
        pytest.fail(f"the lines did not end: {complaints(tmp_path)}")
    finally:
        with suppress(ProcessLookupError):
            os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    for line in expected:
        assert line in said.splitlines(), f"{said}\n{complaints(tmp_path)}"
    assert "error: broker 1" not in said
