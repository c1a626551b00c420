"""The one thing that pyproject.toml cannot say: extensions that may fail to build.

Two kinds. Some are written in Cython (.pyx), a build requirement. The hot path is the very
Python that stands in the tree, compiled (docs/decisions/029-the-hot-path-compiled.md). That only happens for a wheel:
what an editable install imports are the files that one edits. Where no compiler is there, `optional` turns the failure
into a warning, and Python runs the same files.
"""

import os

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

RECORD = "core/logkernel/record"
PARTS = ("_compaction", "_decoding", "_encoding", "_handing", "_rows", "_sending", "_varints")
INCLUDED = [f"{RECORD}/{name}.pxi" for name in PARTS]

HOT = (
    *(f"broker.{name}" for name in ("broker", "fetch", "fetch_sessions", "produce", "replica", "services")),
    "partition.leader",
    *(f"record.{name}" for name in ("batch", "validate")),
    *(f"storage.{name}" for name in ("log", "segment")),
    *(f"plugins.services.groups.{name}" for name in ("loading", "machine", "offsets", "shard")),
    *(f"plugins.transport.tcp.{name}" for name in ("connection", "receiving", "sending", "server")),
    *(f"plugins.transport.tcp.apis.{name}" for name in ("fetch", "offset_commit", "produce")),
)
"""What every produce, fetch and commit goes through in the broker; the names are under `logkernel`."""


class BuildExt(build_ext):
    def finalize_options(self):
        super().finalize_options()
        if self.inplace or self.editable_mode:
            self.extensions = [extension for extension in self.extensions if extension not in compiled_python]
        self.parallel = self.parallel or os.cpu_count()

    def run(self):
        hot = [extension for extension in self.extensions if extension in compiled_python]
        # An annotation says what the type checker holds callers to; it must not become a check or a C type there.
        made = self.translated(hot, {"annotation_typing": False})
        made |= self.translated([extension for extension in self.extensions if extension not in hot], {})
        # What this Cython cannot translate stays Python.
        self.extensions = [extension for extension in self.extensions if extension.name in made]
        for extension in self.extensions:
            extension.sources = made[extension.name]
        super().run()

    def translated(self, extensions, directives):
        """Name → C files, by Cython in processes: setuptools would call it in the threads of `parallel`."""
        if not extensions:
            return {}
        from Cython.Build import cythonize

        made = cythonize(
            extensions,
            build_dir="build/cython",
            nthreads=os.cpu_count() or 1,
            exclude_failures=True,
            language_level=3,
            compiler_directives=directives,
        )
        return {extension.name: extension.sources for extension in made}


# Not -O1, which compiles in half the time: it leaves what only errors run among the rest, and a broker that was idle
# has no line of its code in the nearer caches. Not -O3, for its size.
FLAGS = ["-O2", "-g0"] if os.name == "posix" else []
compiled_python = [
    Extension(
        f"logkernel.{name}",
        [f"core/logkernel/{name.replace('.', '/')}.py"],
        extra_compile_args=FLAGS,
        optional=True,
    )
    for name in HOT
]

setup(
    cmdclass={"build_ext": BuildExt},
    ext_modules=[
        Extension("logkernel._slots", ["core/logkernel/_slots.pyx"], optional=True),
        *(
            Extension(f"logkernel.record.{name}", [f"{RECORD}/{name}.pyx"], depends=INCLUDED, optional=True)
            for name in ("_codec", "_columns")
        ),
        *compiled_python,
    ],
)
