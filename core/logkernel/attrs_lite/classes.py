"""Makes the classes of `logkernel.attrs_lite`.

A class is made anew with a slot for each annotated name, as attrs does it. Its fields are a table, `__fields__`, from
which all classes compare, hash, show, copy and pickle by the functions here; only `__init__` is generated. Where the
extension `_slots` was built, calls of a class fill its slots without it, three times as fast.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import CellType, FunctionType, MemberDescriptorType
from typing import Any, NamedTuple, NoReturn, TypeVar

T = TypeVar("T")
NOTHING: Any = type("NOTHING", (), {"__repr__": lambda self: "NOTHING", "__slots__": ()})()
"""Where a field has no default, and where a field made by a factory was not given."""


class Field(NamedTuple):
    """How one field is set; `default` or `factory` or neither, and by `__init__` (`init`) or not. `repr`: whether it is
    shown."""

    name: str
    default: Any
    factory: Callable[[], Any] | None
    init: bool
    repr: bool = True

    @property
    def alias(self) -> str:
        """What `__init__` calls it: attrs takes leading underscores off."""
        return self.name.lstrip("_")


def _compiled() -> Callable[[type, Sequence[Field], Any], None] | None:
    if os.environ.get("LOGKERNEL_PURE", "") not in ("", "0"):
        return None
    try:
        from logkernel._slots import install
    except ImportError:
        return None
    return install


_install = _compiled()


def field(
    *, default: Any = NOTHING, factory: Callable[[], Any] | None = None, init: bool = True, repr: bool = True
) -> Any:
    """As `attrs.field`, with the arguments that are needed here."""
    return Field("", default, factory, init, repr)


def mutable(cls: type[T]) -> type[T]:
    """Slotted fields with an `__init__`; equal where all fields are; not hashable."""
    return _made(cls, {"__hash__": None}, frozen=False)


def frozen(cls: type[T]) -> type[T]:
    """As `mutable`, but fields are set once, and it is hashable."""
    return _made(cls, {"__hash__": _hash, "__setattr__": _refuse, "__delattr__": _refuse}, frozen=True)


def evolve(instance: T, **changes: Any) -> T:
    """A copy with other values for some fields, as `attrs.evolve`; takes any attrs object."""
    fields: tuple[Field, ...] | None = getattr(type(instance), "__fields__", None)
    if fields is None:
        import attrs

        changed: T = attrs.evolve(instance, **changes)  # type: ignore[misc]
        return changed
    for known in fields:
        if known.init and known.alias not in changes:
            changes[known.alias] = getattr(instance, known.name)
    return type(instance)(**changes)


class _AttrsFields:
    """`__attrs_attrs__` of a class: what attrs' own functions ask it for, made when they do."""

    def __get__(self, instance: object, owner: type) -> Any:
        import attrs

        fields: tuple[Field, ...] = owner.__fields__  # type: ignore[attr-defined]
        twins = {
            known.name: attrs.field(default=known.default, init=known.init)
            if known.default is not NOTHING
            else attrs.field(factory=known.factory, init=known.init)
            for known in fields
        }
        found = attrs.fields(attrs.make_class(owner.__name__, twins))
        owner.__attrs_attrs__ = found  # type: ignore[attr-defined]
        return found


class _Signature:
    """`__signature__` of a class, for `help()` and `inspect.signature`: made when it is asked for."""

    def __get__(self, instance: object, owner: Any) -> Any:
        if "__signature__" not in owner.__dict__:  # a subclass that has an `__init__` of its own
            raise AttributeError("__signature__")
        from inspect import Parameter, Signature

        notes = {name: kind for base in reversed(owner.__mro__) for name, kind in base.__dict__.get(_NOTES, {}).items()}
        parameters = []
        for known in owner.__fields__:
            if known.init:
                default = Parameter.empty if known.default is NOTHING and known.factory is None else known.default
                note = notes.get(known.name, Parameter.empty)
                kind = Parameter.POSITIONAL_OR_KEYWORD
                parameters.append(Parameter(known.alias, kind, default=default, annotation=note))
        _made_init(owner)
        return Signature(parameters, return_annotation=None)


_NOTES = "__annotations__"
_SIGNATURE = _Signature()


