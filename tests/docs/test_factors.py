"""tox's two matrices, of the program and of plugins, cover every pair of their factors, and factors are in force."""

from __future__ import annotations

import configparser
import importlib.util
import itertools
import os
import re
import tomllib
from pathlib import Path

import plugin_matrix
import pytest

ROOT = Path(__file__).resolve().parents[2]
SELECTIONS = ROOT / "tests" / "selections"
FACTORS = (("compiled", "pure"), ("uvloop", "asyncio"), ("crc32c", "crcmod"))
FULL = ("compiled", "uvloop", "crc32c")
"""What the environment `full` has."""
OTHERS = [factor for factors in FACTORS for factor in factors if factor not in FULL]


def tox() -> configparser.ConfigParser:
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    return config


def combinations() -> set[tuple[str, ...]]:
    names = tox()["tox"]["env_list"].split()
    assert "full" in names
    return {FULL} | {tuple(name.split("-")) for name in names if name.count("-") == 2}


def test_every_pair_of_plugins_is_covered() -> None:
    assert plugin_matrix.missing_pairs(plugin_matrix.listed()) == [], "list an environment with each in tox.ini"


def test_a_missing_pair_of_plugins_is_named() -> None:
    """One environment less, and pairs that only it has are missing."""
    listed = plugin_matrix.listed()
    gone = plugin_matrix.parse("py311-clean-zstd-tcp-compact-round_robin")
    missing = plugin_matrix.missing_pairs([each for each in listed if each != gone])
    assert "codec=zstd with transport=tcp" in missing
    assert all(gone[pair.partition("=")[0]] in pair for pair in missing)


def test_any_combination_of_plugins_can_be_named() -> None:
    """The section's name spells the factors; without it tox would know the listed ones only."""
    factors = "-".join("{" + ",".join(values) + "}" for values in plugin_matrix.FACTORS.values())
    (section,) = [name for name in tox() if name.endswith(factors)]
    assert "LOGKERNEL_MATRIX = {env_name}" in tox()[section]["set_env"]
    assert len(plugin_matrix.every()) == 180


def test_what_the_matrix_of_plugins_needs_is_what_the_tests_need() -> None:
    """The same versions as in the extra `test`, less of it."""
    extra = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["test"]
    whole = {re.sub(r"\[.*\]", "", requirement) for requirement in extra}
    plugins = tox()["plugins"]
    assert {*plugins["deps"].split(), *plugins["zookeeper"].split()} < whole


def test_a_matrix_of_plugins_has_one_of_each_that_is_built_in() -> None:
    """A codec, strategy, policy or partitioner that is added belongs into the matrix."""
    kinds = {"codec": "codec", "election": "election", "cleanup": "cleanup", "partitioner": "partitioner"}
    built_in = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["logkernel"]
    for factor, kind in kinds.items():
        plugins = {name.removeprefix(f"{kind}-").replace("-", "_") for name in built_in if name.startswith(f"{kind}-")}
        assert plugins == {*plugin_matrix.FACTORS[factor]} - {"none"}


@pytest.mark.parametrize("name", ["clean-zstd-tcp-compact", "clean-tcp-zstd-compact-keyed", "pairwise-full"])
def test_what_is_no_combination_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no combination of plugins; name one of"):
        plugin_matrix.parse(name)


def test_every_pair_of_factors_is_covered() -> None:
    listed = combinations()
    for left, right in itertools.combinations(range(len(FACTORS)), 2):
        wanted = set(itertools.product(FACTORS[left], FACTORS[right]))
        assert {(names[left], names[right]) for names in listed} == wanted


@pytest.mark.parametrize("factor", OTHERS)
def test_an_environment_runs_what_its_factor_touches(factor: str) -> None:
    assert f"{factor}: @tests/selections/{factor}.txt" in tox()["testenv"]["commands"]


@pytest.mark.parametrize("factor", OTHERS)
def test_a_factor_changes_its_environment(factor: str) -> None:
    """Every factor is asked for in tox.ini: by an environment variable or by a package that is taken away."""
    environment = tox()["testenv"]
    lines = f"{environment['set_env']}\n{environment['commands_pre']}".splitlines()
    assert any(line.strip().startswith(f"{factor}: ") for line in lines)


@pytest.mark.parametrize("name", [*OTHERS, "outside"])
def test_a_selection_names_tests_that_exist(name: str) -> None:
    lines = (SELECTIONS / f"{name}.txt").read_text().splitlines()
    assert len(lines) == len(set(lines)) >= 5
    for line in lines:
        path = ROOT / line
        assert path.is_file() or list(path.rglob("test_*.py")), f"{name}.txt names {line}, where no test is"


def test_every_selection_is_a_factors_or_that_of_outside() -> None:
    assert {path.stem for path in SELECTIONS.iterdir()} == {*OTHERS, "outside"}


ENVIRONMENT = tuple(os.environ.get("TOX_ENV_NAME", "").split("-"))


@pytest.mark.skipif(ENVIRONMENT not in combinations(), reason="not inside an environment of the matrix")
def test_the_factors_are_in_force() -> None:
    from logkernel.record import loops

    loops_factor, loop, crc = ENVIRONMENT
    if loops_factor == "pure":
        assert not loops.COMPILED
    assert (importlib.util.find_spec("uvloop") is not None) == (loop == "uvloop")
    assert (importlib.util.find_spec("crc32c") is not None) == (crc == "crc32c")
