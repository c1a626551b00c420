"""Which Spark a release of delta-spark is for, and what a session is given for it."""

from __future__ import annotations

import contextlib
import importlib.metadata
import sys
from types import ModuleType
from typing import Any

import pytest

from logkernel.errors import ConfigError
from logkernel.plugins.spark.pipelines import delta


@pytest.fixture
def versions(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """What is installed."""
    found = {"pyspark": "4.3.0", "delta-spark": "4.4.0"}
    monkeypatch.setattr(delta.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(importlib.metadata, "version", found.__getitem__)
    return found


@pytest.mark.parametrize(
    ("version", "needed", "fits"),
    [
        ("4.2.0", "pyspark<=4.2.0,>=4.0.1", True),
        ("4.2.1", "pyspark<=4.2.0,>=4.0.1", False),
        ("4.0.0", "pyspark (<=4.2.0,>=4.0.1)", False),
        ("4.10.0", "pyspark<4.11.0,>=4.9", True),
        ("4.2.0.dev2", "pyspark>=4.1", True),
        ("4.1.0", "pyspark>4.0,<4.1", False),
        ("4.3.0", "pyspark~=4.0", True),
        ("5.0.0", "pyspark~=4.0", False),
        ("4.3.0", "pyspark!=4.3.0", False),
        ("4.3.0", "pyspark", True),
        ("4.3.0", "pyspark<=4.2; python_version < '3'", True),
        ("4.3.0", "importlib_metadata<4", True),
    ],
)
def test_what_delta_needs(
    monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], version: str, needed: str, fits: bool
) -> None:
    versions["pyspark"] = version
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: [needed])
    with contextlib.nullcontext() if fits else pytest.raises(ConfigError):
        delta.check("one")


@pytest.mark.parametrize("bounds", ["pyspark<=4.2.0,>=4.0.1", "pyspark (<=4.2.0,>=4.0.1) ; python_version > '3'"])
def test_another_spark_is_refused_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, versions: dict[str, str], bounds: str
) -> None:
    monkeypatch.setattr(importlib.metadata, "requires", lambda name: ["importlib_metadata>=1.0.0", bounds])
    with pytest.raises(ConfigError, match=r"4\.4\.0 .*4\.3\.0: pip install .*'pyspark<=4\.2\.0,>=4\.0\.1'"):
        delta.check("one")


class Builder(dict):  # type: ignore[type-arg]
    def config(self, name: str, text: str) -> Builder:
        self[name] = text
        return self


@pytest.mark.parametrize(
    ("given", "extensions", "packages"),
    [
        ({}, delta.EXTENSION, ["delta"]),
        ({"spark.jars.packages": "a:b:1, c:d:2"}, delta.EXTENSION, ["delta", "a:b:1", "c:d:2"]),
        ({"spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0"}, delta.EXTENSION, None),
        ({"spark.jars": "/srv/delta-spark_4.2_2.13-4.4.0.jar"}, delta.EXTENSION, None),
        ({"spark.sql.extensions": "my.Own"}, f"my.Own,{delta.EXTENSION}", ["delta"]),
        ({"spark.sql.extensions": delta.EXTENSION}, None, ["delta"]),
    ],
)
def test_a_session_with_delta(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, str], extensions: str | None, packages: list[str] | None
) -> None:
    """What is named already stays."""

    def configure(builder: Builder, more: list[str]) -> Builder:
        return builder.config("packages", ",".join(["delta", *more]))

    module: Any = ModuleType("delta")
    module.configure_spark_with_delta_pip = configure
    monkeypatch.setitem(sys.modules, "delta", module)
    found = delta.configured(Builder(), given)
    assert found.get("spark.sql.extensions") == extensions
    assert found.get("packages") == (None if packages is None else ",".join(packages))
    assert found["spark.sql.catalog.spark_catalog"] == delta.CATALOG
