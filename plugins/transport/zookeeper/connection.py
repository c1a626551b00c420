"""A connection to ZooKeeper by kazoo, as a session uses it.

kazoo's threads only note what happened, and call `wakeup`. Every call but `read_later` is made and waited for on the
broker's thread, each answer for `patience_s` at most. What was sent and not answered may have happened: `Unanswered`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from kazoo.client import TransactionRequest
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    KazooException,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    SessionClosedRequireSaslError,
    SessionExpiredError,
    UnimplementedError,
)
from kazoo.handlers.threading import KazooTimeoutError
from kazoo.protocol import serialization as wire
from kazoo.protocol.states import KazooState
from kazoo.retry import KazooRetry
from kazoo.security import ACL, OPEN_ACL_UNSAFE, Id

from logkernel.errors import ClusterAuthorizationFailed, KafkaStorageError

from .client import Client
from .options import JAAS, Options
from .plan import Check, Create, Delete, Operation, Set
from .refusals import Refusal, refusal_of

BULK: Final = 100
"""Nodes that one request reads."""
CLOSE_S: Final = 2.0

log = logging.getLogger("logkernel.zookeeper")
kazoo_log = logging.getLogger("logkernel.zookeeper.kazoo")
kazoo_log.setLevel(logging.ERROR)


class Unanswered(KafkaStorageError):
    """ZooKeeper gave no answer: whether it did what it was asked is not known."""


class Node(NamedTuple):
    """A node's data and what ZooKeeper says of it."""

    data: bytes | None
    version: int
    czxid: int
    mzxid: int
    ctime: int
    owner: int
    """The session that an ephemeral node ends with; 0 for any other."""


Ask = Callable[[], Any]
"""Sends a request; returns kazoo's AsyncResult."""
Found = Callable[[], "list[Node | None]"]
"""Nodes that were asked for. Raises `Unanswered`."""


class Read(NamedTuple):
    """A request for nodes that nobody waits for."""

    asked: Sequence[Any]
    """kazoo's results, in the order of the requests."""
    found: Found
    """To be called once it `is_answered`."""

    @property
    def is_answered(self) -> bool:
        return all(each.ready() for each in self.asked)


def _nobody() -> None:
    pass


