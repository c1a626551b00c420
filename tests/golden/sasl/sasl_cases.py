"""What clients send before, amid and after their authentication by SASL, in turn or not, and what they are told.

Apache Kafka is asked by `record.py`, our connection by tests/scenarios/security/test_sasl_beside_kafka.py: the same
frames, in the same order. Each case is a connection of its own, to one of two listeners: of `once` sessions do not end,
at `again` a client has to authenticate again within `SESSION_MS`.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, Protocol

from attrs import fields, frozen, has

from logkernel.errors import BY_CODE
from logkernel.plugins.transport.tcp import registry
from logkernel.requests import cluster, configs, consumer_groups, data, groups, offsets, topics, transactions
from logkernel.requests.access import (
    DescribeAclsRequest,
    DescribeUserScramCredentialsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
    UserName,
)
from logkernel.requests.api_versions import ApiVersionsRequest

USERS: Final = {"ann": "wonder", "bob": "build"}
SESSION_MS: Final = 4_000
FAILURE_DELAY_MS: Final = 1_000
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256")


@frozen
class Step:
    """A frame, or several that are sent as one; or a time that passes."""

    name: str
    frames: bytes = b""
    reads: tuple[tuple[int, int], ...] = ()
    """API key and version of each answer that may come; a key of -1: a token without Kafka's headers."""
    passes_ms: int = 0


class Peer(Protocol):
    """One connection to a broker."""

    def send(self, frames: bytes) -> None: ...

    def receive(self) -> tuple[bytes, bool] | None:
        """The next answer, and whether it came late, by the delay of those that fail; None: the connection ended."""
        ...

    def passes(self, ms: int) -> None: ...

    def is_open(self) -> bool: ...


# ---------------------------------------------------------------- frames


