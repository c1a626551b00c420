"""The recipes of docs/testing-other-languages.md, as they stand there, with the clients that they name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from outside_tools import missing
from secure_programs import go_version, kafkajs

pytestmark = pytest.mark.interop

PAGE = Path(__file__).parents[2] / "docs" / "testing-other-languages.md"
JUNIT = ("org.junit.platform", "junit-platform-console-standalone", "1.11.4")
KAFKA_GO = "github.com/segmentio/kafka-go@v0.4.47"
TAKES_S = 500


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def with_logkernel(tmp_path: Path) -> dict[str, str]:
    """An environment in which `logkernel` is the one under test."""
    program = tmp_path / "bin" / "logkernel"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m logkernel "$@"\n')
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}


def run(command: list[str], folder: Path, environ: dict[str, str]) -> str:
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=TAKES_S)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def test_the_java_recipe_passes(apache_kafka: ModuleType, with_logkernel: dict[str, str], tmp_path: Path) -> None:
    try:
        junit = apache_kafka.fetch(apache_kafka.CACHE / f"junit-{JUNIT[2]}", (JUNIT,), alone=True)
    except subprocess.CalledProcessError as error:
        missing(f"JUnit cannot be fetched: {error}")
    for name, source in zip(("TestServer", "OrdersTest"), blocks("java"), strict=True):
        (tmp_path / f"{name}.java").write_text(source)
    jars = f"{apache_kafka.JARS}/*:{junit}/*"
    run(["javac", "-cp", jars, "-d", str(tmp_path), "TestServer.java", "OrdersTest.java"], tmp_path, with_logkernel)
    launcher = ["org.junit.platform.console.ConsoleLauncher", "execute", "--select-class", "OrdersTest"]
    quick = ["-XX:TieredStopAtLevel=1", *apache_kafka.logging_options("WARN")]
    said = run(["java", *quick, "-cp", f"{tmp_path}:{jars}", *launcher], tmp_path, with_logkernel)
    assert re.search(r"1 tests successful", said)


def test_the_node_recipe_passes(with_logkernel: dict[str, str], tmp_path: Path) -> None:
    shutil.copytree(kafkajs(), tmp_path / "node_modules")
    (source,) = blocks("js")
    (tmp_path / "orders.test.mjs").write_text(source)
    said = run(["node", "--test", "--test-reporter=tap", "orders.test.mjs"], tmp_path, with_logkernel)
    assert "# pass 1" in said


def test_the_go_recipe_passes(with_logkernel: dict[str, str], tmp_path: Path) -> None:
    major, minor = min(go_version(), (1, 22))
    (source,) = blocks("go")
    (tmp_path / "orders_test.go").write_text(source)
    (tmp_path / "go.mod").write_text(f"module orders\n\ngo {major}.{minor}\n")
    try:
        subprocess.run(["go", "get", KAFKA_GO], cwd=tmp_path, check=True, timeout=TAKES_S, capture_output=True)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        missing(f"{KAFKA_GO} cannot be had: {error}")
    assert run(["go", "test", "-vet=off", "./..."], tmp_path, with_logkernel).startswith("ok")
