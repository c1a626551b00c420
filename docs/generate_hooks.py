"""Writes docs/hooks.md from `logkernel.hookspecs` and `logkernel.contracts`; a test keeps the page fresh.

python docs/generate_hooks.py
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType

from logkernel import contracts, hookspecs, vocabulary
from logkernel.config import definitions, topic

PAGE = Path(__file__).resolve().parent / "hooks.md"
PROVIDES = {
    "logkernel_partitioner": "Partitioner",
    "logkernel_interceptor": "Interceptor",
    "logkernel_metrics_reporter": "MetricsReporter",
    "logkernel_connector": "Connector",
    "logkernel_codec": "Codec",
    "logkernel_election": "ElectionStrategy",
    "logkernel_isr": "IsrPolicy",
    "logkernel_placement": "PlacementStrategy",
    "logkernel_cleanup": "CleanupPolicy",
    "logkernel_compaction_strategy": "CompactionStrategy",
    "logkernel_produce_interceptor": "ProduceInterceptor",
    "logkernel_fetch_filter": "FetchFilter",
    "logkernel_quota": "Quota",
    "logkernel_client_quota_callback": "ClientQuotaCallback",
    "logkernel_authorizer": "Authorizer",
    "logkernel_password_checker": "PasswordChecker",
    "logkernel_assignor": "Assignor",
    "logkernel_task_assignor": "TaskAssignor",
    "logkernel_transport": "Transport",
    "logkernel_coordination": "Coordination",
    "logkernel_service": "Service",
    "logkernel_decoder": "RecordDecoder",
}
"""Each providing hook and the contract of what it hands out."""
FURTHER = ("Pipeline", "ClusterQuotaCallback")
"""Contracts of what those hand out in their turn."""

VALUES = (contracts, vocabulary, definitions, topic)
"""Where the classes come from that a hook or a contract gives or takes."""

HEAD = """\
# Hooks

<!-- Written by docs/generate_hooks.py from the code. Change the docstrings there, then run it. -->

{doc}

[docs/plugins](plugins/index.md) has a tutorial, and a page for each kind with an example.
[`examples/acme-plugins`](../examples/acme-plugins) is a distribution that you can copy.
"""


def _signature(node: ast.FunctionDef) -> str:
    """`name(arguments) -> result` as it stands in the source, on one line where it fits."""
    parts = [ast.unparse(part) for part in node.args.args]
    result = ast.unparse(node.returns) if node.returns else "None"
    line = f"def {node.name}({', '.join(parts)}) -> {result}"
    if len(line) <= 100:
        return line
    return f"def {node.name}(\n    " + ",\n    ".join(parts) + f",\n) -> {result}"


def _hooks() -> list[tuple[ast.FunctionDef, bool]]:
    """Every hook in source order, and whether it provides (first result wins) or tells."""
    tree = ast.parse(inspect.getsource(hookspecs))
    found = []
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("logkernel_"):
            first = any("firstresult" in ast.unparse(mark) for mark in node.decorator_list)
            found.append((node, first))
    return found


def _hook(node: ast.FunctionDef) -> str:
    text = f"### `{node.name}`\n\n```python\n{_signature(node)}\n```\n\n{ast.get_docstring(node) or ''}\n"
    contract = PROVIDES.get(node.name)
    return f"{text}\nHands out: [`{contract}`](#{contract.lower()}).\n" if contract else text


def _contract(name: str) -> str:
    source = _source(name)
    return f"### `{name}`\n\n```python\n{source}\n```\n"


def values(seen: Iterable[str]) -> list[str]:
    """Names of every further class of `contracts`, and of those elsewhere that `seen` (names of hooks and contracts)
    name, and they in turn; sorted."""
    hooks = {node.name: _signature(node) for node, _ in _hooks()}
    shown = set(PROVIDES.values()) | set(FURTHER)
    found = {name for name in contracts.__all__ if _home(name) is contracts} - shown
    rest = [*seen, *found]
    while rest:
        name = rest.pop()
        text = hooks[name] if name in hooks else _source(name)
        for used in set(re.findall(r"\b[A-Z]\w+\b", text)) - shown - found:
            if _home(used) is not None:
                found.add(used)
                rest.append(used)
    return sorted(found)


def _home(name: str) -> ModuleType | None:
    """The module, or the folder of modules, that defines a class of that name."""
    for module in VALUES:
        one = getattr(module, name, None)
        if inspect.isclass(one) and f"{one.__module__}.".startswith(f"{module.__name__}."):
            return module
    return None


def _source(name: str) -> str:
    return inspect.getsource(getattr(_home(name), name)).rstrip()


def _kinds() -> str:
    rows = "\n".join(f"- `{kind}`: `{hook}`" for kind, hook in hookspecs.KINDS.items())
    head = "`logkernel_names` returns (kind, name) of everything that a plugin provides. The kinds and their hooks:"
    return f"{head}\n\n{rows}\n"


SETTINGS = """\
Declare settings with `logkernel_settings`, and read them by their full names, typed and checked:

- a broker's: `settings.get("acme.depth")`;
- a topic's: `settings["acme.depth"]` of the hook that gets them
  ([a table](plugins/index.md#which-settings-a-hook-gets)), or `settings.plugin["acme.depth"]` where a contract gives
  you all of the topic's settings (`LogFacts.settings` is such a `TopicSettings`).
"""


def page() -> str:
    """The whole page."""
    hooks = _hooks()
    provide = [_hook(node) for node, first in hooks if first]
    describe = [_hook(node) for node, first in hooks if not first and ast.unparse(node.returns or node) != "None"]
    tell = [_hook(node) for node, first in hooks if not first and ast.unparse(node.returns or node) == "None"]
    sections = [
        HEAD.format(doc=inspect.getdoc(hookspecs)),
        "## Hooks that provide\n",
        *provide,
        "## Hooks that describe a plugin\n",
        *describe,
        "## Hooks that tell\n",
        *tell,
        "## Contracts\n",
        *(_contract(name) for name in (*PROVIDES.values(), *FURTHER)),
        "## Values and doors\n",
        "The classes that hooks and contracts take and return.\n",
        *(_contract(name) for name in values([*(node.name for node, _ in hooks), *PROVIDES.values(), *FURTHER])),
        "## Kinds\n",
        _kinds(),
        "## Settings of a plugin\n",
        SETTINGS,
    ]
    return "\n".join(sections)


if __name__ == "__main__":
    PAGE.write_text(page())
