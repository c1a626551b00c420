"""Workers of Spark: a Python that leaves the zip of pyspark out, and what a worker puts aside between tasks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from logkernel.plugins.spark import interpreter

HOME = "/opt/a spark/python/lib"


@pytest.mark.parametrize(
    ("given", "passed"),
    [
        (None, ""),
        ("", ""),
        (f"{HOME}/pyspark.zip:{HOME}/py4j-0.10.9.9-src.zip", ""),
        (f"{HOME}/pyspark.zip:/own libs:{HOME}/py4j-0.10.9.9-src.zip:/a.jar:/x", "/own libs:/a.jar:/x"),
        ("/own/pyspark.zip:/b", "/own/pyspark.zip:/b"),
    ],
)
def test_the_zip_of_pyspark_is_left_out(tmp_path: Path, given: str | None, passed: str) -> None:
    python = tmp_path / "a python"
    python.write_text('#!/bin/sh\nprintf "%s\\n" "$PYTHONPATH" "$@"\n')
    python.chmod(0o755)
    program = interpreter.made(tmp_path / "made", python)
    environment = {"PATH": os.environ["PATH"]} | ({} if given is None else {"PYTHONPATH": given})
    done = subprocess.run([program, "-m", "a b", ""], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == f"{passed}\n-m\na b\n\n"


def test_what_a_users_functions_import_and_drop_is_collected() -> None:
    """They run in the same worker, and a cycle that was put aside is never looked at again."""
    text = """
import gc, weakref
from logkernel.plugins.spark import worker
worker.freeze_modules()
import zipapp
class Model: pass
model = Model()
model.itself = model
gone = weakref.ref(model)
worker.freeze_modules()
del model
gc.collect()
assert gone() is None
"""
    subprocess.run([sys.executable, "-c", text], check=True)


def test_what_was_imported_is_put_aside_once() -> None:
    text = """
import gc
from logkernel.plugins.spark import worker
worker.freeze_modules()
aside = gc.get_freeze_count()
assert aside > 1000
kept = [[] for _ in range(1000)]
worker.freeze_modules()
assert gc.get_freeze_count() <= aside
import logkernel.table.query
worker.freeze_modules()
assert gc.get_freeze_count() > aside
"""
    subprocess.run([sys.executable, "-c", text], check=True)


def test_a_worker_loads_no_http_for_a_registry_that_nobody_named() -> None:
    text = """
import sys
from logkernel.plugins.spark import typed
assert "urllib.request" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", text], check=True)
