"""The one thing that pyproject.toml cannot say: extensions that may fail to build.

Entry points are read at installation: install again where they changed.

setuptools hands the .pyx to Cython (a build requirement) while it builds an extension; where no
compiler is there, `optional` turns the failure into a warning, and plain Python does the work.
"""

from setuptools import Extension, setup

RECORD = "core/logkernel/record"
GROUPS = "core/logkernel/plugins/services/groups"
PARTS = ("_compaction", "_decoding", "_encoding", "_handing", "_memory", "_rows", "_sending", "_varints")
INCLUDED = [f"{RECORD}/{name}.pxi" for name in PARTS]

setup(
    ext_modules=[
        Extension("logkernel._slots", ["core/logkernel/_slots.pyx"], optional=True),
        *(
            Extension(f"logkernel.record.{name}", [f"{RECORD}/{name}.pyx"], depends=INCLUDED, optional=True)
            for name in ("_loops", "_columns")
        ),
        Extension("logkernel.plugins.services.groups._folding", [f"{GROUPS}/_folding.pyx"], optional=True),
    ]
)