def _made(cls: type[T], shared: dict[str, Any], *, frozen: bool) -> type[T]:
    own = cls.__dict__
    fields = {known.name: known for base in reversed(cls.__mro__[1:]) for known in base.__dict__.get("__fields__", ())}
    inherited = [item for base in cls.__mro__[1:-1] for item in base.__dict__.items()]  # object has none
    taken = {name for name, item in inherited if isinstance(item, MemberDescriptorType) or name == "__weakref__"}
    names = [name for name, kind in own.get("__annotations__", {}).items() if not str(kind).startswith("ClassVar")]
    for name in names:
        given = own.get(name, NOTHING)
        fields[name] = given._replace(name=name) if type(given) is Field else Field(name, given, None, True)
    space = {key: item for key, item in own.items() if key not in (*names, "__dict__", "__weakref__")}
    space["__slots__"] = tuple(name for name in (*names, "__weakref__") if name not in taken)
    space["__qualname__"] = cls.__qualname__
    for name, function in (shared | _SHARED).items():
        space.setdefault(name, function)
    space["__fields__"] = tuple(fields.values())
    if "__init__" not in own:
        space["__signature__"] = _SIGNATURE
    space["__frozen__"] = frozen
    metaclass: Any = type(cls)
    made: type[T] = metaclass(cls.__name__, cls.__bases__, space)
    if "__init__" not in own:
        _init_at_first_use(made)
        if _install is not None and metaclass is type and not hasattr(made, "__attrs_post_init__"):
            _install(made, made.__fields__, NOTHING)  # type: ignore[attr-defined]
    for item in own.values():
        if isinstance(item, _METHODS):
            _close_over(item, cls, made)
    return made


def _init_at_first_use(cls: Any) -> None:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        _made_init(cls)
        cls.__init__(self, *args, **kwargs)

    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__at_first_use__ = True  # type: ignore[attr-defined]
    cls.__init__ = __init__


def _made_init(cls: Any) -> None:
    """Put the generated `__init__` in place of the one that stands for it until it is needed."""
    if "__at_first_use__" in vars(cls.__init__):
        cls.__init__ = _init(cls)


def _init(cls: Any) -> Callable[..., None]:
    """`def __init__(self, a, b=..., ...)`, which sets the fields and calls `__attrs_post_init__` where there is one."""
    fields: tuple[Field, ...] = cls.__fields__
    known: dict[str, Any] = {"_NOTHING": NOTHING, "_set_by": object.__setattr__.__get__}  # no parameter begins so
    parameters = ["self"]
    lines = ["_set = _set_by(self)"] if cls.__frozen__ else []
    for at, (name, default, factory, init, _) in enumerate(fields):
        parameter = name.lstrip("_") if init else ""
        if factory is not None:
            known[f"_factory{at}"] = factory
            made = f"_factory{at}()"
            parameters += [f"{parameter}=_NOTHING"] if init else []
            source = f"{made} if {parameter} is _NOTHING else {parameter}" if init else made
        elif default is not NOTHING:
            known[f"_default{at}"] = default
            parameters += [f"{parameter}=_default{at}"] if init else []
            source = parameter or f"_default{at}"
        elif init:
            parameters.append(parameter)
            source = parameter
        else:
            continue
        lines.append(f"_set({name!r}, {source})" if cls.__frozen__ else f"self.{name} = {source}")
    if hasattr(cls, "__attrs_post_init__"):
        lines.append("self.__attrs_post_init__()")
    body = "\n    ".join(lines or ["pass"])
    exec(f"def __init__({', '.join(parameters)}):\n    {body}\n", known)
    init_function: FunctionType = known["__init__"]
    init_function.__qualname__ = f"{cls.__qualname__}.__init__"
    init_function.__module__ = cls.__module__
    return init_function


_METHODS = (FunctionType, classmethod, staticmethod, property)


def _close_over(item: Any, cls: type, made: type) -> None:
    """A method that says `super()` or `__class__` means the class with slots."""
    function = getattr(item, "__func__", None) or getattr(item, "fget", None) or item
    cells: tuple[CellType, ...] = getattr(function, "__closure__", None) or ()
    for cell in cells:
        with suppress(ValueError):  # an empty one
            if cell.cell_contents is cls:
                cell.cell_contents = made


def _values(self: Any) -> tuple[Any, ...]:
    return tuple([getattr(self, known.name) for known in self.__fields__])


def _equal(self: Any, other: Any) -> Any:
    if type(other) is not type(self):
        return NotImplemented
    return _values(self) == _values(other)


def _hash(self: Any) -> int:
    return hash(_values(self))


def _show(self: Any) -> str:
    shown = ", ".join(f"{known.name}={getattr(self, known.name)!r}" for known in self.__fields__ if known.repr)
    return f"{type(self).__name__}({shown})"


def _refuse(self: Any, name: str, *value: Any) -> NoReturn:
    from attrs.exceptions import FrozenInstanceError

    raise FrozenInstanceError


def _state(self: Any) -> dict[str, Any]:
    return {known.name: getattr(self, known.name) for known in self.__fields__ if hasattr(self, known.name)}


def _restore(self: Any, state: Mapping[str, Any]) -> None:
    for name, kept in state.items():
        object.__setattr__(self, name, kept)


_SHARED = {
    "__eq__": _equal,
    "__repr__": _show,
    "__getstate__": _state,
    "__setstate__": _restore,
    "__attrs_attrs__": _AttrsFields(),
}
