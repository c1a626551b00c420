"""What the pure machines of a broker process were told and what they answered, written down, and played again.

`record` patches the machines' classes and the functions of `election_rules`, so that every call of the shell is a
record of a file: what it gave, what came back, and what the machine asked in between (`Oracle`). `replay` makes fresh
machines, tells them the same, and compares. What a broker did must be explained by its machines' events alone: nothing
writes their state behind their backs. A broker that is killed leaves all records but the one that it was at.
"""

from __future__ import annotations

import inspect
import pickle
import threading
from collections import Counter, deque
from collections.abc import Callable, KeysView
from enum import Enum
from io import BytesIO
from pathlib import Path
from types import FunctionType, MethodType
from typing import IO, Any

from attrs import frozen

from logkernel.controller import alter_partition, election_rules
from logkernel.controller.orders import Orders
from logkernel.controller.state import ControllerState
from logkernel.partition.follower import Follower
from logkernel.partition.leader import Leader

MACHINES: dict[str, type] = {each.__name__: each for each in (Leader, Follower, Orders, ControllerState)}
MODULES = {each.__name__: each for each in (election_rules, alter_partition)}
KNOWN_AGAIN = ("next_request",)
"""Events whose result comes back to the machine, which knows it by its identity."""
MORE = "more to ask"
"""What is noted where an answer is a method or an object of the shell, which is asked next."""
ASKED = {"Follower": ("epochs",), "Leader": ("isr_policy",)}
"""Machine → what it asks of the shell, by the names of its arguments."""
TAKE_ASKED = ("take_epochs", "take_isr_policy")
"""Events that bring another one to ask."""
VALUES = tuple(
    f"logkernel.{room}"
    for room in ("vocabulary", "errors", "contracts", "partition", "controller", "record", "requests", "plugins.isr",
                 "plugins.election")
)  # fmt: skip
"""Rooms whose objects are values: written as they are. Everything else is only itself, as a ticket is."""


def is_value(kind: type) -> bool:
    module = kind.__module__
    return not module.startswith("logkernel") or any(module == room or module.startswith(room + ".") for room in VALUES)


def fields_of(value: Any) -> dict[str, Any]:
    slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
    found = {name: getattr(value, name) for name in slots if hasattr(value, name) and name != "__weakref__"}
    return {**found, **getattr(value, "__dict__", {})}


def rebuilt(kind: type, fields: dict[str, Any]) -> Any:
    made = kind.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def keys_of(keys: list[Any]) -> KeysView[Any]:
    return dict.fromkeys(keys).keys()


class Opaque:
    """Stands for an object of the shell when a trace is played again."""

    def __init__(self, number: int) -> None:
        self.number = number


@frozen
class Parts:
    """What is noted where an answer has so many parts, which follow."""

    count: int


class Oracle:
    """Something of the shell that a machine asks; its answers are noted."""

    def __init__(self, real: Any, answers: Callable[[Any], None]) -> None:
        self._real, self._note = real, answers

    def __call__(self, *args: Any) -> Any:
        return self._noted(self._real(*args))

    def _noted(self, answer: Any) -> Any:
        if type(answer) is tuple:
            self._note(Parts(len(answer)))
            return tuple(map(self._noted, answer))
        if is_value(type(answer)):
            self._note(answer)
            return answer
        self._note(MORE)
        return Oracle(answer, self._note)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._real, name)
        if callable(found):
            self._note(MORE)
            return Oracle(found, self._note)
        self._note(found)
        return found


class Answering:
    """Stands for an `Oracle` when a trace is played again, and knows what it answered."""

    def __init__(self, next_answer: Callable[[], Any]) -> None:
        self._next = next_answer

    def __call__(self, *args: Any) -> Any:
        found = self._next()
        if isinstance(found, Parts):
            return tuple(self() for _ in range(found.count))
        return self if found == MORE else found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = self._next()
        return self if found == MORE else found