def framed(key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
    head = struct.pack(">hhih", key, version, 7, 4) + b"test" + (b"\0" if flexible else b"")
    return struct.pack(">i", len(head) + len(body)) + head + body


def ask(request: Any, version: int) -> Step:
    row = registry.BY_REQUEST[type(request).__name__]
    body = b"".join(map(bytes, registry.load(row.key).encode_request_parts(version)(request)))
    silent = isinstance(request, data.ProduceRequest) and request.acks == 0
    name = f"{row.name} v{version}{' acks=0' if silent else ''}"
    return Step(name, framed(row.key, version, body, flexible=version >= row.flexible_from), ((row.key, version),))


def named(name: str, step: Step) -> Step:
    return Step(name, step.frames, step.reads)


def together(*steps: Step) -> Step:
    return Step(
        " + ".join(step.name for step in steps),
        b"".join(step.frames for step in steps),
        tuple(read for step in steps for read in step.reads),
    )


def handshake(mechanism: str = "PLAIN", version: int = 1) -> Step:
    return named(f"SaslHandshake v{version} {mechanism}", ask(SaslHandshakeRequest(mechanism), version))


def login(user: str = "ann", password: str = "", version: int = 2) -> Step:
    message = f"\0{user}\0{password or USERS[user]}".encode()
    shown = f"SaslAuthenticate v{version} {user}{' with another password' if password else ''}"
    return named(shown, ask(SaslAuthenticateRequest(message), version))


def token(message: bytes, name: str) -> Step:
    return Step(f"token {name}", struct.pack(">i", len(message)) + message, ((-1, 0),))


def versions(version: int = 4, name: str = "test") -> Step:
    step = ask(ApiVersionsRequest(name, "1"), version)
    return step if name == "test" else named(f"{step.name} of {name!r}", step)


def waits(ms: int, why: str) -> Step:
    return Step(f"({why})", passes_ms=ms)


SCRAM_FIRST: Final = named(
    "SaslAuthenticate v2 client-first", ask(SaslAuthenticateRequest(b"n,,n=ann,r=0123456789"), 2)
)
BARE: Final = token(b"\0ann\0wonder", "ann")
EXPIRED: Final = waits(SESSION_MS + 1_500, "the session expires")
A_SECOND: Final = waits(1_200, "more than a second passes")
METADATA: Final = ask(
    cluster.MetadataRequest([cluster.MetadataRequestTopic(name="orders")], allow_auto_topic_creation=False), 9
)
UNKNOWN_VERSIONS: Final = Step("ApiVersions v99", framed(18, 99, b"\1\1\0", flexible=True), ((18, 0),))
UNKNOWN_KEY: Final = Step("a request of API key 999", framed(999, 0, b""), ((17, 1),))
NEWER_HANDSHAKE: Final = Step("SaslHandshake v9", framed(17, 9, b"\0\5PLAIN"), ((17, 1),))
NEWER_LOGIN: Final = Step("SaslAuthenticate v9", framed(36, 9, b"\1\0", flexible=True), ((36, 2),))
TORN: Final = Step("SaslAuthenticate v1 that is cut off", framed(36, 1, b"\0\0\1\0ab"), ((36, 1),))


def requests() -> Iterator[Step]:
    """One request of each API that clients ask of a broker, in the newest version that both speak."""
    rows = {
        data.ProduceRequest: _produce(-1),
        data.FetchRequest: data.FetchRequest(topics=[data.FetchTopic("orders", [data.FetchPartition(0)])]),
        offsets.ListOffsetsRequest: offsets.ListOffsetsRequest(
            topics=[offsets.ListOffsetsTopic("orders", [offsets.ListOffsetsPartition(3)])]
        ),
        offsets.DeleteRecordsRequest: offsets.DeleteRecordsRequest(
            [offsets.DeleteRecordsTopic("orders", [offsets.DeleteRecordsPartition(3, 1)])]
        ),
        offsets.OffsetForLeaderEpochRequest: offsets.OffsetForLeaderEpochRequest(
            topics=[offsets.OffsetForLeaderTopic("orders", [offsets.OffsetForLeaderPartition(3)])]
        ),
        topics.CreateTopicsRequest: topics.CreateTopicsRequest([topics.CreatableTopic("orders", 1, 1)]),
        topics.DeleteTopicsRequest: topics.DeleteTopicsRequest(topics=[topics.DeleteTopicState("orders")]),
        topics.CreatePartitionsRequest: topics.CreatePartitionsRequest([topics.CreatePartitionsTopic("orders", 3)]),
        configs.DescribeConfigsRequest: configs.DescribeConfigsRequest(
            [configs.DescribeConfigsResource(2, "orders", None)]
        ),
        groups.OffsetCommitRequest: groups.OffsetCommitRequest(
            "app",
            topics=[groups.OffsetCommitRequestTopic("orders", partitions=[groups.OffsetCommitRequestPartition(3)])],
        ),
        groups.FindCoordinatorRequest: groups.FindCoordinatorRequest(coordinator_keys=["app"]),
        groups.HeartbeatRequest: groups.HeartbeatRequest("app", 1, "me"),
        groups.JoinGroupRequest: groups.JoinGroupRequest("app", 6000, "", "consumer"),
        groups.DescribeGroupsRequest: groups.DescribeGroupsRequest(["app"]),
        groups.DeleteGroupsRequest: groups.DeleteGroupsRequest(["app"]),
        DescribeAclsRequest: DescribeAclsRequest(2, "orders", 3, None, None, 1, 1),
        DescribeUserScramCredentialsRequest: DescribeUserScramCredentialsRequest([UserName("ann")]),
        consumer_groups.ConsumerGroupDescribeRequest: consumer_groups.ConsumerGroupDescribeRequest(["app"]),
        transactions.EndTxnRequest: transactions.EndTxnRequest("tx", 1, 1, True),
    }
    newest = {"OffsetCommit": 9, "Fetch": 12, "Produce": 12}
    for kind, request in rows.items():
        row = registry.BY_REQUEST[kind.__name__]
        yield ask(request, newest.get(row.name, row.max_version))
    for name in ("ListGroups", "InitProducerId", "DescribeCluster", "DescribeClientQuotas", "DescribeLogDirs",
                 "ListTransactions", "CreateDelegationToken", "ListConfigResources",
                 "ListPartitionReassignments"):  # fmt: skip
        row = registry.BY_REQUEST[f"{name}Request"]
        yield ask(registry.load(row.key).classes(row.max_version, "request")[1](), row.max_version)


def _produce(acks: int) -> data.ProduceRequest:
    return data.ProduceRequest(None, acks, 1000, [data.TopicProduceData("orders", [data.PartitionProduceData(3, b"")])])


# ---------------------------------------------------------------- the cases


def cases() -> Iterator[tuple[str, str, Sequence[Step]]]:
    """Name, listener, and what a client does."""
    yield from _before()
    yield from _amid()
    yield from _after()
    yield from _again()


def _before() -> Iterator[tuple[str, str, Sequence[Step]]]:
    yield "before: Metadata", "once", [METADATA]
    yield "before: SaslAuthenticate", "once", [login()]
    yield "before: Metadata behind ApiVersions", "once", [versions(), METADATA]
    yield "before: SaslAuthenticate behind ApiVersions", "once", [versions(), login()]
    yield "before: ApiVersions twice", "once", [versions(), versions()]
    yield (
        "before: ApiVersions of an unknown version, then another",
        "once",
        [UNKNOWN_VERSIONS, versions(0), handshake()],
    )
    yield "before: ApiVersions of an unknown version twice", "once", [UNKNOWN_VERSIONS, UNKNOWN_VERSIONS]
    yield "before: ApiVersions of a wrong name, then another", "once", [versions(4, "?"), versions(), handshake()]
    yield "before: another mechanism", "once", [handshake("NTLM")]
    yield "before: another mechanism, by v0", "once", [handshake("NTLM", 0)]
    yield "before: a newer SaslHandshake", "once", [NEWER_HANDSHAKE]
    yield "before: an unknown API", "once", [UNKNOWN_KEY]
    yield "before: all in one", "once", [together(versions(), handshake(), login(), METADATA)]


def _amid() -> Iterator[tuple[str, str, Sequence[Step]]]:
    for step in (*requests(), METADATA, ask(_produce(0), 9), versions(0), versions(4), UNKNOWN_VERSIONS, UNKNOWN_KEY,
                 handshake(), handshake("NTLM"), handshake(version=0), NEWER_HANDSHAKE, NEWER_LOGIN, TORN,
                 login("ann", "wr0ng"), login("ann", "wr0ng", 0)):  # fmt: skip
        yield f"amid: {step.name}", "once", [handshake(), step]
    for step in (METADATA, versions(), handshake(), handshake("SCRAM-SHA-256")):
        yield f"amid SCRAM: {step.name}", "once", [handshake("SCRAM-SHA-256"), SCRAM_FIRST, step]
    yield "amid: Metadata in one with the handshake", "once", [together(handshake(), METADATA)]
    yield "amid tokens: SaslAuthenticate", "once", [handshake(version=0), login()]
    yield "amid tokens: Metadata", "once", [handshake(version=0), METADATA]
    yield "amid tokens: a wrong password", "once", [handshake(version=0), token(b"\0ann\0wr0ng", "of a wrong password")]


def _after() -> Iterator[tuple[str, str, Sequence[Step]]]:
    for step in (handshake(), handshake("NTLM"), handshake("SCRAM-SHA-256"), handshake(version=0), login(),
                 login("bob"), login(version=0), versions()):  # fmt: skip
        yield f"after: {step.name}", "once", [handshake(), login(), step, step, METADATA]
    yield "after: SaslAuthenticate in one with the login", "once", [handshake(), together(login(), login()), METADATA]
    yield "after tokens: SaslHandshake", "once", [handshake(version=0), BARE, handshake(), METADATA]
    yield "after tokens: SaslAuthenticate", "once", [handshake(version=0), BARE, login(), METADATA]


def _again() -> Iterator[tuple[str, str, Sequence[Step]]]:
    inside = [handshake(), login()]
    yield "again: at once", "again", [*inside, handshake(), login(), METADATA]
    yield "again: twice within a second", "again", [*inside, *inside, handshake(), login(), METADATA]
    yield "again: twice", "again", [*inside, *inside, A_SECOND, *inside, METADATA]
    yield "again: SaslAuthenticate without a handshake", "again", [*inside, login(), METADATA]
    yield "again: another mechanism of the listener", "again", [*inside, handshake("SCRAM-SHA-256"), SCRAM_FIRST]
    yield "again: an unknown mechanism", "again", [*inside, handshake("NTLM")]
    yield "again: by tokens", "again", [*inside, handshake(version=0), login(), METADATA]
    yield "again: by tokens that are none", "again", [*inside, handshake(version=0), BARE]
    yield "again: another user", "again", [*inside, handshake(), login("bob")]
    yield "again: another password", "again", [*inside, handshake(), login("ann", "wr0ng")]
    for step in (
        METADATA,
        ask(groups.HeartbeatRequest("app", 1, "me"), 4),
        ask(_produce(0), 9),
        versions(),
        handshake(),
    ):
        yield f"again: {step.name} amid", "again", [*inside, handshake(), step]
    for step in (METADATA, versions(), login(), handshake(), handshake("NTLM")):
        yield f"again: {step.name} when the session expired", "again", [*inside, EXPIRED, step, login()]
    yield "again: an older client when the session expired", "again", [handshake(), login(version=0), EXPIRED, METADATA]
    yield "again: tokens when the session expired", "again", [handshake(version=0), BARE, EXPIRED, METADATA]
    yield "again: tokens, then headers", "again", [handshake(version=0), BARE, handshake(), login(), METADATA]


# ---------------------------------------------------------------- what they are told


def table(connect: Callable[[str], Peer]) -> Iterator[str]:
    """A line for each case, and an indented one for each of its answers; the last one says whether it is still open."""
    for name, listener, steps in cases():
        yield name
        peer = connect(listener)
        yield from (f"    {line}" for line in _answers(peer, steps))


def _answers(peer: Peer, steps: Sequence[Step]) -> Iterator[str]:
    for step in steps:
        if step.passes_ms:
            peer.passes(step.passes_ms)
            continue
        peer.send(step.frames)
        for key, version in step.reads:
            found = peer.receive()
            if found is None:
                yield f"{step.name}: closed"
                return
            answer, late = found
            yield f"{step.name}: {'late, ' if late else ''}{_shown(key, version, answer)}"
    yield "open" if peer.is_open() else "closed"


def _shown(key: int, version: int, answer: bytes) -> str:
    if key == -1:
        return f"token of {len(answer)} bytes"
    row = registry.BY_KEY[key]
    api = registry.load(key)
    start = 5 if version >= row.flexible_from and key != registry.API_VERSIONS_KEY else 4
    response = api.decode_response(version)(memoryview(answer)[start:])
    if row.name == "ApiVersions":
        return f"{_error(response.error_code)}, {'some' if response.api_keys else 'no'} APIs"
    if row.name == "SaslAuthenticate":
        shown = f"{_error(response.error_code)}, {'some' if response.auth_bytes else 'no'} bytes"
        return f"{shown}, {'ends' if response.session_lifetime_ms else 'lasts'}"
    if row.name == "SaslHandshake":
        return f"{_error(response.error_code)}, {' '.join(sorted(response.mechanisms)) or 'no mechanisms'}"
    if getattr(response, "brokers", None):
        return "answered"
    return " ".join(_errors(response)) or "no error"


def _error(code: int) -> str:
    return BY_CODE[code].__name__ if code else "no error"


def _errors(value: Any, path: str = "") -> Iterator[str]:
    """Each error of a response, with where it stands."""
    if isinstance(value, list):
        for number, one in enumerate(value):
            yield from _errors(one, f"{path}[{number}]")
    elif has(type(value)):
        for field in fields(type(value)):
            own = getattr(value, field.name)
            if field.name == "error_code" and own:
                yield f"{path or 'the response'}: {_error(own)}"
            else:
                yield from _errors(own, f"{path}.{field.name}" if path else field.name)
