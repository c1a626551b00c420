"""The environments of tox that differ in how the program runs, and which tests each takes.

    python tests/program_matrix.py pure-asyncio-crc32c FILE

writes the paths of an environment's tests, one a line, for `pytest @FILE`. A factor touches the paths in
`selections/FACTOR.txt`. A path that two factors touch runs once with each pair of their values, a path that one touches
once with each of its values. `full` comes first: the usual tests run with its values.
"""

from __future__ import annotations

import configparser
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SELECTIONS = ROOT / "tests" / "selections"
FACTORS = (("compiled", "pure"), ("uvloop", "asyncio"), ("crc32c", "crcmod"))
FULL = ("compiled", "uvloop", "crc32c")
"""What the environment `full` has."""
OTHERS = tuple(factor for factors in FACTORS for factor in factors if factor not in FULL)

Combination = tuple[str, ...]
"""A value of each factor, in the order of FACTORS."""


def listed() -> list[Combination]:
    """`full`, then the environments of this matrix that plain `tox` runs, in their order."""
    config = configparser.ConfigParser(interpolation=None)
    config.read(ROOT / "tox.ini")
    names = config["tox"]["env_list"].split()
    return [FULL, *(tuple(name.split("-")) for name in names if name.count("-") == len(FACTORS) - 1)]


def selected(factor: str) -> list[str]:
    return (SELECTIONS / f"{factor}.txt").read_text().splitlines()


def touching() -> dict[str, tuple[int, ...]]:
    """Path → the factors that touch it, by their places in FACTORS."""
    places = {factor: place for place, factors in enumerate(FACTORS) for factor in factors}
    found: dict[str, tuple[int, ...]] = {}
    for factor in OTHERS:
        for path in selected(factor):
            found[path] = (*found.get(path, ()), places[factor])
    return found


def share(environment: Combination, among: list[Combination]) -> list[str]:
    """The paths that no environment before this one takes with the same values of the factors that touch them. Raises
    `ValueError` for an environment that is not among them."""
    if environment not in among:
        known = ", ".join("-".join(each) for each in among[1:])
        raise ValueError(f"{'-'.join(environment)!r} is no environment of this matrix; name one of {known}")
    earlier = among[: among.index(environment)]
    return [
        path
        for path, places in touching().items()
        if all(any(other[place] != environment[place] for place in places) for other in earlier)
    ]


if __name__ == "__main__":
    Path(sys.argv[2]).write_text("".join(f"{path}\n" for path in share(tuple(sys.argv[1].split("-")), listed())))