class Writer:
    """The trace of this process."""

    def __init__(self, sink: IO[bytes]) -> None:
        self._sink = sink
        self._numbers: dict[int, tuple[int, Any]] = {}
        """Objects that are only themselves, and are kept, so that no other has their id."""
        self.results: dict[int, tuple[int, Any]] = {}
        """What machines returned and the shell brings back to them: orders, which a machine knows by their identity."""
        self.answers: list[Any] = []
        self._local = threading.local()

    def number_of(self, thing: Any) -> int:
        return self._numbers.setdefault(id(thing), (len(self._numbers), thing))[0]

    def packed(self, value: Any) -> bytes:
        writer = self

        class Pickler(pickle.Pickler):
            def persistent_id(self, thing: Any) -> Any:
                if isinstance(thing, Oracle):
                    return ("oracle",)
                if id(thing) in writer.results:
                    return ("result", writer.results[id(thing)][0])
                if isinstance(thing, type) or is_value(type(thing)):
                    return None
                return ("opaque", writer.number_of(thing))

            def reducer_override(self, thing: Any) -> Any:
                kind = type(thing)
                if isinstance(thing, KeysView):
                    return keys_of, (list(thing),)
                if not kind.__module__.startswith("logkernel") or isinstance(thing, (tuple, Enum, Exception, type)):
                    return NotImplemented
                return rebuilt, (kind, fields_of(thing))

        buffer = BytesIO()
        Pickler(buffer).dump(value)
        return buffer.getvalue()

    def oracle(self, real: Any) -> Oracle:
        return Oracle(real, lambda answer: self.answers.append(answer))

    def oracles(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], Any]:
        """The same arguments, where what is asked of the shell notes its answers."""

        def seen(thing: Any, argument: str = "") -> Any:
            is_asked = argument in ASKED.get(name, ()) or isinstance(thing, (FunctionType, MethodType))
            return self.oracle(thing) if is_asked and thing is not None else thing

        return tuple(map(seen, args)), {key: seen(thing, key) for key, thing in kwargs.items()}

    @property
    def is_within(self) -> bool:
        """Whether a machine is at work: what it calls is its own affair."""
        return bool(getattr(self._local, "within", False))

    def carried_out(
        self, what: tuple[Any, ...], work: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        given = self.packed((args, kwargs))
        self._local.within, self.answers = True, []
        try:
            result = work(*args, **kwargs)
        except Exception as error:
            self.write(what, given, self.packed(("raised", error)))
            raise
        finally:
            self._local.within = False
        self.write(what, given, self.packed(("returned", result)))
        if what[-1] in KNOWN_AGAIN:
            self.results[id(result)] = (len(self.results), result)
        return result

    def write(self, what: tuple[Any, ...], given: bytes, came: bytes) -> None:
        self._sink.write(pickle.dumps((what, given, self.packed(self.answers), came)))
        self.answers = []


def record(path: Path) -> None:
    """Write the trace of this process there, from now on."""
    writer = Writer(path.open("wb", buffering=0))
    for name, machine in MACHINES.items():
        for method, function in list(vars(machine).items()):
            if inspect.isfunction(function) and (method == "__init__" or not method.startswith("_")):
                setattr(machine, method, _recorded(writer, name, method, function))
        machine.__setattr__ = _noted(writer, name)  # type: ignore[method-assign, assignment]
    for module_name, module in MODULES.items():
        for function_name, function in list(vars(module).items()):
            is_own = inspect.isfunction(function) and function.__module__ == module_name
            if is_own and not function_name.startswith("_") and not inspect.isgeneratorfunction(function):
                setattr(module, function_name, _recorded_function(writer, module_name, function_name, function))


def _recorded(writer: Writer, name: str, method: str, function: FunctionType) -> Callable[..., Any]:
    def call(machine: Any, *args: Any, **kwargs: Any) -> Any:
        if writer.is_within:
            return function(machine, *args, **kwargs)
        if method in TAKE_ASKED and args[0] is not None:
            args = (writer.oracle(args[0]),)
        given, named = writer.oracles(name, args, kwargs)
        what = ("call", name, writer.number_of(machine), method)
        return writer.carried_out(what, lambda *a, **k: function(machine, *a, **k), given, named)

    return call


def _noted(writer: Writer, name: str) -> Callable[..., None]:
    def assign(machine: Any, field: str, value: Any) -> None:
        object.__setattr__(machine, field, value)
        if not writer.is_within:
            writer.write(("set", name, writer.number_of(machine), field), writer.packed(value), b"")

    return assign


def _recorded_function(writer: Writer, module: str, name: str, function: FunctionType) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if writer.is_within:
            return function(*args, **kwargs)
        given, named = writer.oracles(module, args, kwargs)
        return writer.carried_out(("function", module, name), function, given, named)

    return call


# ---------------------------------------------------------------- again


def plain(value: Any) -> Any:
    """A value without identities, to be compared."""
    if isinstance(value, Opaque):
        return ("opaque", value.number)
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, BaseException):
        return (type(value).__name__, str(value))
    if isinstance(value, dict):
        return {key: plain(each) for key, each in value.items()}
    if isinstance(value, (set, frozenset)):
        return value
    if isinstance(value, (list, tuple, deque)):
        return [plain(each) for each in value]
    if type(value).__module__.startswith("logkernel"):
        return (type(value).__name__, {name: plain(each) for name, each in fields_of(value).items()})
    return value


