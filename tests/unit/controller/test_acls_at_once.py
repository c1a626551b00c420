"""What one request makes or deletes of access rules. The codes are what Apache Kafka 4.3.1 answers."""

from __future__ import annotations

import pytest

from logkernel.controller import acls
from logkernel.controller.acls import ANY, LITERAL, MOST_AT_ONCE
from logkernel.controller.image import ClusterImage
from logkernel.errors import InvalidRequest, PolicyViolation
from logkernel.requests import access

TOPIC, READ, ALLOW = 2, 3, 3


def make(image: ClusterImage, count: int, name: str = "t") -> list[int]:
    rules = [access.AclCreation(TOPIC, f"{name}{n}", LITERAL, "User:a", "*", READ, ALLOW) for n in range(count)]
    made = acls.create_acls(access.CreateAclsRequest(rules), image)
    image.apply_all(made.changes)
    return [row.error_code for row in made.response.results]


def delete(image: ClusterImage, *names: str | None) -> list[tuple[int, int]]:
    """(error, rules that are told) of a filter for each name; None: all."""
    asked = [access.DeleteAclsFilter(TOPIC, name, ANY, None, None, ANY, ANY) for name in names]
    gone = acls.delete_acls(access.DeleteAclsRequest(asked), image)
    image.apply_all(gone.changes)
    return [(row.error_code, len(row.matching_acls)) for row in gone.response.filter_results]


@pytest.fixture
def image() -> ClusterImage:
    return ClusterImage()


def test_a_request_makes_no_more_rules_than_in_kafka(image: ClusterImage) -> None:
    assert make(image, MOST_AT_ONCE + 1) == [PolicyViolation.code] * (MOST_AT_ONCE + 1)
    assert not image.acls
    assert make(image, MOST_AT_ONCE) == [0] * MOST_AT_ONCE
    assert make(image, MOST_AT_ONCE + 1) == [0] * (MOST_AT_ONCE + 1), "one of them is new"


def test_a_request_tells_no_more_rules_that_it_deletes_than_in_kafka(image: ClusterImage) -> None:
    """Ten thousand filters that match all rules were answered with all of them, each time."""
    make(image, MOST_AT_ONCE)
    make(image, 1, "other")
    assert delete(image, None) == [(InvalidRequest.code, 0)]
    assert delete(image, "other0", None, "none") == [(0, 1), (InvalidRequest.code, 0), (0, 0)]
    assert delete(image, None, "t1") == [(0, MOST_AT_ONCE), (InvalidRequest.code, 0)]
    assert not image.acls
