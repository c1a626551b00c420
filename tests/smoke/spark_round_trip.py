"""A Spark driver: writes 1,000 records to a topic in one batch and prints how many distinct ones it reads back."""

from __future__ import annotations

import os
import sys

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.shuffle.partitions": "1",
}


def main(bootstrap: str, topic: str) -> None:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[1]")
    for name, text in SETTINGS.items():
        builder = builder.config(name, text)
    spark = builder.getOrCreate()
    where = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.range(0, 1000, 1, 1).selectExpr("CAST(id AS STRING) AS key", "CAST(id AS STRING) AS value")
    rows.write.format("logkernel").mode("append").options(topic=topic, **where).save()
    read = spark.read.format("logkernel").options(subscribe=topic, **where).load()
    print(read.select("value").distinct().count())
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
