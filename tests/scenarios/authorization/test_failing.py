"""An authorizer that fails refuses: with its name in the log, and as soon as it works again, no more."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import pytest

from logkernel import errors as e
from logkernel.broker.authorization.gate import Gate
from logkernel.contracts import RequestContext
from logkernel.hookspecs import hookimpl
from logkernel.requests import cluster, data, groups, offsets
from logkernel.vocabulary import Acl

FAILED = e.UnknownServerError.code
BY_NAME: dict[str, Any] = {"capabilities": frozenset({"zstd"})}


class Moody:
    """It allows everything, or fails in the way that `fails` says."""

    fails = ""

    def acls_changed(self, added: Collection[Acl], removed: Collection[Acl]) -> None:
        if self.fails == "acls":
            raise RuntimeError("no memory for rules")

    def authorize(self, client: RequestContext, operation: int, resource_type: int, names: Sequence[str]) -> Any:
        if self.fails == "raises":
            raise RuntimeError("the oracle is silent")
        return {"words": ["yes"] * len(names), "short": [], "none": None}.get(self.fails, [True] * len(names))

    def authorize_by_resource_type(self, client: RequestContext, operation: int, resource_type: int) -> Any:
        return True


class Plugin:
    def __init__(self, made: Moody) -> None:
        self.made = made

    @hookimpl
    def logkernel_authorizer(self, name: str) -> object:
        return self.made if name == "moody" else None

    @hookimpl
    def logkernel_names(self) -> list[tuple[str, str]]:
        return [("authorizer", "moody")]


@pytest.fixture
def moody() -> Moody:
    return Moody()


@pytest.fixture
def world(start: Callable[..., Any], moody: Moody) -> Any:
    made = start("authorizer.class.name=moody", plugins=(Plugin(moody),))
    made.topic("t")
    return made


def listed(world: Any) -> int:
    topic = offsets.ListOffsetsTopic("t", [offsets.ListOffsetsPartition(0, -1)])
    (found,) = world.ask("ann", offsets.ListOffsetsRequest(topics=[topic])).topics
    code: int = found.partitions[0].error_code
    return code


@pytest.mark.parametrize("how", ["raises", "words", "short", "none"])
def test_a_request_is_refused_while_its_authorizer_fails(
    world: Any, moody: Moody, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    assert listed(world) == 0
    moody.fails = how
    assert listed(world) == FAILED
    assert "Plugin" in caplog.text
    assert "authorizer moody" in caplog.text
    assert "the request is refused" in caplog.text
    moody.fails = ""
    assert listed(world) == 0


def test_a_fetch_is_refused_by_partition_and_metadata_as_a_whole(world: Any, moody: Moody) -> None:
    """They ask in their handlers."""
    moody.fails = "raises"
    asked = data.FetchRequest(topics=[data.FetchTopic("t", [data.FetchPartition(0, 0, 1000)])])
    (topic,) = world.ask("ann", asked, **BY_NAME).responses
    assert topic.partitions[0].error_code == FAILED
    (row,) = world.ask("ann", cluster.MetadataRequest([cluster.MetadataRequestTopic("t")])).topics
    assert row.error_code == FAILED


def test_a_response_that_cannot_be_filtered_is_not_given(world: Any, moody: Moody) -> None:
    """The authorizer fails while the request is under way."""
    answers: list[Any] = []
    authorization, refusal = world.broker.context.authorization, world.broker.router.refusal

    def behind(request: Any, context: Any, answer: Any) -> None:
        moody.fails = "raises"
        answer(groups.DescribeGroupsResponse([groups.DescribedGroup(group_id="app")]))

    gate = Gate(authorization, "DescribeGroupsRequest", behind, refusal)
    asked = groups.DescribeGroupsRequest(["app"], include_authorized_operations=True)
    gate.handle(asked, world.context("ann"), answers.append)
    assert [(row.group_id, row.error_code) for row in answers[0].groups] == [("app", FAILED)]


def test_nothing_passes_until_the_authorizer_knows_the_acls(world: Any, moody: Moody) -> None:
    """It was told of none yet, or would judge by what is no longer so."""
    moody.fails = "acls"
    assert listed(world) == FAILED
    assert listed(world) == FAILED
    moody.fails = ""
    assert listed(world) == 0


def test_an_authorizer_that_took_too_long_is_not_asked_for_a_minute(world: Any, moody: Moody) -> None:
    import time

    assert listed(world) == 0
    world.broker.runtime.kernel.faults.budget.spent("authorizer moody", 20_000, time.monotonic())
    assert listed(world) == FAILED
