"""What the built-in authorizer adds to a request, with 10,000 ACLs: python bench/authorizing.py

Prints CPU time, in µs a request, of all that stands between the router and what answers; and the time in ms that the
request after a change of one ACL waits. No socket, no broker's work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from logkernel.broker.authorization.asking import Authorization
from logkernel.broker.authorization.table import guard_of
from logkernel.broker.build import build
from logkernel.contracts import RequestContext
from logkernel.record.encode import encode_batch
from logkernel.requests import data, groups
from logkernel.vocabulary import Acl, AclOperation, Principal, Record, ResourceType

ACLS = 10_000
CALLS, RUNS = 20_000, 7
CLIENT = RequestContext(client_host="10.0.0.1", principal=Principal("User", "ann"))


def rules() -> list[Acl]:
    """Of 500 users, half of them prefixes; and those of the user who asks."""
    found = [
        Acl(
            2,
            3 + number % 2,
            f"topic-{number}" if number % 3 else f"orders-{number}",
            f"User:u{number % 500}",
            "*",
            3,
            3,
        )
        for number in range(ACLS)
    ]
    found += [Acl(2, 4, "orders", "User:ann", "*", operation, 3) for operation in (3, 4)]
    return [*found, Acl(3, 3, "app", "User:ann", "*", 3, 3)]


def microseconds(call: Callable[[], Any]) -> float:
    best = float("inf")
    for _ in range(RUNS):
        begun = time.process_time()
        for _ in range(CALLS):
            call()
        best = min(best, time.process_time() - begun)
    return best / CALLS * 1e6


def guarded(authorization: Authorization, request: Any) -> Callable[[], Any]:
    name = type(request).__name__
    guard = guard_of(name)
    return lambda: guard(authorization.asking(CLIENT, name), request)


def main() -> None:
    broker = build(None, ["authorizer.class.name=standard"], in_memory=True)
    broker.start()
    authorization, acls = broker.context.authorization, broker.metadata.image.acls
    assert authorization is not None
    acls.update(dict.fromkeys(rules()))
    acls.changes += 1
    batch = encode_batch([Record(None, b"v", (), 1)])
    produce = data.ProduceRequest(
        None, 1, 0, [data.TopicProduceData("orders-1", [data.PartitionProduceData(0, batch)])]
    )

    def fetch() -> bool:
        """As its handler asks."""
        asking = authorization.asking(CLIENT, "FetchRequest")
        return asking.may(AclOperation.READ, ResourceType.TOPIC, "orders-1")

    print(f"Produce    {microseconds(guarded(authorization, produce)):.2f} µs")
    print(f"Fetch      {microseconds(fetch) + microseconds(guarded(authorization, data.FetchRequest())):.2f} µs")
    print(f"Heartbeat  {microseconds(guarded(authorization, groups.HeartbeatRequest('app', 1, 'm'))):.2f} µs")
    acls[Acl(2, 3, "new", "User:bob", "*", 3, 3)] = None
    acls.changes += 1
    begun = time.process_time()
    authorization.asking(CLIENT, "FetchRequest")
    print(f"after a change  {(time.process_time() - begun) * 1e3:.1f} ms")
    broker.close()


if __name__ == "__main__":
    main()
