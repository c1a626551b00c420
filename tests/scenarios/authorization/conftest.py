"""A broker in memory with an authorizer, asked by users whom no listener had to authenticate."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from logkernel.broker.broker import Broker
from logkernel.broker.build import build
from logkernel.contracts import RequestContext
from logkernel.requests import access
from logkernel.vocabulary import AclOperation, Principal, ResourceType

CAPABILITIES = frozenset({"topic_ids", "zstd", "transaction_abortable"})
LITERAL, PREFIXED, DENY, ALLOW = 3, 4, 2, 3


class World:
    """A broker, and what users ask of it. `root` is its super user."""

    def __init__(self, *settings: str, plugins: tuple[object, ...] = ()) -> None:
        given = ["authorizer.class.name=standard", "super.users=User:root", "offsets.topic.num.partitions=1", *settings]
        self.broker: Broker = build(None, given, in_memory=True, plugins=plugins)
        self.broker.start()

    def context(self, user: str, **other: Any) -> RequestContext:
        given: dict[str, Any] = {"client_host": "10.0.0.7", "capabilities": CAPABILITIES, "client_id": "test"}
        return RequestContext(principal=Principal("User", user), **{**given, **other})

    def ask(self, user: str, request: Any, **context: Any) -> Any:
        """The response, which has to come at once."""
        found: list[Any] = []
        self.broker.submit(request, self.context(user, **context), found.append)
        (response,) = found
        return response

    def allow(
        self, user: str, operation: AclOperation, kind: ResourceType, name: str, *, pattern: int = LITERAL,
        permission: int = ALLOW,
    ) -> None:  # fmt: skip
        rule = access.AclCreation(int(kind), name, pattern, f"User:{user}", "*", int(operation), permission)
        (row,) = self.ask("root", access.CreateAclsRequest([rule])).results
        assert row.error_code == 0, row

    def forbid(self, user: str) -> None:
        """Delete the user's ACLs."""
        asked = access.DeleteAclsFilter(1, None, 1, f"User:{user}", None, 1, 1)
        self.ask("root", access.DeleteAclsRequest([asked]))

    def topic(self, name: str, partitions: int = 1) -> None:
        self.broker.create_topic(name, partitions, {})


@pytest.fixture
def start() -> Iterator[Callable[..., World]]:
    made: list[World] = []

    def one(*settings: str, plugins: tuple[object, ...] = ()) -> World:
        made.append(World(*settings, plugins=plugins))
        return made[-1]

    yield one
    for world in made:
        world.broker.close()


@pytest.fixture
def world(start: Callable[..., World]) -> World:
    return start()