class Connection:
    """See the module."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self.wakeup: Callable[[], object] = _nobody
        """Called from kazoo's threads when something happened."""
        self._root = options.address.chroot
        self.is_up = False
        self.is_lost = False
        """kazoo says so: the session is over."""
        self.drops = 0
        """How often the connection was lost: with each, watches and whatever was not answered."""
        self.dropped_s: float | None = None
        """Since when (monotonic) there is no connection; None while there is one."""
        self._reads_many = True
        self.patience_s = options.connection_timeout_ms / 1000
        """How long a call waits for its answer: in a start as long as for a connection, then `hurry` shortens it."""
        self._settled = threading.Event()
        """It was connected once, or all servers refused it."""
        self._refusals: dict[tuple[str, int], Refusal] = {}
        """Server → why it was of no use, since the connection was there last."""
        self._client = Client(
            self._tried,
            options.tls,
            options.login,
            hosts=options.address.hosts,
            timeout=options.session_timeout_ms / 1000,
            connection_retry=KazooRetry(max_tries=-1, delay=0.05, backoff=2, max_delay=1.0),
            auth_data=[("digest", options.digest.reveal())] if options.digest else [],
            logger=kazoo_log,
        )
        self._client.add_listener(self._changed)
        self._client.start_async()

    # ------------------------------------------------------------ state; kazoo's thread

    def _changed(self, state: str) -> None:
        """kazoo says that it is connected before it has logged in, so `_tried` notes that."""
        if state == KazooState.CONNECTED:
            return
        self.is_up = False
        self.drops += 1
        if self.dropped_s is None:
            self.dropped_s = time.monotonic()
        if state == KazooState.LOST:
            self.is_lost = True
        else:
            self.wakeup_in(self._options.lost_s)
        self.wakeup()

    def _tried(self, host: str, port: int, error: Exception | None) -> None:
        if error is None:
            self._refusals = {}
            self.is_up, self.dropped_s = True, None
            self._settled.set()
            self.wakeup()
            return
        found = refusal_of(f"{host}:{port}", error, self._options)
        if found is None:
            log.debug("no session: server=%s:%d error=%r", host, port, error)
            return
        if found.is_certain and found != self._refusals.get((host, port)):
            log.warning("ZooKeeper gives no session: %s", found.text)
        self._refusals = {**self._refusals, (host, port): found}
        if found.ends_all:
            self.is_lost = True
        are_all = len(self._refusals) >= len(self._client.hosts)
        if found.ends_all or (are_all and all(each.is_certain for each in self._refusals.values())):
            self._settled.set()

    def wakeup_in(self, seconds: float) -> None:
        timer = threading.Timer(seconds + 0.01, lambda: self.wakeup())
        timer.daemon = True
        timer.start()

    # ------------------------------------------------------------ life

    def hurry(self) -> None:
        """Wait for answers no longer than a broker may that serves."""
        self.patience_s = self._options.answer_s

    def wait(self, seconds: float) -> bool:
        """Whether it is connected, at the latest after so long."""
        self._settled.wait(seconds)
        return self.is_up

    def refusal(self, *, certain: bool = False) -> str | None:
        """Why servers refuse this broker, problem and remedy, or only why they will go on to; None where none said."""
        found = [each for each in self._refusals.values() if each.is_certain or not certain]
        return max(found, key=lambda each: (each.ends_all, each.is_certain)).text if found else None

    @property
    def session_id(self) -> int:
        found = self._client.client_id
        return 0 if found is None else int(found[0])

    @property
    def is_overdue(self) -> bool:
        """It was away for so long that the session counts as lost."""
        since = self.dropped_s
        return since is not None and time.monotonic() - since >= self._options.lost_s

    def close(self) -> None:
        """Say goodbye, which ends the session at once; where ZooKeeper cannot be reached, it ends by its timeout."""

        def end() -> None:
            try:
                self._client.stop()
                self._client.close()
            except Exception as error:
                log.debug("kazoo not closed: error=%r", error)

        self.wakeup = _nobody
        self._client.remove_listener(self._changed)
        closing = threading.Thread(target=end, name="logkernel-zookeeper-close", daemon=True)
        closing.start()
        if self.is_up:
            closing.join(CLOSE_S)

    # ------------------------------------------------------------ calls

    def _gather(self, asks: Iterable[Ask]) -> Iterator[Any]:
        """The answers in order, with exceptions of kazoo for refusals. Raises `Unanswered`."""
        waiting: deque[Any] = deque()
        for ask in asks:
            if len(waiting) >= self._options.in_flight:
                yield self._answer(waiting.popleft())
            if not self.is_up:
                raise Unanswered("the connection to ZooKeeper is lost; try again when it is back")
            waiting.append(ask())
        while waiting:
            yield self._answer(waiting.popleft())

    def _answer(self, asked: Any) -> Any:
        try:
            return asked.get(timeout=self.patience_s)
        except (ConnectionLoss, SessionExpiredError, ConnectionClosedError, KazooTimeoutError) as error:
            raise Unanswered(f"ZooKeeper did not answer ({type(error).__name__}); try again") from None
        except NoAuthError:
            raise _forbidden() from None
        except AuthFailedError:
            raise Unanswered("ZooKeeper refused the login of this broker; begin a new session") from None
        except SessionClosedRequireSaslError:
            raise ClusterAuthorizationFailed(
                f"ZooKeeper serves only brokers that log in; set {JAAS}, or a certificate if it asks for one"
            ) from None
        except KazooException as error:
            return error

    def _one(self, ask: Ask) -> Any:
        (answer,) = self._gather([ask])
        return answer

    def get(self, path: str, watch: Callable[[Any], None] | None = None) -> Node | None:
        """None for a node that is not there; it is not watched then."""
        return _node(self._one(lambda: self._client.get_async(self._root + path, watch)))

    def sync(self, path: str) -> None:
        """Have reads from now on show what was stored by anybody until now."""
        self._one(lambda: self._client.sync_async(self._root + path))

    def exists(self, path: str, watch: Callable[[Any], None] | None = None) -> Node | None:
        """Like `get`, without the data; `watch` also fires when the node is created."""
        found = self._one(lambda: self._client.exists_async(self._root + path or "/", watch))
        return None if found is None else _node((None, found))

    def children(self, path: str, watch: Callable[[Any], None] | None = None) -> list[str] | None:
        """Names; None where the node is not there."""
        found = self._one(lambda: self._client.get_children_async(self._root + path, watch))
        return None if isinstance(found, NoNodeError) else [str(name) for name in _sound(found)]

    def open_nodes(self, paths: Sequence[str]) -> list[str]:
        """Those of `paths` of which anybody may do more than new nodes of this broker allow."""
        answers = self._gather([partial(self._client.get_acls_async, self._root + path) for path in paths])
        given = [[] if isinstance(found, NoNodeError) else _sound(found)[0] for found in answers]
        return [path for path, rules in zip(paths, given, strict=True) if self._options.is_open(path, rules)]

    def children_of_many(self, paths: Sequence[str]) -> list[list[str]]:
        asks = [partial(self._client.get_children_async, self._root + path) for path in paths]
        return [[] if isinstance(found, NoNodeError) else _sound(found) for found in self._gather(asks)]

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        if len(paths) > 2 and self._reads_many:
            runs = [paths[start : start + BULK] for start in range(0, len(paths), BULK)]
            asks = [partial(self._client.read_many, [self._root + path for path in run]) for run in runs]
            found: list[Node | None] = []
            for answer in self._gather(asks):
                if isinstance(answer, UnimplementedError):
                    self._reads_many = False
                    return self.get_many(paths)
                found.extend(map(_row, _sound(answer)))
            return found
        singles = [partial(self._client.get_async, self._root + path) for path in paths]
        return [_node(answer) for answer in self._gather(singles)]

    def read_later(self, paths: Sequence[str]) -> Read:
        """Ask for nodes as they are stored now by anybody, and wait for nothing; `wakeup` is called when the answer is
        there. Raises `Unanswered` while there is no connection."""
        if not self.is_up:
            raise Unanswered("the connection to ZooKeeper is lost; try again when it is back")
        root = self._root
        asked = [self._client.sync_async(root + paths[0])]
        if self._reads_many:
            runs = [paths[start : start + BULK] for start in range(0, len(paths), BULK)]
            asked += [self._client.read_many([root + path for path in run]) for run in runs]
        else:
            asked += [self._client.get_async(root + path) for path in paths]
        asked[-1].rawlink(lambda result: self.wakeup())
        return Read(asked, partial(self._found, asked[1:], many=self._reads_many))

    def _found(self, asked: Sequence[Any], *, many: bool) -> list[Node | None]:
        answers = [self._answer(each) for each in asked]
        if not many:
            return [_node(answer) for answer in answers]
        if any(isinstance(answer, UnimplementedError) for answer in answers):
            self._reads_many = False
            raise Unanswered("this ZooKeeper reads one node at a time; ask again")
        return [_row(row) for answer in answers for row in _sound(answer)]

    def get_watched(self, paths: Sequence[str], watch: Callable[[Any], None]) -> list[Node | None]:
        asks = [partial(self._client.get_async, self._root + path, watch) for path in paths]
        return [_node(answer) for answer in self._gather(asks)]

    def multi(self, operations: Sequence[Operation]) -> list[Any]:
        """The results; exceptions of kazoo in the place of each where one failed: nothing was done then."""
        (results,) = self.multis([operations])
        return results

    def multis(self, groups: Iterable[Sequence[Operation]]) -> Iterator[list[Any]]:
        for answer in self._gather([partial(self._send, group) for group in groups]):
            results = [answer] if isinstance(answer, Exception) else answer
            if any(isinstance(result, NoAuthError) for result in results):
                raise _forbidden()
            yield results

    def _send(self, operations: Sequence[Operation]) -> Any:
        request = TransactionRequest(self._client)
        request.operations.extend(map(self._operation, operations))
        return request.commit_async()

    def _operation(self, operation: Operation) -> Any:
        path = self._root + operation.path
        if isinstance(operation, Create):
            flags = operation.ephemeral + 2 * operation.sequence
            return wire.Create(path, operation.data, self._acl(operation.path), flags)
        if isinstance(operation, Set):
            return wire.SetData(path, operation.data, operation.version)
        if isinstance(operation, Delete):
            return wire.Delete(path, operation.version)
        assert isinstance(operation, Check)
        return wire.CheckVersion(path, operation.version)

    def _acl(self, path: str) -> list[Any]:
        given = self._options.acl(path)
        return OPEN_ACL_UNSAFE if given is None else [ACL(perms, Id(scheme, name)) for perms, scheme, name in given]

    def make_folders(self, paths: Iterable[str]) -> None:
        """Make nodes without data where they are not there; the chroot and what is above them as well."""
        wanted = list(dict.fromkeys(step for path in paths for step in _steps(self._root + path)))
        found = list(self._gather([partial(self._client.exists_async, path) for path in wanted]))
        for path, stat in zip(wanted, found, strict=True):
            if stat is None:
                made = self._one(partial(self._made, path))
                error = made if isinstance(made, Exception) else failed(made)
                if error is not None and not isinstance(error, NodeExistsError):
                    raise KafkaStorageError(f"ZooKeeper refused to make {path} ({error!r}); its log may say why")

    def _made(self, path: str) -> Any:
        request = TransactionRequest(self._client)
        request.operations.append(wire.Create(path, None, self._acl(path.removeprefix(self._root)), 0))
        return request.commit_async()

    def probe(self, answered: Callable[[], None]) -> None:
        """Have `answered` called, on kazoo's thread, when all that was sent before was answered."""
        self._client.exists_async("/").rawlink(lambda result: answered())


