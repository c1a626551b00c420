"""The tox matrix covers every pair of factors, and inside an environment its factors are really in force."""

from __future__ import annotations

import configparser
import importlib.util
import itertools
import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FACTORS = (("compiled", "pure"), ("uvloop", "asyncio"), ("crc32c", "crcmod"))
FULL = ("compiled", "uvloop", "crc32c")
"""What the environment `full` has."""


def combinations() -> set[tuple[str, ...]]:
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    names = config["tox"]["env_list"].split()
    assert "full" in names
    return {FULL} | {tuple(name.split("-")) for name in names if name.count("-") == 2}


def test_every_pair_of_factors_is_covered() -> None:
    listed = combinations()
    for left, right in itertools.combinations(range(len(FACTORS)), 2):
        wanted = set(itertools.product(FACTORS[left], FACTORS[right]))
        assert {(names[left], names[right]) for names in listed} == wanted


ENVIRONMENT = tuple(os.environ.get("TOX_ENV_NAME", "").split("-"))


@pytest.mark.skipif(len(ENVIRONMENT) != 3, reason="not inside an environment of the matrix")
def test_the_factors_are_in_force() -> None:
    from logkernel.record import loops

    codec_factor, loop, crc = ENVIRONMENT
    if codec_factor == "pure":
        assert not loops.COMPILED
    assert (importlib.util.find_spec("uvloop") is not None) == (loop == "uvloop")
    assert (importlib.util.find_spec("crc32c") is not None) == (crc == "crc32c")
