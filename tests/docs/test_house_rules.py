"""Rules for tests, read from their source: each can fail, none sleeps for a fixed time, names say a claim."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
FAILING_CALLS = {"raises", "fail", "warns"}

CANNOT_FAIL: dict[str, str] = {}
"""Test function → why it needs no assertion."""

SLEEPS = {
    "contracts/test_consumer_ends.py": "time for the driver's thread to fetch what a wakeup must not lose",
    "contracts/test_consumer_groups.py": "longer than max.poll.interval.ms, which runs by the real clock",
    "interop/coordinator_steps/classic_groups.py": "a request on another connection has to arrive first",
    "interop/killing.py": "a random time before a kill",
}
"""File → why it sleeps outside a loop that looks for a condition."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def trees() -> dict[str, ast.Module]:
    """Every Python file below `tests/`, by its path there."""
    files = (path for path in TESTS.rglob("*.py") if "__pycache__" not in path.parts)
    return {str(path.relative_to(TESTS)): ast.parse(path.read_text()) for path in sorted(files)}


def called(call: ast.Call) -> str:
    function = call.func
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def calls(function: ast.AST) -> set[str]:
    return {called(node) for node in ast.walk(function) if isinstance(node, ast.Call)}


def functions(tree: ast.AST) -> Iterator[Function]:
    return (node for node in ast.walk(tree) if isinstance(node, Function))


def checks(function: Function) -> bool:
    """Whether it asserts, raises, or runs a program that must succeed."""
    for node in ast.walk(function):
        if isinstance(node, (ast.Assert, ast.Raise)):
            return True
        if isinstance(node, ast.Call):
            if called(node) in FAILING_CALLS:
                return True
            if any(word.arg == "check" and getattr(word.value, "value", None) is True for word in node.keywords):
                return True
    return False


@cache
def checking_names() -> frozenset[str]:
    """Functions of the tests that can fail, by themselves or by one that they call."""
    bodies = defaultdict(list)
    for tree in trees().values():
        for function in functions(tree):
            bodies[function.name].append(function)
    found = {name for name, same in bodies.items() if any(map(checks, same))}
    while more := {name for name in bodies.keys() - found if any(calls(one) & found for one in bodies[name])}:
        found |= more
    return frozenset(found)


def claims_of(tree: ast.Module) -> Iterator[Function]:
    return (function for function in functions(tree) if function.name.startswith("test_"))


def test_every_test_can_fail() -> None:
    idle = {
        f"{path}::{function.name}"
        for path, tree in trees().items()
        for function in claims_of(tree)
        if not checks(function) and not calls(function) & checking_names()
    }
    assert idle == CANNOT_FAIL.keys(), "assert something, or say in CANNOT_FAIL why the test cannot"


def test_a_name_says_more_than_one_word() -> None:
    short = [
        f"{path}::{function.name}"
        for path, tree in trees().items()
        for function in claims_of(tree)
        if function.name.count("_") == 1
    ]
    assert short == [], "name the claim: subject, verb, object"


def lone_sleeps(node: ast.AST, looping: bool = False) -> Iterator[ast.Call]:
    """Calls of `sleep` for more than a turn, outside a loop that looks for a condition."""
    if isinstance(node, ast.Call) and called(node) == "sleep" and not looping and ast.unparse(node.args[0]) != "0":
        yield node
    for child in ast.iter_child_nodes(node):
        yield from lone_sleeps(child, looping or isinstance(node, (ast.While, ast.For, ast.AsyncFor)))


def test_no_test_sleeps_for_a_fixed_time() -> None:
    sleeping = {path for path, tree in trees().items() if any(lone_sleeps(tree))}
    assert sleeping == SLEEPS.keys(), "wait for a condition, or say in SLEEPS why time itself must pass"


@pytest.mark.parametrize(
    ("body", "can_fail"),
    [
        ("assert x", True),
        ("with pytest.raises(ValueError): f()", True),
        ("run(['a'], check=True)", True),
        ("run(['a'])", False),
        ("f(1)", False),
    ],
)
def test_what_counts_as_a_check(body: str, can_fail: bool) -> None:
    (function,) = functions(ast.parse(f"def test_it():\n    {body}"))
    assert checks(function) == can_fail


def test_a_sleep_in_a_loop_polls() -> None:
    assert list(lone_sleeps(ast.parse("while not ready():\n    time.sleep(0.1)"))) == []
    assert list(lone_sleeps(ast.parse("asyncio.sleep(0)"))) == []
    assert len(list(lone_sleeps(ast.parse("time.sleep(0.1)")))) == 1
