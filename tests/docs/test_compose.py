"""examples/compose: what its files say is what the command line and the settings take; the brokers run as they say.

The containers themselves are not run: that needs a Docker daemon."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
import zookeepers

from logkernel.cli import main
from logkernel.cli.app import app

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "compose"
COMPOSE: dict[str, Any] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
BROKERS = {name: service for name, service in SERVICES.items() if name.startswith("broker-")}
LOGKERNEL = [sys.executable, "-m", "logkernel"]
ADDRESS = re.compile(r"([A-Z]+)://([^:,]+):(\d+)")


def setting(command: list[str], name: str) -> str:
    (found,) = (word.removeprefix(f"--set={name}=") for word in command if word.startswith(f"--set={name}="))
    return found


def test_there_are_three_brokers_with_ids_and_volumes_of_their_own() -> None:
    assert list(BROKERS) == ["broker-1", "broker-2", "broker-3"]
    mounted = [volume.split(":")[0] for service in SERVICES.values() for volume in service["volumes"]]
    named = [volume for volume in mounted if not volume.startswith(".")]
    assert sorted(named) == sorted(COMPOSE["volumes"])
    assert all((FOLDER / path).exists() for path in mounted if path.startswith("."))
    for name, service in BROKERS.items():
        assert f"--node-id={name.removeprefix('broker-')}" in service["command"]
        assert f"{name}:/data" in service["volumes"]
        assert "--data=/data" in service["command"]
        assert SERVICES.keys() >= service["depends_on"].keys()


def test_clients_find_the_ports_that_are_published() -> None:
    (listeners,) = re.findall(r"listeners: (.+)", (FOLDER / "broker.yaml").read_text(encoding="utf-8"))
    inside = {name: port for name, _, port in ADDRESS.findall(listeners)}
    for name, service in BROKERS.items():
        advertised = ADDRESS.findall(setting(service["command"], "advertised.listeners"))
        told = {each: (host, port) for each, host, port in advertised}
        (published,) = service["ports"]
        host, outer, inner = published.split(":")
        assert inner == inside["HOST"]
        assert told == {"BROKERS": (name, inside["BROKERS"]), "INSIDE": (name, inside["INSIDE"]), "HOST": (host, outer)}


@pytest.mark.parametrize("name", BROKERS)
def test_the_command_line_takes_the_commands(name: str, tmp_path: Path) -> None:
    """Up to the ZooKeeper, which is not there."""
    kept = {"/etc/logkernel.yaml": str(FOLDER / "broker.yaml"), "/data": str(tmp_path)}
    words = [re.sub("|".join(kept), lambda found: kept[found[0]], word) for word in BROKERS[name]["command"]]
    nowhere = ["--set=zookeeper.connect=127.0.0.1:1/logkernel", "--set=zookeeper.connection.timeout.ms=1"]
    done = subprocess.run([*LOGKERNEL, *words, *nowhere], capture_output=True, text=True, timeout=300)
    assert "ZooKeeper at 127.0.0.1:1 gave no session" in done.stderr
    assert "level=warning" not in done.stderr, "a setting has no effect"


def test_the_health_check_is_a_command() -> None:
    for service in BROKERS.values():
        kind, program, name, *words = service["healthcheck"]["test"]
        assert (kind, program) == ("CMD", "logkernel")
        found = app.get_command(click.Context(app), name)
        assert found is not None
        with found.make_context(name, words):
            pass


def test_the_image_serves_by_itself() -> None:
    text = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    assert re.findall(r"^ENTRYPOINT (.+)", text, re.MULTILINE) == ['["logkernel"]']
    (command,) = re.findall(r"^CMD (.+)", text, re.MULTILINE)
    assert yaml.safe_load(command) == ["serve", "--data", "/data", "--listen", "0.0.0.0:9092"]


class Containers:
    """The brokers' commands on this machine: names and addresses are those of 127.0.0.1."""

    def __init__(self, folder: Path, zookeeper: str, stack: ExitStack) -> None:
        self.folder = folder
        ports = iter(zookeepers.free_ports(9))
        self.ports = {(name, kind): next(ports) for name in BROKERS for kind in ("BROKERS", "INSIDE", "HOST")}
        self.programs = {name: self.start(name, zookeeper, stack) for name in BROKERS}

    def data(self, name: str) -> Path:
        return self.folder / name / "data"

    def start(self, name: str, zookeeper: str, stack: ExitStack) -> subprocess.Popen[str]:
        here = self.data(name).parent
        here.mkdir()

        def moved(text: str) -> str:
            return ADDRESS.sub(lambda found: f"{found[1]}://127.0.0.1:{self.ports[name, found[1]]}", text)

        text = (FOLDER / "broker.yaml").read_text(encoding="utf-8").replace("zookeeper:2181", zookeeper)
        (here / "broker.yaml").write_text(moved(text))
        words = [
            moved(word).replace("/etc/logkernel.yaml", str(here / "broker.yaml")).replace("/data", str(self.data(name)))
            for word in BROKERS[name]["command"]
        ]
        with (here / "log").open("wb") as log:
            program = subprocess.Popen([*LOGKERNEL, *words], stdout=subprocess.PIPE, stderr=log, text=True)
        stack.callback(program.wait)
        stack.callback(program.terminate)
        assert program.stdout is not None
        return program


@pytest.mark.long
def test_the_brokers_run_as_their_commands_say(
    tmp_path: Path, patient_zookeeper: zookeepers.ZooKeeper, eventually: Callable[..., None],
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    with ExitStack() as stack:
        made = Containers(tmp_path, patient_zookeeper.address, stack)
        for name, program in made.programs.items():
            assert program.stdout is not None
            assert program.stdout.readline().startswith("logkernel listening on "), name
            assert main(["status", "--data", str(made.data(name))]) == 0
        host = ",".join(f"127.0.0.1:{made.ports[name, 'HOST']}" for name in BROKERS)
        created = ["topic", "create", "orders", "-p", "3", "-b", host]
        eventually(lambda: main(created) == 0, 180, "a topic with three replicas")
        eventually(lambda: main(["cluster", "check", "-b", host]) == 0, 180, "all agree")
        config = str(made.data("broker-1").parent / "broker.yaml")
        assert main(["cluster", "check", "--config", config]) == 0
        assert "3 partitions: 0 errors" in capsys.readouterr().out
