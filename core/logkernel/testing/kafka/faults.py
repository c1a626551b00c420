"""Faults that a test asks for: which requests they strike, and what is done to these. Pure, but for a seed.

| fault | the request | its answer |
|---|---|---|
| `error` | is not carried out | says the error |
| `delay` | is carried out later; what the connection asks behind it waits, as in Kafka | comes later |
| `stall` | is carried out when the fault is removed | comes then |
| `close` | is not carried out | the connection is closed |
| `lose_answer` | is carried out | the connection is closed instead |
| `cut_answer` | is carried out | a part of it is sent, then the connection is closed |
| `kill`, `restart` | is not carried out: the broker dies, and may start again | the connection breaks |
| `move_leader` | is carried out after another broker leads the partitions that it names | is the old leader's |

The last three are for a cluster, and strike once if they are not told otherwise.

A fault strikes what all of its conditions fit: the API, the client, a topic and partition that the request names. Of
these it lets the first `skip` pass, strikes `times` times, and each time with `probability`. What its seed decides
about the n-th request that fits does not depend on other requests, so that the same program meets the same faults.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from os import PathLike
from random import Random
from typing import Any, Final, Generic, Protocol, Self, TypeVar

from logkernel.attrs_lite import field, frozen, mutable
from logkernel.config.nearest import nearest
from logkernel.errors import BY_CODE, ConfigError, KafkaError
from logkernel.testing.kafka.apis import check_api
from logkernel.testing.kafka.named import ANY_PARTITION
from logkernel.testing.kafka.requests import ClientRequest
from logkernel.vocabulary import TopicPartition

ERROR, DELAY, STALL, CLOSE, LOSE_ANSWER, CUT_ANSWER = "error", "delay", "stall", "close", "lose_answer", "cut_answer"
KILL, RESTART, MOVE_LEADER = "kill", "restart", "move_leader"
OF_CLUSTERS: Final = (KILL, RESTART, MOVE_LEADER)
KINDS: Final = (ERROR, DELAY, STALL, CLOSE, LOSE_ANSWER, CUT_ANSWER, *OF_CLUSTERS)
ERRORS: Final = {re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).upper(): kind for kind in BY_CODE.values()}
"""Kafka's name of an error → its class."""
NAMES: Final = {kind: name for name, kind in ERRORS.items()}
COUNTS: Final = {"times": None, "skip": 0, "probability": 1}
"""With what holds where nothing is said."""
CONDITIONS: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    "api": ((str,), "Kafka's name, e.g. Produce"),
    "client_id": ((str, re.Pattern), "a text or a compiled pattern"),
    "topic": ((str,), "a name"),
    "partition": ((int,), "a number"),
    "broker": ((int,), "a node id"),
}
"""Of a condition: what it takes, and how that is told."""
KEYWORDS: Final = sorted([*CONDITIONS, *COUNTS])
HALF: Final = 0.5
WRITE: Final = "write e.g. error: NAME, or close: true, with conditions beside it"
MOST_DELAY_MS: Final = 366 * 86_400_000


@frozen
class Conditions:
    """Which requests a fault fits; None fits all."""

    api: str | None = None
    client_id: str | re.Pattern[str] | None = None
    topic: str | None = None
    partition: int | None = None
    broker: int | None = None

    def fit(self, request: ClientRequest, named: Collection[TopicPartition]) -> bool:
        """`named` are the partitions that the request is about."""
        if self.api is not None and request.api != self.api:
            return False
        if self.broker is not None and request.broker != self.broker:
            return False
        if isinstance(self.client_id, re.Pattern):
            if not self.client_id.search(request.client_id or ""):
                return False
        elif self.client_id is not None and request.client_id != self.client_id:
            return False
        return (self.topic is None and self.partition is None) or any(map(self.covers, named))

    def covers(self, name: TopicPartition) -> bool:
        """Whether the fault is about this partition."""
        return (self.topic is None or name.topic == self.topic) and (
            self.partition is None or name.partition in (self.partition, ANY_PARTITION)
        )


