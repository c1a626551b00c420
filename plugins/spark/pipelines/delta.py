"""Delta in a pipeline's session: its jars come from Maven Central, by the version that PyPI's `delta-spark` has.

A release of delta-spark is for some versions of Spark, which its metadata name; with any other there are no jars.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import operator
import re
from collections.abc import Callable, Mapping
from itertools import zip_longest
from typing import Any, Final

from logkernel.errors import ConfigError

EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
NAME: Final = "delta-spark"

_BOUNDS: Final[Mapping[str, Callable[[int, int], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


def check(step: str) -> None:
    """Raises `ConfigError` where delta-spark is not installed, or is for other versions of Spark."""
    if importlib.util.find_spec("delta") is None:
        raise ConfigError(f"step {step}: format delta needs {NAME}, of Spark's version: pip install {NAME}")
    spark = importlib.metadata.version("pyspark")
    for wanted in importlib.metadata.requires(NAME) or ():
        name, bounds = re.match(r"([\w-]*)\s*\(?([^;)]*)", wanted).groups()  # type: ignore[union-attr]
        if name == "pyspark" and not fits(spark, bounds):
            raise ConfigError(
                f"step {step}: format delta needs a Spark that {NAME} {importlib.metadata.version(NAME)} is for"
                f" ({bounds.strip()}), and this is {spark}: pip install {NAME} 'pyspark{bounds.strip()}'"
            )


def fits(version: str, bounds: str) -> bool:
    """Whether a version is within bounds such as `<=4.2.0,>=4.0.1`; what is no such bound is believed."""
    for bound in bounds.split(","):
        found = re.fullmatch(r"\s*(<=|>=|<|>)\s*([0-9.]+)\s*", bound)
        if found is not None:
            order = _order(version, found[2])
            if not _BOUNDS[found[1]](order, 0):
                return False
    return True


def _order(left: str, right: str) -> int:
    """-1, 0 or 1 by the numbers of two versions."""
    for one, other in zip_longest(_numbers(left), _numbers(right), fillvalue=0):
        if one != other:
            return -1 if one < other else 1
    return 0


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.match(r"[0-9.]*", version)[0].split(".") if number]  # type: ignore[index]


def configured(builder: Any, given: Mapping[str, str]) -> Any:
    """The builder of a session, with what Delta needs beside the settings that are given. Jars of Delta that are
    named there are not fetched again."""
    extensions = [name for name in given.get("spark.sql.extensions", "").split(",") if name.strip()]
    if EXTENSION not in extensions:
        builder = builder.config("spark.sql.extensions", ",".join((*extensions, EXTENSION)))
    builder = builder.config("spark.sql.catalog.spark_catalog", CATALOG)
    packages = [name.strip() for name in given.get("spark.jars.packages", "").split(",") if name.strip()]
    if any(NAME in name for name in (*packages, given.get("spark.jars", ""))):
        return builder
    from delta import configure_spark_with_delta_pip

    return configure_spark_with_delta_pip(builder, packages)
