"""Run histories seed by seed, find the first that breaks a promise, and make its schedule of faults small.

    report = simulate(1000)                                    the built-in elections, drawn by each seed
    report = simulate(1000, election="mine", plugins=[mine])   an election of yours
    report = simulate(1000, isr="mine", plugins=[mine])        an ISR policy of yours

Raises SimulationFailed for the first seed that breaks a promise.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count

from logkernel.attrs_lite import field, mutable
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import ElectionStrategy
from logkernel.kernel import Kernel
from logkernel.testing.simulation.fault import Fault
from logkernel.testing.simulation.protocol import Protocol, Violation
from logkernel.testing.simulation.protocol.rare import ENOUGH, RARE
from logkernel.testing.simulation.protocol.schedule import World, draw_schedule
from logkernel.testing.simulation.shrink import shrink

MOST_TRIES = 120
"""Histories that are run to make one schedule smaller."""


@mutable
class SimulationReport:
    """What a run of seeds came to."""

    histories: int = 0
    seconds: float = 0.0
    """Of CPU time."""
    rare: Counter[str] = field(factory=Counter)
    """Rare state → how often it was seen."""
    unseen: list[str] = field(factory=list)
    """Rare states that enough seeds of the built-in elections did not reach: the workload does not look there."""


class SimulationFailed(AssertionError):
    """A seed breaks a promise. The text names the seed, the faults that are enough for it, and the command that replays
    it."""

    def __init__(
        self, seed: int, what: str, faults: Sequence[Fault], drawn: int, trace: Sequence[str], options: str = ""
    ) -> None:
        """`options` are those of the command line with which the seed was run."""
        command = f"logkernel simulate --replay {seed}{options}"
        lines = [f"seed {seed}: {what}", f"{len(faults)} of {drawn} faults are enough:"]
        lines += [f"  {fault}" for fault in faults] or ["  (none)"]
        lines.append(f"Replay it: {command}")
        super().__init__("\n".join(lines))
        self.seed = seed
        self.what = what
        self.faults = tuple(faults)
        self.trace = tuple(trace)
        """Every event of the history with these faults alone."""
        self.command = command


class Simulation:
    """Histories of one election, or of the built-in ones, and of one ISR policy."""

    def __init__(
        self,
        election: str | None = None,
        isr: str = "time",
        settings: Mapping[str, str] | None = None,
        plugins: Iterable[object] = (),
    ) -> None:
        """Raises PluginError where no plugin gives that election or ISR policy, InvalidConfig for a bad setting."""
        self.election = election
        self._kernel = Kernel(plugins=plugins)
        self._strategies: dict[str, ElectionStrategy] = {}
        if election is not None:
            self._strategy(election)
        config = BrokerConfig.load(None, (), self._kernel.declarations())
        config.validate_topic(settings or {})
        self._make_isr = partial(self._kernel.isr, isr, config.topic_settings(settings).plugin)
        self._make_isr()
        named = [("--election", election), ("--isr", None if isr == "time" else isr)]
        named += [("--set", f"{name}={value}") for name, value in (settings or {}).items()]
        self._options = "".join(f" {option} {value}" for option, value in named if value is not None)

    def _strategy(self, name: str) -> ElectionStrategy:
        if name not in self._strategies:
            self._strategies[name] = self._kernel.election(name)
        return self._strategies[name]

    def history(self, seed: int, schedule: Iterable[Fault] | None = None) -> Protocol:
        """One that was not run yet."""
        world = World.draw(seed)
        name = self.election or ("unclean" if world.unclean else "clean")
        return Protocol(seed, self._strategy(name), self._make_isr, world=world, schedule=schedule)

    def run(self, seed: int) -> Protocol:
        """Raises SimulationFailed."""
        history = self.history(seed)
        try:
            return history.run()
        except Exception as error:
            raise self._failure(seed, _what(error)) from error

    def _failure(self, seed: int, what: str) -> SimulationFailed:
        drawn = draw_schedule(seed, World.draw(seed))
        faults = shrink(drawn, lambda part: self._fails(seed, part) is not None, MOST_TRIES)
        history = self.history(seed, faults)
        try:
            history.run()
        except Exception as error:
            what = _what(error)
        return SimulationFailed(seed, what, faults, len(drawn), history.trace, self._options)

    def _fails(self, seed: int, schedule: Iterable[Fault]) -> str | None:
        try:
            self.history(seed, schedule).run()
        except Exception as error:
            return _what(error)
        return None


def simulate(
    seeds: int | Iterable[int] = 100,
    *,
    first: int = 0,
    election: str | None = None,
    isr: str = "time",
    settings: Mapping[str, str] | None = None,
    plugins: Iterable[object] = (),
    seconds: float | None = None,
    on_history: Callable[[SimulationReport], object] | None = None,
) -> SimulationReport:
    """Run a simulated cluster for each seed, and check after every event that nothing promised is broken.

    `seeds` is how many, from `first` on, or which. `election` names the strategy that decides, a plugin's of
    `plugins` or an installed one's; without it each seed draws `clean` or `unclean`. `isr` names the ISR policy, and
    `settings` are the topic's. `seconds` (of wall time) ends the run early. `on_history` is called after each history
    with the report as it stands.

    Raises SimulationFailed for the first seed that breaks a promise, PluginError where no plugin gives that election or
    policy, InvalidConfig for a bad setting.
    """
    simulation = Simulation(election, isr, settings, plugins)
    report = SimulationReport()
    begun, until = time.process_time(), None if seconds is None else time.monotonic() + seconds
    for seed in range(first, first + seeds) if isinstance(seeds, int) else seeds:
        if until is not None and time.monotonic() > until:
            break
        report.rare.update(simulation.run(seed).rare)
        report.histories += 1
        report.seconds = time.process_time() - begun
        if on_history is not None:
            on_history(report)
    if election is None and report.histories >= ENOUGH:
        report.unseen = [name for name in RARE if not report.rare[name]]
    return report


def endless(first: int = 0) -> Iterator[int]:
    """Seeds for a run that time ends."""
    return count(first)


def _what(error: Exception) -> str:
    return error.what if isinstance(error, Violation) else f"{type(error).__name__}: {error}"
