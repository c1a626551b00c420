"""`logkernel.contracts` gives each name from its kind's file, and imports that file no earlier."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from logkernel import contracts

FOLDER = Path(contracts.__file__).parent
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def defined(module: str) -> set[str]:
    """The public names that a kind's file defines at its top."""
    body = ast.parse((FOLDER / f"{module}.py").read_text()).body
    found = {node.name for node in body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    aliases = [node.targets[0] for node in body if isinstance(node, ast.Assign)]
    aliases += [node.target for node in body if isinstance(node, ast.AnnAssign)]
    return {
        name for name in (*found, *(alias.id for alias in aliases if isinstance(alias, ast.Name))) if name[0] != "_"
    }


def seen_by_type_checkers() -> dict[str, str]:
    """Name → file, as the block for type checkers says."""
    tree = ast.parse((FOLDER / "__init__.py").read_text())
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    own = [node for node in found if node.module and node.module.startswith(f"{contracts.__name__}.")]
    return {str(alias.asname): str(node.module).rpartition(".")[2] for node in own for alias in node.names}


@pytest.mark.parametrize("module", FILES)
def test_every_contract_of_a_file_is_given(module: str) -> None:
    given = {name for name, home in seen_by_type_checkers().items() if home == module}
    assert given == defined(module)


def test_type_checkers_and_programs_see_the_same_names() -> None:
    assert sorted(seen_by_type_checkers()) == sorted(contracts.__all__)


@pytest.mark.parametrize("name", sorted(contracts.__all__))
def test_a_name_comes_from_the_file_that_type_checkers_see(name: str) -> None:
    module = __import__(f"{contracts.__name__}.{seen_by_type_checkers()[name]}", fromlist=["_"])
    assert getattr(contracts, name) is getattr(module, name)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Codecs'"):
        _ = contracts.Codecs


def test_the_package_alone_imports_no_kind() -> None:
    program = "import sys, logkernel.contracts; print([m for m in sys.modules if m.startswith('logkernel.contracts.')])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "[]"
