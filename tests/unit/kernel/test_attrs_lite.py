"""`@mutable` and `@frozen` beside the attrs classes that they are to the type checker."""

from __future__ import annotations

import copy
import gc
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import attrs
import pytest

from logkernel.attrs_lite import classes, evolve, field, frozen, mutable


@mutable
class Point:
    x: int
    _y: int = 2
    tags: list[str] = field(factory=list)
    moves: int = field(init=False, default=0)
    seen: set[int] = field(init=False, factory=set)
    unset: int = field(init=False)
    kind: ClassVar[str] = "point"

    def who(self) -> str:
        return __class__.__qualname__  # type: ignore[name-defined,no-any-return]

    @property
    def y(self) -> int:
        return self._y


@attrs.define(eq=True)
class AttrsPoint:
    x: int
    _y: int = 2
    tags: list[str] = attrs.field(factory=list)
    moves: int = attrs.field(init=False, default=0)
    seen: set[int] = attrs.field(init=False, factory=set)
    unset: int = attrs.field(init=False)


@mutable
class Point3(Point):
    z: int = 3

    def who(self) -> str:
        return f"{super().who()} and {self.z}"


@frozen
class Size:
    width: int
    height: int = 1


@frozen
class Area(Size):
    total: int = field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "total", self.width * self.height)


class PlainPoint(Point):
    """Not made by `message`: its objects come from the `__init__` that it inherits, compiled or not."""

    __slots__ = ()


@mutable
class Touchy:
    first: object
    second: object = field(factory=lambda: 1 // 0)


both = pytest.mark.parametrize("kind", [Point, PlainPoint, AttrsPoint])


@both
def test_fields_are_set_from_arguments_defaults_and_factories(kind: Callable[..., Any]) -> None:
    point, other = kind(1, y=5), kind(1, 5)
    assert (point.x, point._y, point.tags, point.moves, point.seen) == (1, 5, [], 0, set())
    assert point.tags is not other.tags
    assert point.seen is not other.seen
    assert kind(1, tags=["a"]).tags == ["a"]
    assert not hasattr(point, "unset")


@both
@pytest.mark.parametrize(
    ("arguments", "named"), [((), {}), ((1, 2, [], 0), {}), ((1,), {"moves": 1}), ((1,), {"_y": 1}), ((1,), {"x": 1})]
)
def test_wrong_arguments_are_a_type_error_that_names_init(
    kind: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]
) -> None:
    kind(1)  # the second call has no stand-in before it
    with pytest.raises(TypeError, match="__init__"):
        kind(*arguments, **named)


@both
def test_arguments_by_name_may_be_any_strings(kind: Callable[..., Any]) -> None:
    point = kind(**{"".join(("ta", "gs")): ["a"], "".join(("", "x")): 1})
    assert (point.x, point._y, point.tags) == (1, 2, ["a"])


def test_calls_fill_slots_without_init_where_that_was_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    if classes._install is None:
        pytest.skip("the extension _slots was not built, or is not wanted")
    monkeypatch.setattr(Point, "__init__", lambda *_, **__: pytest.fail("called"))
    assert Point(1, tags=[]).x == 1
    assert Size(3).height == 1


@pytest.mark.parametrize("call", [
    lambda given: Touchy(given), lambda given: Touchy(first=given), lambda given: Point(given, first=given),
    lambda given: Point(given, given, given, given), lambda given: Point(tags=given),
])  # fmt: skip
def test_a_call_that_fails_keeps_nothing(call: Callable[[object], object]) -> None:
    given = object()
    before = sys.getrefcount(given)
    for _ in range(3):
        with pytest.raises((ZeroDivisionError, TypeError)):
            call(given)
    gc.collect()
    assert sys.getrefcount(given) == before


def test_what_an_object_holds_is_let_go_with_it() -> None:
    given = object()
    before = sys.getrefcount(given), sys.getrefcount(Size.__fields__[1].default)  # type: ignore[attr-defined]
    for _ in range(1000):
        Touchy(given, given)
        Size(given)  # type: ignore[arg-type]
    assert (sys.getrefcount(given), sys.getrefcount(Size.__fields__[1].default)) == before  # type: ignore[attr-defined]


@both
def test_an_object_has_slots_alone(kind: Callable[..., Any]) -> None:
    point = kind(1)
    with pytest.raises(AttributeError):
        point.colour = "red"
    assert not hasattr(point, "__dict__")


def test_a_message_is_equal_by_its_fields_and_not_hashable() -> None:
    point, same = Point(1), Point(1)
    point.unset = same.unset = 0
    assert point == same
    point.moves = 1
    assert point != same
    assert Point3(1) != Point(1)
    with pytest.raises(TypeError, match="unhashable"):
        hash(point)


def test_a_value_is_set_once_and_hashable() -> None:
    size = Size(2)
    assert {size, Size(2, 1)} == {size}
    for change in (lambda: setattr(size, "width", 3), lambda: delattr(size, "width")):
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            change()
    assert repr(size) == "Size(width=2, height=1)"


def test_a_subclass_has_the_fields_of_its_base_first() -> None:
    point = Point3(1, 2, ["a"], 4)
    assert (point.x, point.y, point.tags, point.z) == (1, 2, ["a"], 4)
    assert point.who() == "Point and 4"
    assert Point.kind == "point"
    assert Area(2, 3).total == 6


@pytest.mark.parametrize("change", [evolve, attrs.evolve])
def test_evolve_copies_what_it_is_not_told(change: Callable[..., Any]) -> None:
    point = Point(1, tags=["a"])
    point.moves = 7
    changed = change(point, y=9)
    assert (changed.x, changed.y, changed.tags, changed.moves) == (1, 9, ["a"], 0)
    assert change(Area(2, 3), width=5).total == 15


def test_evolve_takes_attrs_objects() -> None:
    assert evolve(AttrsPoint(1), x=3).x == 3


def test_attrs_knows_the_fields() -> None:
    size = Area(2, 3)
    assert attrs.has(Area)
    assert attrs.asdict(size) == {"width": 2, "height": 3, "total": 6}
    assert [(each.name, each.alias, each.init) for each in attrs.fields(Point)] == [
        (each.name, each.alias, each.init) for each in attrs.fields(AttrsPoint)
    ]


@pytest.mark.parametrize("twin", [copy.copy, copy.deepcopy, lambda made: pickle.loads(pickle.dumps(made))])
@pytest.mark.parametrize("made", [Size(2), Area(2, 3), Point3(1)])
def test_copies_and_pickles_are_equal(twin: Callable[[Any], Any], made: Any) -> None:
    if isinstance(made, Point):
        made.unset = 5
    assert twin(made) == made


def test_what_was_never_set_is_not_set_in_a_copy() -> None:
    assert not hasattr(copy.copy(Point(1)), "unset")


def test_a_broker_starts_without_attrs(tmp_path: Any) -> None:
    code = (
        "import sys, logkernel.broker.build as b;"
        f"broker = b.build(None, ['log.dirs={tmp_path}']); broker.start();"
        "print('attr' in sys.modules); broker.close()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
