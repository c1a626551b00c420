"""Pipelines: jobs between logs and tables that a YAML file describes, carried out by Spark. docs/pipelines.md.

    spec      the file: every name known, every setting with its line
    plan      what Spark is to do, step by step
    queries   the SQL that is brought along, and what is read out of the user's
    runner    sessions, frames, queries

All but `runner` is pure, and needs no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping

from logkernel.contracts import Pipeline


def load(path: str, given: Mapping[str, str]) -> Pipeline:
    """The pipeline of a file, judged; `given` are its parameters. Raises `ConfigError`, which names file and line."""
    from .runner import SparkPipeline
    from .spec import load

    return SparkPipeline(load(path, given))
