"""The pages that lead by the hand: their files are installed, their commands and programs run and say what they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import testing_plugin
from outside_distribution import pip_install, put_on_path

DOCS = Path(__file__).resolve().parents[2] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```\n(?:\n```text\n(.*?)^```)?", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"^`(\S+/\S+)`:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROJECTS = {"plugins/tutorial.md": "acme-vip", "services.md": "acme-leases"}
LEASES = """\
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "acme-leases"
version = "0.1.0"

[project.entry-points.logkernel]
acme-leases = "acme_leases"

[tool.setuptools]
py-modules = ["acme_leases"]
"""


def blocks(page: str, language: str) -> list[tuple[str, str | None]]:
    """(code, what it says) of a page's blocks, without its files."""
    text = NAMED.sub("", (DOCS / page).read_text(encoding="utf-8"))
    return [(code, said or None) for found, code, said in BLOCK.findall(text) if found == language]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the distributions of all pages, as pip installs them."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    (source / "acme-leases").mkdir()
    (source / "acme-leases" / "pyproject.toml").write_text(LEASES)
    for page in PROJECTS:
        for name, text in NAMED.findall((DOCS / page).read_text(encoding="utf-8")):
            (source / name).parent.mkdir(exist_ok=True)
            (source / name).write_text(text)
    pip_install(site, *(source / project for project in PROJECTS.values()))
    return site


@pytest.fixture
def on_path(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    put_on_path(installed, monkeypatch)
    return installed


def shell(code: str, folder: Path, bootstrap: str) -> str:
    """What commands print, run one after the other with `logkernel` on the path."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = {**os.environ, "PATH": path, "LOGKERNEL_BOOTSTRAP": bootstrap}
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code], cwd=folder, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, f"{code}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def lines(text: str) -> list[str]:
    """Without spaces at their ends, sorted: partitions come in any order."""
    return sorted(line.rstrip() for line in text.splitlines() if line.strip())


def runs(page: str, folder: Path, capsys: pytest.CaptureFixture[str], bootstrap: str = "127.0.0.1:9092") -> int:
    """Run the programs of a page, one world for all; returns how many said what the page says."""
    world: dict[str, object] = {"__name__": "page"}
    said = 0
    for code, expected in blocks(page, "python"):
        exec(compile(code.replace("127.0.0.1:9092", bootstrap), page, "exec"), world)
        printed = capsys.readouterr().out
        if expected is not None:
            assert printed == expected
            said += 1
    return said


def commands(page: str, folder: Path, bootstrap: str) -> int:
    """Run the commands of a page that need a shell alone; returns how many said what the page says."""
    said = 0
    for code, expected in blocks(page, "sh"):
        if "pip install" in code or "logkernel serve" in code:
            continue
        printed = shell(code, folder, bootstrap)
        if expected is not None:
            assert set(lines(expected)) <= set(lines(printed)), printed
            said += 1
    return said


def test_the_first_plugin_is_chosen_and_works(
    on_path: Path, start_broker: Callable[..., Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = start_broker()
    assert commands("plugins/tutorial.md", tmp_path, broker.bootstrap) == 3
    assert runs("plugins/tutorial.md", tmp_path, capsys) == 1


def test_the_first_plugin_passes_its_tests(on_path: Path, tmp_path: Path) -> None:
    (text,) = (text for name, text in NAMED.findall((DOCS / "plugins" / "tutorial.md").read_text()) if "test_" in name)
    (tmp_path / "test_acme_vip.py").write_text(text)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "9 passed" in done.stdout, done.stdout + done.stderr


def test_the_service_says_what_the_page_says(on_path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runs("services.md", tmp_path, capsys) == 2


def test_a_test_gets_a_broker(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert runs("testing.md", tmp_path, capsys) == 15


def test_the_tests_of_the_testing_page_pass(tmp_path: Path) -> None:
    """Those blocks that have tests or fixtures, as one suite."""
    suite = [code for code, _ in blocks("testing.md", "python") if "def test_" in code or "@pytest.fixture" in code]
    (tmp_path / "test_page.py").write_text("\n".join(suite))
    ini = re.search(r"^```ini\n(.*?kafka_topics.*?)^```", (DOCS / "testing.md").read_text(), re.MULTILINE | re.DOTALL)
    assert ini is not None
    (tmp_path / "pytest.ini").write_text(ini[1].partition("kafka_plugins")[0])
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *testing_plugin.words(), str(tmp_path)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert "6 passed" in done.stdout, done.stdout + done.stderr


def test_the_tutorial(
    start_broker: Callable[..., Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In order: commands and programs share a broker, and then its folder."""
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    broker = start_broker("--set", "group.initial.rebalance.delay.ms=0", data=tmp_path / "data")
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    assert text.index("Stop the broker") < text.index("ls data")
    said = 0
    for language, code, expected in BLOCK.findall(text):
        if "pip install" in code or "logkernel serve" in code or language == "text":
            continue
        if broker.running and code.startswith("ls data"):
            broker.end()
        if language == "sh":
            printed = shell(code, tmp_path, broker.bootstrap)
        else:
            exec(compile(code.replace("127.0.0.1:9092", broker.bootstrap), "docs/tutorial.md", "exec"), {})
            printed = capsys.readouterr().out
        if expected:
            assert set(lines(expected)) <= set(lines(printed)), printed
            said += 1
    assert said == 8


def test_the_readmes_commands_follow_its_embedded_log(
    start_broker: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader who runs one block after the other has one folder for all."""
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    found = BLOCK.findall((DOCS.parent / "README.md").read_text(encoding="utf-8"))
    exec(compile(next(code for language, code, _ in found if language == "python"), "README.md", "exec"), {})
    broker = start_broker(data=tmp_path / "data")
    (code,) = (code for language, code, _ in found if language == "sh" and "logkernel topic create" in code)
    assert "100" in shell(code, tmp_path, broker.bootstrap)


def test_the_commands_of_operations(start_broker: Callable[..., Any], tmp_path: Path) -> None:
    broker = start_broker("--set", "group.initial.rebalance.delay.ms=0", data=tmp_path / "data")
    shell("logkernel topic create orders -p 1; seq 1500 | logkernel produce orders", tmp_path, broker.bootstrap)
    shell("logkernel consume orders -g billing -n 1", tmp_path, broker.bootstrap)
    codes = [code for code, _ in blocks("operations.md", "sh") if "logkernel serve" not in code]
    words = ("status", "quotas", "check", "expire")
    assert [next(word for word in words if word in code) for code in codes] == list(words)
    watch, quotas, check, make_room = codes
    assert "billing" in shell(watch, tmp_path, broker.bootstrap)
    assert "client-id=reports" in shell(quotas, tmp_path, broker.bootstrap)
    shell(make_room, tmp_path, broker.bootstrap)
    broker.end()
    assert "0 errors" in shell(check, tmp_path, broker.bootstrap)
