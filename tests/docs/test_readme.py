"""The README keeps its word: commands, options, links."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
COMMANDS = re.findall(r"^```sh\n(python3 .+)\n```", README, re.MULTILINE)


def test_there_are_two_commands_that_need_pip_only() -> None:
    assert len(COMMANDS) == 2
    run, test = COMMANDS
    assert run.endswith("logkernel serve")
    assert test.endswith("python -m pytest -n auto --dist worksteal")
    assert all(command.startswith("python3 -m venv .venv") for command in COMMANDS)


def test_continuous_integration_runs_the_readme_s_test_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    assert COMMANDS[1] in lines
    assert lines.index("set -euo pipefail") < lines.index(COMMANDS[1])


def test_the_wheels_that_are_built_first_are_requirements_of_the_tests() -> None:
    """With the same versions; another one would be built in vain, and again for each environment."""
    text = (ROOT / ".ci" / "run").read_text()
    (words,) = re.findall(r"pip wheel (.+?)\n(?=\w)", text, re.DOTALL)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    built = re.findall(r"'(.+?)'", words)
    assert any(requirement.startswith("pyspark") for requirement in built)
    assert {*built} <= {*project["dependencies"], *project["optional-dependencies"]["test"]}


def run_of(folder: Path, change: tuple[str, str]) -> subprocess.CompletedProcess[str]:
    """`.ci/run` up to its first tool, with one text in place of another."""
    text = (ROOT / ".ci" / "run").read_text()
    head, _, _ = text.partition("\nif ! command -v kcat")
    assert change[0] in head
    (folder / ".ci").mkdir()
    (folder / ".ci" / "run").write_text(head.replace(*change) + "\nstep tools\nfalse\n")
    return subprocess.run(["bash", str(folder / ".ci" / "run")], capture_output=True, text=True, timeout=300)


def test_continuous_integration_wants_room_on_the_disk(tmp_path: Path) -> None:
    done = run_of(tmp_path, ("NEEDED_GB=8", "NEEDED_GB=99999999"))
    assert done.returncode == 1
    assert "GB free, and this run needs 99999999 GB; free some space" in done.stderr
    assert "== tools" not in done.stdout


def test_continuous_integration_tells_where_it_failed_and_what_was_free(tmp_path: Path) -> None:
    done = run_of(tmp_path, ("NEEDED_GB=8", "NEEDED_GB=0"))
    state = r"\(after \d+ min \d+ s; free: \d+ GB here, \d+ GB in .+, \d+ GB in .+\)"
    assert done.returncode == 1
    assert re.search(rf"^== tools {state}$", done.stdout, re.MULTILINE)
    assert re.search(rf"^== failed in: tools {state}$", done.stderr, re.MULTILINE)


def test_every_option_it_names_exists() -> None:
    from logkernel import cli

    files = [*Path(cli.__file__).parent.glob("*.py"), ROOT / "tests" / "parts.py"]
    help_text = "".join(path.read_text() for path in files)
    for option in set(re.findall(r"`(--[a-z-]+)", README)):
        assert f'"{option}"' in help_text, option


PAGES = [
    "README.md",
    "CONTRIBUTING.md",
    "docs/architecture.md",
    "docs/cli.md",
    "docs/client.md",
    "docs/hooks.md",
    "bench/README.md",
]


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    path = ROOT / page
    for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", path.read_text()):
        assert (path.parent / target).exists(), f"{page} links to {target}"


def test_the_embedding_example_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = re.search(r"```python\n(.+?)```", README, re.DOTALL)
    assert found is not None
    monkeypatch.chdir(tmp_path)
    for times in (1, 2):
        exec(compile(found.group(1), "README.md", "exec"), {})
        assert capsys.readouterr().out.count("b'key' b'value'") == times


def test_the_producer_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    example = re.findall(r"```python\n(.+?)```", README, re.DOTALL)[1]
    exec(compile(example, "README.md", "exec"), {"logkernel": __import__("logkernel")})
    assert "RecordMetadata(topic='orders'" in capsys.readouterr().out


def test_the_consumer_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    example = re.findall(r"```python\n(.+?)```", README, re.DOTALL)[2]
    exec(compile(example, "README.md", "exec"), {"logkernel": __import__("logkernel")})
    assert "b'k' b'v' 0" in capsys.readouterr().out


def test_the_map_of_the_house_is_complete() -> None:
    """docs/architecture.md names every room of the core and every kind of plugin."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    core = ROOT / "core" / "logkernel"
    rooms = [path.name for path in core.iterdir() if path.is_dir() and (path / "__init__.py").exists()]
    kinds = [path.name for path in (ROOT / "plugins").iterdir() if (path / "__init__.py").exists()]
    for name in [*rooms, *kinds]:
        assert f"{name}/" in text, f"docs/architecture.md does not know {name}/"