class Reader:
    """Plays one trace; raises AssertionError where a machine answers otherwise than it did."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        """Machine.event → how often."""
        self._machines: dict[tuple[str, int], Any] = {}
        self.opaque: dict[int, Opaque] = {}
        self.results: list[Any] = []
        self.answers: deque[Any] = deque()

    def unpacked(self, packed: bytes) -> Any:
        reader = self

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, told: Any) -> Any:
                if told[0] == "oracle":
                    return Answering(lambda: reader.answers.popleft())
                if told[0] == "result":
                    return reader.results[told[1]]
                return reader.opaque.setdefault(told[1], Opaque(told[1]))

        return Unpickler(BytesIO(packed)).load()

    def play(self, path: Path) -> None:
        with path.open("rb") as stream:
            while True:
                try:
                    what, given, answers, came = pickle.load(stream)
                except (EOFError, pickle.UnpicklingError):  # the process was killed while it wrote
                    return
                self.answers = deque(self.unpacked(answers))
                self._step(what, given, came)

    def _step(self, what: tuple[Any, ...], given: bytes, came: bytes) -> None:
        if what[0] == "set":
            _, name, number, field = what
            if (name, number) in self._machines:
                setattr(self._machines[name, number], field, self.unpacked(given))
            return
        args, kwargs = self.unpacked(given)
        if what[0] == "function":
            work = getattr(MODULES[what[1]], what[2])
            told = f"{what[1].rpartition('.')[2]}.{what[2]}"
        elif what[3] == "__init__":
            self._machines[what[1], what[2]] = MACHINES[what[1]](*args, **kwargs)
            return
        else:
            work = getattr(self._machines[what[1], what[2]], what[3])
            told = f"{what[1]}.{what[3]}"
        try:
            result = ("returned", work(*args, **kwargs))
        except Exception as error:
            result = ("raised", error)
        if what[-1] in KNOWN_AGAIN:
            self.results.append(result[1])
        self.counts[told] += 1
        expected = plain(self.unpacked(came))
        assert plain(result) == expected, f"{told}, call {self.counts[told]}: {plain(result)} and not {expected}"
        assert not self.answers, f"{told} asked less than it did"


def replay(paths: list[Path]) -> Counter[str]:
    """How often each event was played. Each file is a process of its own."""
    counts: Counter[str] = Counter()
    for path in paths:
        reader = Reader()
        reader.play(path)
        counts += reader.counts
    return counts
