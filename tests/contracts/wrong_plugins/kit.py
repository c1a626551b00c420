"""Wrong in what every plugin keeps to, whatever its kind."""

from __future__ import annotations

from typing import Any

from logkernel.hookspecs import hookimpl
from logkernel.kernel import Kernel
from wrong_plugins import Wrong, made


class Unnamed:
    """A partitioner under no name that `logkernel_names` gives."""

    @hookimpl
    def logkernel_partitioner(self, name: str) -> object:
        return Kernel().partitioner("default", {}, 1) if name == "unnamed" else None


class Greedy:
    """A partitioner for whatever name."""

    @hookimpl
    def logkernel_partitioner(self, name: str) -> object:
        return Kernel().partitioner("default", {}, 1)

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("partitioner", "greedy")]


class Impatient(Greedy):
    """It fails for names that it does not know."""

    @hookimpl
    def logkernel_partitioner(self, name: str) -> Any:
        return {"greedy": object()}[name]


WRONG = [
    Wrong("test_it_has_the_methods_of_its_contract", "lacks partition, on_batch_full; see", made(lambda _: object())),
    Wrong(
        "test_settings_may_choose_it_by_its_name",
        r"logkernel_names does not list \('partitioner', 'unnamed'\)",
        {"name": "unnamed", "plugins": [Unnamed()]},
    ),
    Wrong(
        "test_it_answers_to_its_own_name_only",
        "returned .* for 'no-plugin-has-this-name'; return None for other names",
        {"name": "greedy", "plugins": [Greedy()]},
    ),
    Wrong(
        "test_it_answers_to_its_own_name_only",
        "KeyError.*return None for other names",
        {"name": "greedy", "plugins": [Impatient()]},
    ),
]