SOME_PYTHON = """#!/bin/sh
case "$*" in
  -c*) exec {python} "$@" ;;
  *--lf*) echo "again: $0 $*"; exit {again} ;;
  *) mkdir -p .pytest_cache/v/cache; echo '{failed}' > .pytest_cache/v/cache/lastfailed; exit {first} ;;
esac
"""


@pytest.mark.parametrize(
    ("first", "failed", "again", "code"),
    [(0, 0, 1, 0), (1, 1, 0, 0), (1, 3, 0, 0), (1, 3, 1, 1), (1, 4, 0, 1), (2, 1, 0, 2), (1, 0, 5, 5)],
    ids=["passed", "one", "three", "not-alone-either", "four", "interrupted", "none-named"],
)
@pytest.mark.parametrize(
    ("number", "command", "alone"),
    [
        (0, "{\n.venv-test/bin/python -m pytest && .venv-test/bin/python -m pytest\n}", "python -m pytest --lf"),
        (1, ".venv-test/bin/python -m pytest --rest", "python -m pytest --rest --lf"),
        (2, 'environment=pure\nLINE\n"${tox[@]}" 4', "tox run --skip-pkg-install -e pure -- -n 0 --lf"),
    ],
    ids=["readme", "rest", "matrix"],
)
def test_continuous_integration_gives_three_tests_a_second_try_alone(
    tmp_path: Path, number: int, command: str, alone: str, first: int, failed: int, again: int, code: int
) -> None:
    text = (ROOT / ".ci" / "run").read_text()
    head, _, _ = text.partition("\nNEEDED_GB")
    (most,) = re.findall(r"^MOST_AGAIN=\d+$", text, re.MULTILINE)
    (function,) = re.findall(r"^once_more\(\) \{.+?^\}", text, re.MULTILINE | re.DOTALL)
    calls = re.findall(r'\|\| (once_more "\$\?".*)$', text, re.MULTILINE)
    assert len(calls) == 3
    (line,) = re.findall(r"^ *(tox=.+)$", text, re.MULTILINE)
    (tmp_path / ".ci").mkdir()
    steps = [most, 'step() { echo "$1"; }', function, f"{command.replace('LINE', line)} || {calls[number]}"]
    (tmp_path / ".ci" / "run").write_text("\n".join([head, *steps, "echo the end", ""]))
    tools = tmp_path / ".venv-test" / "bin"
    tools.mkdir(parents=True)
    names = json.dumps({f"tests/test_{number}.py::test": True for number in range(failed)})
    for name in "python", "tox":
        (tools / name).write_text(SOME_PYTHON.format(python=sys.executable, again=again, failed=names, first=first))
        (tools / name).chmod(0o755)
    done = subprocess.run(["bash", str(tmp_path / ".ci" / "run")], capture_output=True, text=True, timeout=300)
    assert done.returncode == code, done.stdout + done.stderr
    assert (f"again: .venv-test/bin/{alone} --lfnf=none" in done.stdout) == (first == 1 and failed <= 3)
    assert done.stdout.count("passed only alone") == (failed if first == 1 and not code else 0)
    assert ("the end" in done.stdout) == (not code)
