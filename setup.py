"""The one thing that pyproject.toml cannot say: an extension that may fail to build.

setuptools hands the .pyx to Cython (a build requirement) while it builds the extension; where no
compiler is there, `optional` turns the failure into a warning, and plain Python does the work.
"""

from setuptools import Extension, setup

RECORD = "core/logkernel/record"

setup(
    ext_modules=[
        Extension("logkernel.record._codec", [f"{RECORD}/_codec.pyx"], depends=[f"{RECORD}/_rows.pxi"], optional=True)
    ]
)
