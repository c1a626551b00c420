"""Distributions of outside authors in folders for PYTHONPATH, as pip would lay them out, or by pip itself."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

EntryPoints = Mapping[str, Mapping[str, str]]
"""Group → name → what it names."""


def describe(site: Path, name: str, entry_points: EntryPoints, version: str = "1.0") -> None:
    """Write what an installed distribution says of itself. Its modules are not there yet."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [
        line
        for group, points in entry_points.items()
        for line in (f"[{group}]", *(f"{point} = {target}" for point, target in points.items()))
    ]
    (info / "entry_points.txt").write_text("".join(f"{line}\n" for line in lines))


def lay_out(project: Path, site: Path) -> None:
    """Install a project without pip: its modules, in `src` or beside its pyproject.toml, and its entry points."""
    said = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    describe(site, said["project"]["name"], said["project"]["entry-points"], said["project"]["version"])
    if (project / "src").is_dir():
        shutil.copytree(project / "src", site, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        for module in said["tool"]["setuptools"]["py-modules"]:
            shutil.copy(project / f"{module}.py", site)


def pip_install(site: Path, *projects: Path) -> None:
    """Install projects by pip, which builds in their folders: give copies. Skips where the interpreter has no pip."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("this interpreter has no pip")
    command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site), *map(str, projects)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr


def pythonpath(site: Path) -> str:
    """The variable for processes, with the folder before what is there."""
    return os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))


def put_on_path(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make what is in the folder importable here and in the processes that the test starts."""
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setenv("PYTHONPATH", pythonpath(site))


def outside_distribution(site: Path, name: str, plugin: str) -> str:
    """PYTHONPATH with a distribution `name`, whose module has the text `plugin`."""
    module = name.replace("-", "_")
    describe(site, name, {"logkernel": {name: module}})
    (site / f"{module}.py").write_text(plugin)
    return pythonpath(site)
