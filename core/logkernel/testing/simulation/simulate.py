"""Run histories seed by seed, find the first that breaks a promise, and make its schedule of faults small.

    report = simulate(1000)                                    the built-in elections, drawn by each seed
    report = simulate(1000, election="mine", plugins=[mine])   an election of yours
    report = simulate(1000, isr="mine", plugins=[mine])        an ISR policy of yours
    report = simulate(100, level="world")                      real brokers and clients, on simulated disks

Raises SimulationFailed for the first seed that breaks a promise.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count
from typing import Final
from typing import Protocol as TypingProtocol

from logkernel.attrs_lite import field, mutable
from logkernel.config.broker import BrokerConfig
from logkernel.contracts import ElectionStrategy
from logkernel.errors import ConfigError
from logkernel.kernel import Kernel
from logkernel.testing.simulation.chronicle import Chronicle, Violation
from logkernel.testing.simulation.fault import Fault
from logkernel.testing.simulation.protocol import Protocol
from logkernel.testing.simulation.protocol.rare import ENOUGH, RARE
from logkernel.testing.simulation.protocol.schedule import World, draw_schedule
from logkernel.testing.simulation.shrink import shrink

PROTOCOL: Final = "protocol"
"""The machines of replication over logs that are lists: thousands of histories a minute."""
WORLD: Final = "world"
"""Real brokers over simulated disks and real clients: a history a second."""
LEVELS: Final = (PROTOCOL, WORLD)
MOST_TRIES: Final = {PROTOCOL: 120, WORLD: 60}
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


class RunnableHistory(TypingProtocol):
    """A simulated history that has not been run yet."""

    @property
    def chronicle(self) -> Chronicle: ...
    def run(self) -> object: ...


class Simulation:
    """Histories of one election, or of the built-in ones, and of one ISR policy."""

    def __init__(
        self,
        election: str | None = None,
        isr: str = "time",
        settings: Mapping[str, str] | None = None,
        plugins: Iterable[object] = (),
        level: str = PROTOCOL,
    ) -> None:
        """Raises PluginError where no plugin gives that election or ISR policy, InvalidConfig for a bad setting."""
        if level not in LEVELS:
            raise ConfigError(f"level={level!r} is not known; use one of {', '.join(LEVELS)}")
        self.election = election
        self.level = level
        self._plugins = tuple(plugins)
        self._topics = {"isr": isr, **({} if election is None else {"election": election}), **(settings or {})}
        self._kernel = Kernel(plugins=self._plugins)
        self._strategies: dict[str, ElectionStrategy] = {}
        config = BrokerConfig.load(None, (), self._kernel.declarations())
        config.validate_topic(settings or {})
        self._plugin_settings = config.topic_settings(settings).plugin
        if election is not None:
            self._strategy(election)
        self._make_isr = partial(self._kernel.isr, isr, self._plugin_settings)
        self._make_isr()
        named = [
            ("--level", None if level == PROTOCOL else level),
            ("--election", election),
            ("--isr", None if isr == "time" else isr),
        ]
        named += [("--set", f"{name}={value}") for name, value in (settings or {}).items()]
        self._options = "".join(f" {option} {value}" for option, value in named if value is not None)

    def _strategy(self, name: str) -> ElectionStrategy:
        if name not in self._strategies:
            self._strategies[name] = self._kernel.election(name, self._plugin_settings)
        return self._strategies[name]

    def history(self, seed: int, schedule: Iterable[Fault] | None = None) -> RunnableHistory:
        """Return the history of `seed`, to be run with `run`."""
        if self.level == WORLD:
            return self._world(seed, schedule)
        world = World.draw(seed)
        name = self.election or ("unclean" if world.unclean else "clean")
        return Protocol(seed, self._strategy(name), self._make_isr, world=world, schedule=schedule)

    def _world(self, seed: int, schedule: Iterable[Fault] | None) -> RunnableHistory:
        from logkernel.testing.simulation.world import World as RealWorld  # it loads brokers and clients

        return RealWorld(seed, schedule=schedule, plugins=self._plugins, settings=self._topics)

    def _drawn(self, seed: int) -> Sequence[Fault]:
        if self.level == PROTOCOL:
            return draw_schedule(seed, World.draw(seed))
        from logkernel.testing.simulation.world.schedule import Shape
        from logkernel.testing.simulation.world.schedule import draw_schedule as draw_world_schedule

        return draw_world_schedule(seed, Shape.draw(seed))

    def rare(self) -> tuple[int, Sequence[str]]:
        """After how many seeds each of these states has to be seen."""
        if self.level == PROTOCOL:
            return ENOUGH, RARE
        from logkernel.testing.simulation.world import rare

        return rare.ENOUGH, rare.RARE

    def run(self, seed: int) -> Chronicle:
        """Raises SimulationFailed."""
        history = self.history(seed)
        try:
            history.run()
        except Exception as error:
            raise self._failure(seed, _what(error)) from error
        return history.chronicle

    def _failure(self, seed: int, what: str) -> SimulationFailed:
        drawn = self._drawn(seed)
        faults = shrink(drawn, lambda part: self._fails(seed, part) is not None, MOST_TRIES[self.level])
        history = self.history(seed, faults)
        try:
            history.run()
        except Exception as error:
            what = _what(error)
        return SimulationFailed(seed, what, faults, len(drawn), history.chronicle.trace, self._options)

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
    level: str = PROTOCOL,
    seconds: float | None = None,
    on_history: Callable[[SimulationReport], object] | None = None,
) -> SimulationReport:
    """Run a simulated cluster for each seed, and check after every event that nothing promised is broken.

    `seeds` is how many, from `first` on, or which. `election` names the strategy that decides, a plugin's of
    `plugins` or an installed one's; without it each seed draws `clean` or `unclean`. `isr` names the ISR policy, and
    `settings` are the topics'. `level` is "protocol" (the machines of replication alone) or "world" (real brokers and
    clients), where `settings` may also name a `placement`. `seconds` (of wall time) ends the run early. `on_history` is
    called after each history with the report as it stands.

    Raises SimulationFailed for the first seed that breaks a promise, PluginError where no plugin gives that election or
    policy, InvalidConfig for a bad setting.
    """
    simulation = Simulation(election, isr, settings, plugins, level)
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
    enough, rare = simulation.rare()
    if election is None and report.histories >= enough:
        report.unseen = [name for name in rare if not report.rare[name]]
    return report


def endless(first: int = 0) -> Iterator[int]:
    """Seeds for a run that time ends."""
    return count(first)


def _what(error: Exception) -> str:
    return error.what if isinstance(error, Violation) else f"{type(error).__name__}: {error}"
