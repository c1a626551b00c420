"""Delta in a pipeline's session: its jars come from Maven Central, by the version that PyPI's `delta-spark` has.

A release of delta-spark is for some versions of Spark, which its metadata name; with any other there are no jars.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Mapping
from typing import Any, Final

from logkernel.errors import ConfigError

EXTENSION: Final = "io.delta.sql.DeltaSparkSessionExtension"
CATALOG: Final = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
NAME: Final = "delta-spark"


def check(step: str) -> None:
    """Raises `ConfigError` where delta-spark is not installed, or is for other versions of Spark."""
    if importlib.util.find_spec("delta") is None:
        raise ConfigError(f"step {step}: format delta needs {NAME}, of Spark's version: pip install {NAME}")
    from packaging.requirements import Requirement  # not there where plans are only checked

    spark = importlib.metadata.version("pyspark")
    for needed in map(Requirement, importlib.metadata.requires(NAME) or ()):
        applies = needed.name == "pyspark" and (needed.marker is None or needed.marker.evaluate())
        if applies and not needed.specifier.contains(spark, prereleases=True):
            raise ConfigError(
                f"step {step}: format delta needs a Spark that {NAME} {importlib.metadata.version(NAME)} is for"
                f" ({needed.specifier}), and this is {spark}: pip install {NAME} 'pyspark{needed.specifier}'"
            )


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
