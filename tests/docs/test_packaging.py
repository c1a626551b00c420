"""The layout holds: every entry point loads, and at top level stand `logkernel` and Spark's door alone."""

from __future__ import annotations

import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import logkernel

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
POINTS = PROJECT["entry-points"]["logkernel"]


@pytest.mark.parametrize("name", POINTS)
def test_every_entry_point_loads(name: str) -> None:
    """It fails where the checkout or the wheel was made without symlinks."""
    module = import_module(POINTS[name])
    hooks = [found for found in vars(module).values() if hasattr(found, "logkernel_impl")]
    assert hooks, f"{POINTS[name]} implements no hook"


def test_a_kernel_finds_every_built_in() -> None:
    from logkernel.kernel import Kernel

    kernel = Kernel()
    assert {"default", "keyed", "round_robin"} <= set(kernel.names("partitioner"))
    assert {"gzip", "snappy", "lz4", "zstd"} <= set(kernel.names("codec"))
    assert {"clean", "unclean"} <= set(kernel.names("election"))


def test_the_version_is_told_once() -> None:
    assert logkernel.__version__ == PROJECT["version"]


@pytest.mark.skipif(not (ROOT / "core").exists(), reason="not a checkout")
def test_what_stands_at_top_level() -> None:
    """Spark looks for modules `pyspark_*` there, and nowhere else."""
    tops = {path.parent.name for path in (ROOT / "core").glob("*/__init__.py")}
    assert tops == {"logkernel", "pyspark_logkernel"}
    assert find_spec("pyspark_logkernel") is not None


@pytest.mark.skipif(not (ROOT / "plugins").exists(), reason="a source distribution has no link")
def test_plugins_are_one_link_away() -> None:
    link = ROOT / "core" / "logkernel" / "plugins"
    assert link.is_symlink(), "this checkout was made without symlinks: set core.symlinks and check out again"
    assert link.resolve() == ROOT / "plugins"