class AskedFault(Protocol):
    """A fault that was asked for. `remove` it, or use it as a context manager."""

    @property
    def fitted(self) -> int:
        """Requests that it fitted."""
        ...

    @property
    def struck(self) -> int:
        """Requests that it struck."""
        ...

    def remove(self) -> None:
        """Strike no more. Requests that stall are carried out."""
        ...

    def __enter__(self) -> Self: ...
    def __exit__(self, *exc: object) -> None: ...


F_co = TypeVar("F_co", bound=AskedFault, covariant=True)


@mutable
class Fault:
    """A fault that was asked for. `remove` it, or use it as a context manager."""

    kind: str
    conditions: Conditions
    random: Random
    faults: Faults
    error: KafkaError | None = None
    wait_ms: int = 0
    part: float = 0
    to: int | None = None
    """Who is to lead; None: the first other broker that is in sync."""
    times: int | None = None
    skip: int = 0
    probability: float = 1
    fitted: int = 0
    """Requests that it fitted."""
    struck: int = 0
    """Requests that it struck."""
    released: list[Callable[[], None]] = field(factory=list)
    """Called when a stall is removed."""
    failed: str = ""
    """Why it could not do to the cluster what it says, the last time."""

    def strikes(self, request: ClientRequest, named: Collection[TopicPartition]) -> bool:
        """Whether this request is struck; it counts."""
        if (self.times is not None and self.struck >= self.times) or not self.conditions.fit(request, named):
            return False
        self.fitted += 1
        chosen = self.random.random() < self.probability  # drawn for each, so that one draw belongs to one request
        if self.fitted <= self.skip or not chosen:
            return False
        self.struck += 1
        return True

    def go_on(self, fitted: int, struck: int) -> None:
        """Be as a fault that has met so many requests already, so that the same chance decides about the next one."""
        for _ in range(fitted - self.fitted):
            self.random.random()
        self.fitted, self.struck = fitted, struck

    def remove(self) -> None:
        """Strike no more. Requests that stall are carried out."""
        self.faults.remove(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.remove()

    def __str__(self) -> str:
        error = None if self.error is None else NAMES[type(self.error)]
        given = {ERROR: error, DELAY: self.wait_ms, CUT_ANSWER: self.part, MOVE_LEADER: self.to}
        argument = given.get(self.kind)
        said = [self.kind, *([] if argument is None else [str(argument)])]
        said += [f"{name}={value}" for name in CONDITIONS if (value := getattr(self.conditions, name)) is not None]
        said += [f"{name}={value}" for name, usual in COUNTS.items() if (value := getattr(self, name)) != usual]
        failed = f", and failed: {self.failed}" if self.failed else ""
        return f"{' '.join(said)}: struck {self.struck} of {self.fitted}{failed}"


class FaultCalls(ABC, Generic[F_co]):
    """What a test may do to requests. Faults are tried in the order in which they were asked for; one of them strikes.

    Each call takes the conditions as keywords: `api` (Kafka's name, e.g. "Produce"), `client_id` (a text or a compiled
    pattern), `topic`, `partition`, `broker` (a node id); and `times`, `skip`, `probability`. It raises `ConfigError`
    for what cannot be.
    """

    def __init__(self, seed: int, apis: Collection[str], cluster: Collection[int] = ()) -> None:
        """`apis` are the names that are known; `cluster` the node ids of one, whose brokers may die and hand over."""
        self.seed = seed
        self._cluster = cluster
        self._apis = apis

    @property
    @abstractmethod
    def made(self) -> Sequence[F_co]:
        """Every fault that was asked for since the last `clear`, removed or not."""

    @property
    @abstractmethod
    def active(self) -> Sequence[F_co]:
        """Those that were not removed."""

    @abstractmethod
    def clear(self) -> None:
        """Remove every fault."""

    @abstractmethod
    def _add(self, fields: dict[str, Any]) -> F_co:
        """`fields` are those of a `Fault`, checked."""

    def error(self, error: str | type[KafkaError], **conditions: Any) -> F_co:
        """Answer with an error: Kafka's name, e.g. "NOT_LEADER_OR_FOLLOWER", or a class of `logkernel.errors`."""
        return self._add(self._checked(ERROR, error, conditions))

    def delay(self, ms: int, **conditions: Any) -> F_co:
        """Carry requests out `ms` later, by the broker's clock: `clock.advance` shortens the wait."""
        return self._add(self._checked(DELAY, ms, conditions))

    def stall(self, **conditions: Any) -> F_co:
        """Carry requests out only when this is removed."""
        return self._add(self._checked(STALL, True, conditions))

    def close(self, **conditions: Any) -> F_co:
        """Close the connection instead of carrying the request out."""
        return self._add(self._checked(CLOSE, True, conditions))

    def lose_answer(self, **conditions: Any) -> F_co:
        """Carry requests out, and close the connection instead of answering."""
        return self._add(self._checked(LOSE_ANSWER, True, conditions))

    def cut_answer(self, part: float = HALF, **conditions: Any) -> F_co:
        """Carry requests out, send that part of the answer's bytes, and close the connection."""
        return self._add(self._checked(CUT_ANSWER, part, conditions))

    def kill(self, **conditions: Any) -> F_co:
        """Kill the broker that is asked, in place of carrying the request out. Of a cluster; once, without `times`."""
        return self._add(self._checked(KILL, True, conditions))

    def restart(self, **conditions: Any) -> F_co:
        """As `kill`, and start the broker again at once."""
        return self._add(self._checked(RESTART, True, conditions))

    def move_leader(self, to: int | None = None, **conditions: Any) -> F_co:
        """Have another broker lead the partitions that the request names, and carry it out then: `to`, or the first
        other one that is in sync. Of a cluster; once, without `times`."""
        return self._add(self._checked(MOVE_LEADER, True if to is None else to, conditions))

    def load(self, given: str | PathLike[str] | Iterable[Mapping[str, Any]]) -> list[F_co]:
        """Ask for several: a YAML file with a list of mappings, or such mappings. Each has the name of a call above
        with its argument (true where there is none), and conditions. Raises `ConfigError` before any is added."""
        rows, where = (_read(given), f"{given}: ") if isinstance(given, (str, PathLike)) else (list(given), "")
        found: list[dict[str, Any]] = []
        for number, row in enumerate(rows, 1):
            try:
                kind = _kind(row)
                argument = HALF if kind == CUT_ANSWER and row[kind] is True else row[kind]
                found.append(self._checked(kind, argument, {name: row[name] for name in row if name != kind}))
            except ConfigError as error:
                raise ConfigError(f"{where}fault {number}: {error}") from None
        return [self._add(fields) for fields in found]

    def _checked(self, kind: str, given: Any, conditions: dict[str, Any]) -> dict[str, Any]:
        """The fields of a fault that is asked for. Raises `ConfigError`."""
        if kind in OF_CLUSTERS and not self._cluster:
            raise ConfigError(
                f"{kind} is for brokers of a KafkaCluster, be it of one; of Kafka, call kill() and start()"
            )
        counts: dict[str, Any] = {name: conditions.pop(name) for name in COUNTS if name in conditions}
        for name, value in counts.items():
            _check_count(name, value)
        if kind in OF_CLUSTERS:
            counts.setdefault("times", 1)
        argument = {"to": self._node(given)} if kind == MOVE_LEADER else _argument(kind, given)
        return {"kind": kind, "conditions": self._conditions(conditions), **counts, **argument}

    def _node(self, given: Any) -> int | None:
        if given is True:
            return None
        if not _is_whole(given) or given not in self._cluster:
            known = ", ".join(map(str, self._cluster))
            raise ConfigError(f"move_leader: there is no broker {given!r}; name one of {known}, or none")
        node: int = given
        return node

    def _conditions(self, given: dict[str, Any]) -> Conditions:
        for name, value in given.items():
            if name not in CONDITIONS:
                near = nearest(str(name), KEYWORDS)
                hint = f"did you mean {near!r}?" if near else f"there are {', '.join(KEYWORDS)}"
                raise ConfigError(f"there is no condition {name!r}; {hint}")
            kinds, wanted = CONDITIONS[name]
            if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
                raise ConfigError(f"{name}={value!r} fits nothing; pass {wanted}")
        api = given.get("api")
        if api is not None:
            check_api(api, self._apis)
        return Conditions(**given)


class Faults(FaultCalls[Fault]):
    """Of brokers in this process."""

    def __init__(
        self,
        seed: int,
        apis: Collection[str],
        run: Callable[[Callable[[], Any]], Any],
        cluster: Collection[int] = (),
    ) -> None:
        """`run` does work on the brokers' thread."""
        super().__init__(seed, apis, cluster)
        self._run = run
        self._active: list[Fault] = []
        self._made: list[Fault] = []

    def _add(self, fields: dict[str, Any]) -> Fault:
        fault = Fault(random=Random(f"{self.seed} {len(self._made)}"), faults=self, **fields)
        self._made.append(fault)
        self._run(lambda: self._active.append(fault))
        return fault

    @property
    def made(self) -> list[Fault]:
        return self._made

    @property
    def active(self) -> list[Fault]:
        return list(self._active)

    def remove(self, fault: Fault) -> None:
        """See `Fault.remove`; a second call does nothing."""

        def remove() -> None:
            self._active = [each for each in self._active if each is not fault]
            released, fault.released = fault.released, []
            for release in released:
                release()

        self._run(remove)

    def clear(self) -> None:
        for fault in self.active:
            self.remove(fault)
        self._made.clear()

    def strikes(self, request: ClientRequest, named: Callable[[], Collection[TopicPartition]]) -> Fault | None:
        """The fault that strikes this request; on the broker's thread."""
        if not self._active:
            return None
        partitions = named()
        return next((fault for fault in self._active if fault.strikes(request, partitions)), None)


def _kind(row: Any) -> str:
    """The kind of the fault that a mapping describes. Raises `ConfigError`."""
    if not isinstance(row, Mapping):
        raise ConfigError(f"{row!r} is no mapping; {WRITE}")
    kinds = [kind for kind in KINDS if kind in row]
    if len(kinds) > 1:
        raise ConfigError(f"it has {' and '.join(kinds)}, which are a fault each; write {len(kinds)} faults")
    if not kinds:
        near = next(((name, kind) for name in row if (kind := nearest(str(name), KINDS))), None)
        hint = f"did you mean {near[1]} by {near[0]}?" if near else f"say one of {', '.join(KINDS)}"
        raise ConfigError(f"{row!r} does not say what goes wrong; {hint}")
    return kinds[0]


def _read(path: str | PathLike[str]) -> list[Any]:
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            rows = yaml.safe_load(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"{path}: cannot be read as YAML: {error}; correct the file") from None
    if not isinstance(rows, list):
        raise ConfigError(f"{path}: faults are a list of mappings; begin each with a dash")
    return rows


def _check_count(name: str, value: Any) -> None:
    if name == "probability":
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not 0 < value <= 1:
            raise ConfigError(f"probability={value!r}: pass a number above 0, up to 1")
    elif not (name == "times" and value is None) and (not _is_whole(value) or value < 0):
        raise ConfigError(f"{name}={value!r}: pass a whole number from 0 on")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _argument(kind: str, given: Any) -> dict[str, Any]:
    """What the argument of a fault says, as fields of it. Raises `ConfigError`."""
    if kind == ERROR:
        return {"error": _error(given)}
    if kind == DELAY:
        if not _is_whole(given) or not 0 < given <= MOST_DELAY_MS:
            raise ConfigError(f"a delay of {given!r} ms is none; pass a whole number from 1 to {MOST_DELAY_MS}")
        return {"wait_ms": given}
    if kind == CUT_ANSWER:
        if not isinstance(given, float) or not 0 < given < 1:
            raise ConfigError(f"part={given!r}: an answer is cut between its ends; pass a number between 0 and 1")
        return {"part": given}
    if given is not True:
        raise ConfigError(f"{kind}: {given!r} asks for nothing; write {kind}: true, or leave it out")
    return {}


def _error(given: Any) -> KafkaError:
    kind: type[KafkaError] | None = None
    if isinstance(given, str):
        kind = ERRORS.get(given.upper())
    elif isinstance(given, type) and issubclass(given, KafkaError):
        kind = given
    if kind is None:
        near = nearest(str(given), ERRORS)
        hint = f"did you mean {near}?" if near else "use Kafka's names, e.g. NOT_LEADER_OR_FOLLOWER"
        raise ConfigError(f"there is no error {given!r}; {hint}")
    return kind("a fault of the test")
