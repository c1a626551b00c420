"""A Spark driver for the tests: copies lines of files, or a topic, to a topic exactly once, until all is read."""

from __future__ import annotations

import argparse
import os
import sys

LINES = 620
"""Records of a trigger."""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "50",
}
"""Little to start, and tasks that send by little and little."""


def main() -> None:
    known = argparse.ArgumentParser()
    known.add_argument("bootstrap")
    known.add_argument("topic")
    known.add_argument("source", help="a folder of lines, topic:NAME, or segments:NAME@FOLDER")
    known.add_argument("checkpoint")
    known.add_argument("--tasks", type=int, default=3)
    known.add_argument("--java", default="", help="options of its JVM")
    known.add_argument("--set", action="append", default=[])
    given = known.parse_args()
    os.environ["PYSPARK_PYTHON"] = sys.executable

    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2,4]")
    for name, text in SETTINGS.items():
        builder = builder.config(name, text)
    builder = builder.config("spark.driver.extraJavaOptions", given.java)
    spark = builder.config("spark.sql.shuffle.partitions", str(given.tasks)).getOrCreate()
    kind, _, name = given.source.partition(":")
    if kind in ("topic", "segments"):
        name, _, folder = name.partition("@")
        where = {"path": folder} if folder else {"kafka.bootstrap.servers": given.bootstrap}
        reader = spark.readStream.format("logkernel").options(**where)
        reader = reader.options(subscribe=name, startingOffsets="earliest", maxOffsetsPerTrigger=LINES)
        rows = reader.option("includeHeaders", "true").load().select("key", "value", "headers", "partition")
    else:
        lines = spark.readStream.option("maxFilesPerTrigger", 1).text(given.source)
        partition = "IF(length(value) % 3 = 0, 0, NULL) AS partition"
        rows = lines.selectExpr("split(value, ' ')[0] AS key", "value", partition)
    writer = rows.repartition(given.tasks).writeStream.format("logkernel")
    writer = writer.option("kafka.bootstrap.servers", given.bootstrap)
    for text in given.set:
        name, _, value = text.partition("=")
        writer = writer.option(name, value)
    writer = writer.option("topic", given.topic).option("exactlyOnce", "true")
    query = writer.option("checkpointLocation", given.checkpoint).trigger(availableNow=True).start()
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main()
