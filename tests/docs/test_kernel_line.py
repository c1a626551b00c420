"""docs/architecture.md draws a line round the kernel; what an embedder imports stays behind it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import logkernel

DOC = Path(__file__).parents[2] / "docs" / "architecture.md"
PACKAGE = Path(logkernel.__file__).parent
ROW = re.compile(r"^\| `(?P<names>[^|]+)` \| [^|]+ \| (?P<lines>[\d,]+) \|$", re.MULTILINE)
LOOSELY = 0.25
"""How far a number of lines may be from the truth."""
OUTSIDE = ("pluggy", "crc32c", "_crc32c", "cython_runtime", "_cython_")
"""What else an open log may import, by how the names begin."""
HEAVY = ("asyncio", "ssl", "multiprocessing", "importlib.metadata", "yaml", "attrs", "uvloop", "pyarrow")

PROGRAM = """
import sys, tempfile
import logkernel
with tempfile.TemporaryDirectory() as folder, logkernel.open(folder) as log:
    log.create_topic("t")
    log.append("t", b"value", key=b"key")
    assert [record.value for record in log.read("t")] == [b"value"]
    for name, module in sorted(sys.modules.items()):
        print(name, getattr(module, "__file__", None) or "-")
"""


@pytest.fixture(scope="module")
def loaded() -> dict[str, str]:
    """Module → file, once a log was opened, written to and read in a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, check=True)
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def rooms() -> dict[str, int]:
    """Room or module of the page's table → lines of its row, counted to the row's first name."""
    section = DOC.read_text().split("## The kernel", 1)[1].split("\n## ", 1)[0]
    found = {}
    for row in ROW.finditer(section):
        first, *rest = row["names"].split("`, `")
        found[first] = int(row["lines"].replace(",", ""))
        found.update(dict.fromkeys(rest, 0))
    assert found, "the page has no table"
    return found


def room_of(module: str) -> str:
    """The name of the page's table under which `module` falls; "" where it has none."""
    inner = module.removeprefix("logkernel.")
    fitting = [name for name in rooms() if inner == name or inner.startswith(f"{name}.")]
    return max(fitting, key=len, default="")


def test_the_page_opens_with_the_line() -> None:
    sections = re.findall(r"^## (.+)$", DOC.read_text(), re.MULTILINE)
    assert sections[0].startswith("The kernel")


def test_an_open_log_imports_what_the_page_lists(loaded: dict[str, str]) -> None:
    ours = [name for name in loaded if name.startswith("logkernel.")]
    assert [name for name in ours if not room_of(name)] == [], "add it to the table, or import it where it is needed"
    unused = [room for room in rooms() if not any(room_of(name) == room for name in ours)]
    assert unused == [], "the page lists what is not loaded"


def test_an_open_log_imports_nothing_heavy(loaded: dict[str, str]) -> None:
    assert [name for name in HEAVY if name in loaded] == []
    top = {name.partition(".")[0] for name in loaded}
    foreign = top - set(sys.stdlib_module_names) - {"logkernel", "__main__"}
    stray = [name for name in foreign if not name.startswith(OUTSIDE) and not is_of_the_interpreter(loaded[name])]
    assert stray == []


def is_of_the_interpreter(file: str) -> bool:
    """What site loads by itself: `.pth` files' own modules, and what names no file."""
    return file == "-" or "_distutils_hack" in file or Path(file).stem.startswith(("__editable__", "sitecustomize"))


def test_the_sizes_are_about_right(loaded: dict[str, str]) -> None:
    sizes: dict[str, int] = {}
    told = rooms()
    current = ""
    owner = {}
    for name, lines in told.items():
        current = name if lines else current
        owner[name] = current
    for module, file in loaded.items():
        if module.startswith("logkernel.") and file.endswith(".py"):
            first = owner[room_of(module)]
            sizes[first] = sizes.get(first, 0) + len(Path(file).read_text().splitlines())
    wrong = {room: (told[room], size) for room, size in sizes.items() if abs(told[room] - size) > LOOSELY * size + 50}
    assert wrong == {}, "room: (lines on the page, lines)"
