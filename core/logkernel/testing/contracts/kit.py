"""The base of the contract kits: where the plugin under test comes from, and how a broken promise is told.

To add a kit for a kind of plugins:

1. One file here with one class `…Contract(Kit[…])`. `kind` is the kind that `logkernel_names` gives; `provide` gets the
   object from a kernel; each promise is a method `test_…` without fixtures or parameters, so that it can be called
   without pytest. It says what is wrong by `self.broken("problem; remedy")`, or lets `self.calling(…)` say it.
2. Its name in `_HOMES` of this package.
3. Wrong plugins in `tests/contracts/test_kits_catch.py`, one for each promise at least; a test there asks for them.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from types import SimpleNamespace
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Flaky
from hypothesis.strategies import SearchStrategy

from logkernel.attrs_lite import mutable
from logkernel.config.broker import BrokerConfig
from logkernel.errors import LogkernelError, PluginError
from logkernel.hookspecs import KINDS, hookimpl
from logkernel.installed import entry_points
from logkernel.kernel import GROUP, Kernel

P = TypeVar("P")
UNKNOWN = "no-plugin-has-this-name"
UNDER_TEST = "under-test"
QUICK = (Phase.explicit, Phase.generate)
SHOWN = 80
"""Characters of a value in a message."""


class ContractBroken(AssertionError):
    """A plugin breaks a promise of its contract. The text says which, and how to keep it."""


def for_all(count: int, /, **strategies: SearchStrategy[Any]) -> Callable[[Callable[..., None]], Callable[[Any], None]]:
    """Let hypothesis call a test of a kit with so many examples, however slow the machine is."""

    def decorate(test: Callable[..., None]) -> Callable[[Any], None]:
        def run(self: Kit[Any]) -> None:
            __tracebackhide__ = True

            def holds(**drawn: Any) -> None:
                __tracebackhide__ = True
                test(self, **drawn)

            holds.__name__ = test.__name__
            chosen = settings(
                max_examples=self.tries(count),
                phases=QUICK if self.quick else [*QUICK, Phase.reuse, Phase.shrink],
                derandomize=self.quick,
                deadline=None,
                report_multiple_bugs=False,
                suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
            )
            try:
                chosen(given(**strategies)(holds))()
            except Flaky as error:
                raise _first_broken(error) from None

        # Not by functools.wraps: pytest would take the names of what is drawn for fixtures.
        run.__name__, run.__qualname__, run.__doc__ = test.__name__, test.__qualname__, test.__doc__
        return run

    return decorate


def _first_broken(flaky: Flaky) -> Exception:
    """What a plugin did that does not do the same each time."""
    for error in getattr(flaky, "exceptions", ()):
        if isinstance(error, ContractBroken):
            error.add_note("The same call did not fail again: the plugin depends on chance, time or earlier calls.")
            return error
    return flaky


def shown(value: object) -> str:
    """A value in a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… ({len(text)} characters)"


@mutable
class Memory:
    """Bytes of Python's memory that some work took."""

    kept_bytes: int = 0
    """Still taken when the work was done."""
    peak_bytes: int = 0
    """Taken at most at a time."""


@contextmanager
def traced_memory() -> Iterator[Memory]:
    """Yield a `Memory` that is filled when the work inside is done."""
    memory = Memory()
    tracemalloc.start()
    try:
        yield memory
        memory.kept_bytes, memory.peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()


