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
import program_matrix
import pytest
from program_matrix import FACTORS, OTHERS, SELECTIONS

ROOT = Path(__file__).resolve().parents[2]


def tox() -> configparser.ConfigParser:
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    return config


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


def missing_pairs(listed: list[program_matrix.Combination]) -> list[str]:
    """The pairs of values that no environment has together."""
    return [
        f"{one} with {other}"
        for left, right in itertools.combinations(range(len(FACTORS)), 2)
        for one, other in itertools.product(FACTORS[left], FACTORS[right])
        if all((names[left], names[right]) != (one, other) for names in listed)
    ]


def test_every_pair_of_factors_is_covered() -> None:
    assert "full" in tox()["tox"]["env_list"].split()
    listed = program_matrix.listed()
    assert missing_pairs(listed) == []
    assert len(missing_pairs(listed[:-1])) == 3, "a test that finds no pair missing proves nothing"


def taken(listed: list[program_matrix.Combination]) -> list[tuple[str, tuple[str, ...]]]:
    """Each path with the values of the factors that touch it, as often as an environment takes it with them."""
    touching = program_matrix.touching()
    return [
        (path, tuple(environment[place] for place in touching[path]))
        for environment in listed[1:]
        for path in program_matrix.share(environment, listed)
    ]


def test_each_path_runs_once_with_every_pair_of_the_factors_that_touch_it() -> None:
    """Those of `full` are the usual run's. What three factors touch runs in every environment."""
    listed, touching = program_matrix.listed(), program_matrix.touching()
    found = taken(listed)
    assert len(found) == len(set(found)), "a path runs twice with the same values"
    for path, places in touching.items():
        values = {of for name, of in found if name == path} | {tuple(program_matrix.FULL[place] for place in places)}
        wanted = set(itertools.product(*(FACTORS[place] for place in places)))
        if len(places) == 3:
            assert values == set(listed), path
        else:
            assert values == wanted, path
    assert set(touching) == {path for factor in OTHERS for path in program_matrix.selected(factor)}


def test_one_environment_less_leaves_paths_without_a_pair() -> None:
    listed = program_matrix.listed()
    for gone in listed[1:]:
        rest = [each for each in listed if each != gone]
        assert set(taken(rest)) < set(taken(listed))


def test_no_selected_path_lies_in_another_one() -> None:
    """What is touched by the folder's factors, too, is listed as the folder is."""
    paths = {*program_matrix.touching()}
    for path in paths:
        assert not paths & {str(parent) for parent in Path(path).parents}, path


def test_an_unknown_environment_is_refused() -> None:
    with pytest.raises(ValueError, match="'pure-asyncio' is no environment of this matrix; name one of compiled-"):
        program_matrix.share(("pure", "asyncio"), program_matrix.listed())


def test_an_environment_runs_its_share() -> None:
    environment = tox()["testenv"]
    assert (
        "compiled,pure: python tests/program_matrix.py {env_name} {env_tmp_dir}/tests.txt"
        in environment["commands_pre"]
    )
    assert "@{env_tmp_dir}/tests.txt" in environment["commands"]


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


PAST_NAMES = {
    "groups": "tests/scenarios/groups/group_host.py",
    "transactions": "tests/scenarios/transactions/conftest.py",
    "zookeeper": "tests/scenarios/zookeeper/test_sessions.py",
    "testing": "core/logkernel/testing/kafka/watched.py",
}
"""Folders of scenarios, and what has them import a built-in plugin, where others ask for it by its name."""


def test_outside_has_all_scenarios_that_reach_a_plugin_by_its_name() -> None:
    """A folder that imports the built-in tests the built-in also in the environment `outside`."""
    folders = {path.parent.name for path in (ROOT / "tests" / "scenarios").glob("*/test_*.py")}
    selected = {Path(path) for path in (SELECTIONS / "outside.txt").read_text().split()}
    chosen = {path.name for path in selected if path.parent == Path("tests/scenarios")}
    assert chosen == folders - {*PAST_NAMES}, "add the folder to tests/selections/outside.txt"
    for folder, file in PAST_NAMES.items():
        imports = re.search(r"^from logkernel\.plugins\.", (ROOT / file).read_text(), re.MULTILINE)
        assert imports, f"{folder} reaches its plugins by name now; add it to tests/selections/outside.txt"


def test_outside_takes_every_plugin_of_the_matrix_by_its_name() -> None:
    """Also brokers over a real ZooKeeper, which no scenario has."""
    assert "tests/matrix/test_whole.py" in (SELECTIONS / "outside.txt").read_text().split()
    assert "LOGKERNEL_MATRIX" not in tox()["testenv:outside"]["set_env"], "pairwise has each plugin"
    assert "zookeeper" in {each["transport"] for each in plugin_matrix.chosen("")}


@pytest.mark.skipif(os.environ.get("TOX_ENV_NAME") != "outside", reason="not inside the environment `outside`")
def test_every_built_in_is_hidden_and_replaced_by_its_copy() -> None:
    from logkernel.installed import entry_points

    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]["logkernel"]
    wanted = {name: module.replace("logkernel.plugins", "acme_copies") for name, module in declared.items()}
    found = list(entry_points("logkernel"))
    assert {point.name: point.target for point in found} == wanted
    assert len(found) == len(wanted)


ENVIRONMENT = tuple(os.environ.get("TOX_ENV_NAME", "").split("-"))


@pytest.mark.skipif(ENVIRONMENT not in program_matrix.listed(), reason="not inside an environment of the matrix")
def test_the_factors_are_in_force() -> None:
    from logkernel.record import loops

    loops_factor, loop, crc = ENVIRONMENT
    if loops_factor == "pure":
        assert not loops.COMPILED
    assert (importlib.util.find_spec("uvloop") is not None) == (loop == "uvloop")
    assert (importlib.util.find_spec("crc32c") is not None) == (crc == "crc32c")