def _steps(path: str) -> Iterator[str]:
    """Every node on the way to a path, itself included."""
    parts = path.split("/")
    return ("/".join(parts[:end]) for end in range(2, len(parts) + 1))


def failed(results: Sequence[Any]) -> Exception | None:
    """Return the error of a multi; None if it succeeded."""
    errors = [result for result in results if isinstance(result, Exception)]
    telling = [error for error in errors if type(error).__name__ not in ("RolledBackError", "RuntimeInconsistency")]
    return next(iter(telling or errors), None)


def _sound(answer: Any) -> Any:
    if isinstance(answer, Exception):
        raise KafkaStorageError(f"ZooKeeper refused a request ({answer!r}); its log may say why")
    return answer


def _forbidden() -> ClusterAuthorizationFailed:
    return ClusterAuthorizationFailed(
        f"ZooKeeper forbids this broker to use its nodes; log in as the user that made them, by {JAAS} or"
        f" logkernel.zookeeper.digest"
    )


def _row(found: Any) -> Node | None:
    """Of an answer of many: (data, stat), or the number of an error."""
    if isinstance(found, int):
        if found == NoAuthError.code:
            raise _forbidden()
        return None
    return _node(found)


def _node(answer: Any) -> Node | None:
    if isinstance(answer, NoNodeError):
        return None
    data, stat = _sound(answer)
    return Node(data, stat.version, stat.czxid, stat.mzxid, stat.ctime, stat.ephemeralOwner)
