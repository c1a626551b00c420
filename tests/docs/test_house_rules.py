"""Rules for tests, read from their source: each can fail, none sleeps for a fixed time, names say a claim, and what is
private stays so."""

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
    "golden/recording.py": "what one part of Kafka tells, another may not have heard of yet",
    "golden/sasl/record.py": "a session of Kafka's ends by its clock",
    "contracts/test_consumer_ends.py": "time for the driver's thread to fetch what a wakeup must not lose",
    "contracts/test_consumer_groups.py": "longer than max.poll.interval.ms, which runs by the real clock",
    "interop/coordinator_steps/classic_groups.py": "a request on another connection has to arrive first",
    "interop/killing.py": "a random time before a kill",
}
"""File → why it sleeps outside a loop that looks for a condition."""

PUBLIC_UNDERSCORES = {"_replace", "_asdict", "_fields", "_make", "_exit"}
"""Of named tuples, and of `os`."""
POKES: dict[str, int] = {
    "broken_rules.py": 2,
    "contracts/admin/test_client.py": 3,
    "contracts/test_offset_folding.py": 2,
    "contracts/test_record_calls.py": 1,
    "docs/test_pipelines_page.py": 1,
    "interop/once_copy.py": 1,
    "interop/test_own_faults.py": 1,
    "interop/test_spark_read.py": 1,
    "scenarios/admin/test_metadata_compaction.py": 3,
    "scenarios/broker/conftest.py": 2,
    "scenarios/broker/test_refusals.py": 2,
    "scenarios/cleanup/test_cleaner_turns.py": 4,
    "scenarios/cleanup/test_cleaning_faults.py": 1,
    "scenarios/client/test_consumer_settings.py": 2,
    "scenarios/client/test_fast_path.py": 3,
    "scenarios/client/test_producer_settings.py": 2,
    "scenarios/client/test_shutdown.py": 4,
    "scenarios/embedded/test_service_host.py": 2,
    "scenarios/transactions/conftest.py": 1,
    "scenarios/transactions/test_transactions_simulation.py": 1,
    "simulation/cluster/mutants/controllers.py": 5,
    "simulation/cluster/mutants/elections.py": 7,
    "simulation/cluster/mutants/followers.py": 4,
    "simulation/cluster/mutants/producers.py": 1,
    "simulation/storage/test_moving.py": 2,
    "simulation/world/world_mutants.py": 1,
    "unit/broker/test_replay_collector.py": 1,
    "unit/cli/test_lines.py": 2,
    "unit/cli/test_pipeline.py": 1,
    "unit/client/test_admin_machine.py": 1,
    "unit/client/test_polling_driver.py": 8,
    "unit/client/test_sender.py": 2,
    "unit/client/test_transactions.py": 1,
    "unit/client/test_turns.py": 2,
    "unit/compression/test_formats.py": 1,
    "unit/groups/test_groups_timers.py": 2,
    "unit/kernel/test_attrs_lite.py": 3,
    "unit/record/test_crc.py": 5,
    "unit/record/test_loops_choice.py": 2,
    "unit/spark/test_committing.py": 1,
    "unit/spark/test_pipeline_runner.py": 3,
    "unit/spark/test_sources.py": 1,
    "unit/spark/test_stream.py": 1,
    "unit/spark/test_writing.py": 2,
    "unit/storage/test_log.py": 1,
    "unit/table/test_remote.py": 1,
    "unit/tcp/test_busy_poll.py": 5,
    "unit/tcp/test_client_withheld.py": 1,
    "unit/tcp/test_response_buffer.py": 1,
    "unit/tcp/test_tcp_channel.py": 1,
    "unit/tcp/test_tcp_crowd.py": 2,
    "unit/tcp/test_tcp_flow.py": 1,
    "unit/tcp/test_tcp_schemas.py": 1,
    "zookeepers.py": 1,
}
"""File → how often it reaches for a private name of something else. Give what it needs a public name, or test by
effects, and lower the number; it must not grow."""

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


def pokes(tree: ast.AST) -> Iterator[str]:
    """Private names that are taken of, or set on, something other than `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            names = [] if own else [node.attr]
        elif isinstance(node, ast.Call) and called(node) in ("setattr", "getattr", "delattr", "object"):
            names = [word.value for word in node.args[1:2] if isinstance(word, ast.Constant)]
        else:
            continue
        for name in names:
            if isinstance(name, str) and name[:1] == "_" != name[1:2] and name not in PUBLIC_UNDERSCORES:
                yield name


def test_no_test_reaches_for_more_private_names() -> None:
    found = {path: count for path, tree in trees().items() if (count := len(list(pokes(tree))))}
    assert found == POKES, "use a public name, or test by effects; where there are fewer now, lower the number"


@pytest.mark.parametrize(
    ("source", "private"),
    [
        ("log._broker.close()", ["_broker"]),
        ("self._log.append(1)", []),
        ("self.log._broker", ["_broker"]),
        ("facts._replace(size=1)", []),
        ("kind.__name__", []),
        ("monkeypatch.setattr(driver, '_selector', x)", ["_selector"]),
    ],
)
def test_what_counts_as_a_poke(source: str, private: list[str]) -> None:
    assert list(pokes(ast.parse(source))) == private


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
