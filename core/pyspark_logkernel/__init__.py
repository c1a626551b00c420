"""Spark's door: it imports every top-level module `pyspark_*` and registers its `DefaultSource`."""

from logkernel.plugins.spark.source import LogkernelSource as DefaultSource

__all__ = ["DefaultSource"]