class Kit(Generic[P]):
    """The promises of one kind of plugins as tests. Subclass it, and say which plugin is tested:

        class TestMine(PartitionerContract):
            name = "mine"

    `name` finds an installed plugin, or one of the modules and objects in `plugins`. Instead, override `make` to return
    a new object on each call."""

    kind: ClassVar[str]
    """The kind, as `logkernel_names` gives it."""
    name: str = ""
    """The plugin's name, as a setting would choose it."""
    plugins: Sequence[object] = ()
    """Modules or objects with hooks that are not installed."""
    settings: ClassVar[Mapping[str, str]] = {}
    """Settings as an operator writes them: the topic's or the broker's, as the hook of this kind gets them."""
    effort: float = 1.0
    """10 tries ten times as many examples."""
    quick: bool = False
    """Try the same examples in each run, and do not look for the smallest one that breaks a promise."""
    methods: ClassVar[Sequence[str]] = ()
    """What the object has to have."""

    def make(self) -> P:
        """Return a new object of the plugin."""
        if not self.name:
            raise TypeError(f"{type(self).__name__} tests nothing; set `name`, or override `make`")
        return self.provide(self.kernel, self.name)

    def provide(self, kernel: Kernel, name: str) -> P:
        """Return a new object from a kernel, as a broker or client asks for it."""
        raise TypeError(f"{type(self).__name__} does not say how to get {name} from a kernel; override `provide`")

    # ------------------------------------------------------------ what every plugin keeps to

    def test_it_has_the_methods_of_its_contract(self) -> None:
        made = self.make()
        lacking = [name for name in self.methods if not hasattr(made, name)]
        if lacking:
            self.broken(f"{shown(made)} lacks {', '.join(lacking)}; see logkernel.contracts")

    def test_settings_may_choose_it_by_its_name(self) -> None:
        """Without `logkernel_names`, a setting that names the plugin is refused."""
        self.only_by_name()
        known = self.kernel.names(self.kind)
        if self.name not in known:
            self.broken(f"logkernel_names does not list ({self.kind!r}, {self.name!r}) but {known}; return it there")

    def test_it_answers_to_its_own_name_only(self) -> None:
        """A hook that returns an object for every name takes the place of all other plugins."""
        self.only_by_name()
        try:
            found = self.provide(self.kernel, UNKNOWN)
        except PluginError as error:
            if UNKNOWN not in str(error) or " failed in " in str(error):
                self.broken(f"{error}; return None for other names")
        else:
            self.broken(f"{KINDS[self.kind]} returned {shown(found)} for {UNKNOWN!r}; return None for other names")

    # ------------------------------------------------------------ for the kits

    @cached_property
    def kernel(self) -> Kernel:
        """A kernel with what is installed, and with `plugins`."""
        return Kernel(plugins=self.not_installed())

    def not_installed(self) -> list[object]:
        """Those of `plugins` that no entry point names: a kernel refuses one that it has already."""
        modules = {point.target for point in entry_points(GROUP)}
        return [one for one in self.plugins if getattr(one, "__name__", None) not in modules]

    @cached_property
    def config(self) -> BrokerConfig:
        """A broker's settings, those of all plugins included."""
        return BrokerConfig.load(None, (), self.kernel.declarations())

    @cached_property
    def topic_settings(self) -> Any:
        """`settings` as those of a topic: a `TopicSettings`."""
        self.config.validate_topic(self.settings)
        return self.config.topic_settings(self.settings)

    def only_by_name(self) -> None:
        """Skip a test of hooks where the suite overrides `make`."""
        if not self.name:
            pytest.skip("this suite makes its object itself; set `name` to test the hooks, too")

    def as_plugins(self) -> tuple[str, Sequence[object]]:
        """The plugin under test as (name, plugins), for a broker, client or simulation."""
        if self.name:
            return self.name, self.not_installed()
        hook = KINDS[self.kind]

        def provided(name: str) -> object:
            return self.make() if name == UNDER_TEST else None

        def names() -> list[tuple[str, str]]:
            return [(self.kind, UNDER_TEST)]

        return UNDER_TEST, [SimpleNamespace(**{hook: hookimpl(provided), "logkernel_names": hookimpl(names)})]

    @cached_property
    def _source(self) -> tuple[Kernel, str]:
        name, plugins = self.as_plugins()
        return Kernel(plugins=plugins), name

    def guarded(self) -> P:
        """Return a new object, also one of `make`, behind the guard that a broker asks it through."""
        return self.provide(*self._source)

    def tries(self, count: int) -> int:
        """So many examples or seeds, by `effort`."""
        return max(1, round(count * self.effort))

    def broken(self, problem: str) -> NoReturn:
        """Raise `ContractBroken`, which names the plugin."""
        __tracebackhide__ = True
        raise ContractBroken(f"{self.kind} {self.name or type(self).__name__}: {problem}")

    def refused(self, what: str, kind: type[Exception], act: Callable[[], Any]) -> None:
        """Call the plugin by `act`, which has to raise an error of that kind."""
        __tracebackhide__ = True
        with self.calling(what, kind):
            try:
                found = act()
            except kind:
                return
        self.broken(f"{what} returned {shown(found)}; raise {kind.__name__}")

    @contextmanager
    def calling(self, call: str, *allowed: type[Exception]) -> Iterator[None]:
        """Call the plugin inside: what it raises breaks the contract, except for `allowed`.

        A kernel's guards judge what a plugin decides; their `PluginError` says what is wrong in words of its own."""
        __tracebackhide__ = True
        let_through: tuple[type[BaseException], ...] = (ContractBroken, *allowed)
        try:
            yield
        except let_through:
            raise
        except PluginError as error:
            raise ContractBroken(str(error)) from error
        except (Exception, RecursionError) as error:
            names = " or ".join(one.__name__ for one in allowed)
            remedy = f"raise only {names}" if names else "raise nothing"
            what = f"{type(error).__name__}: {error}" if not isinstance(error, LogkernelError) else str(error)
            self.broken(f"{call} raised {what}; {remedy} there")
