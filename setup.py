"""The one thing that pyproject.toml cannot say: extensions that may fail to build.

setuptools hands the .pyx to Cython (a build requirement) while it builds an extension; where no
compiler is there, `optional` turns the failure into a warning, and plain Python does the work.
"""

from setuptools import Extension, setup

RECORD = "core/logkernel/record"

setup(
    ext_modules=[
        Extension(f"logkernel.record.{name}", [f"{RECORD}/{name}.pyx"], depends=[f"{RECORD}/_rows.pxi"], optional=True)
        for name in ("_codec", "_columns")
    ]
)
