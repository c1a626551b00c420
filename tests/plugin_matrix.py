"""The combinations of plugins that the suite in `tests/matrix` runs with: what there is, what is listed, what is left.

A combination names one plugin of each factor: `clean-zstd-zookeeper-compact-keyed`. `tox.ini` lists those that cover
every pair; `tests/docs/test_factors.py` holds it to that.
"""

from __future__ import annotations

import configparser
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FACTORS = {
    "election": ("clean", "unclean"),
    "codec": ("none", "gzip", "snappy", "lz4", "zstd"),
    "transport": ("memory", "tcp", "zookeeper"),
    "cleanup": ("delete", "compact"),
    "partitioner": ("default", "keyed", "round_robin"),
}
INTERPRETER = re.compile(r"py3\d+-")

Combination = dict[str, str]
"""Factor → the plugin's name."""


def named(combination: Combination) -> str:
    return "-".join(combination[factor] for factor in FACTORS)


def parse(name: str) -> Combination:
    """Of a name, with or without the interpreter of a tox environment before it. Raises `ValueError`."""
    words = INTERPRETER.sub("", name, count=1).split("-")
    if len(words) == len(FACTORS):
        combination = dict(zip(FACTORS, words, strict=True))
        if all(word in FACTORS[factor] for factor, word in combination.items()):
            return combination
    wanted = "-".join("{" + ",".join(values) + "}" for values in FACTORS.values())
    raise ValueError(f"{name!r} is no combination of plugins; name one of {wanted}, or full or pairwise")


def every() -> list[Combination]:
    return [dict(zip(FACTORS, words, strict=True)) for words in itertools.product(*FACTORS.values())]


def listed() -> list[Combination]:
    """The combinations among the environments that plain `tox` runs."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    names = config["tox"]["env_list"].split()
    return [parse(name) for name in names if INTERPRETER.match(name) and name.count("-") == len(FACTORS)]


def missing_pairs(combinations: Sequence[Combination]) -> list[str]:
    """The pairs of plugins that are together in none of the combinations."""
    missing = []
    for left, right in itertools.combinations(FACTORS, 2):
        found = {(each[left], each[right]) for each in combinations}
        pairs = itertools.product(FACTORS[left], FACTORS[right])
        missing += [f"{left}={one} with {right}={other}" for one, other in pairs if (one, other) not in found]
    return missing


def chosen(name: str) -> list[Combination]:
    """What a value of `LOGKERNEL_MATRIX` names; empty: as `pairwise`. Raises `ValueError`."""
    if name == "full":
        return every()
    return listed() if name in ("", "pairwise") else [parse(name)]


def projected(
    combinations: Iterable[Combination], factors: Sequence[str], only: Mapping[str, Sequence[str]]
) -> list[tuple[str, ...]]:
    """What combinations differ in for a test that these factors touch: each once, in their order. `only` names the
    plugins of a factor that the test is for."""
    fitting = (each for each in combinations if all(each[factor] in values for factor, values in only.items()))
    return list(dict.fromkeys(tuple(each[factor] for factor in factors) for each in fitting))
