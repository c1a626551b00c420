"""SCRAM users as the controller describes them."""

from __future__ import annotations

from logkernel.controller import credentials
from logkernel.controller.image import ClusterImage
from logkernel.errors import DuplicateResource, ResourceNotFound
from logkernel.requests.access import DescribeUserScramCredentialsRequest, UserName


class Name(str):
    """Counts how often names are compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Name.compared += 1
        return str.__eq__(self, other)


def test_many_users_are_described_at_the_cost_of_few() -> None:
    """Each was compared with all others: a request of 3 MB held the broker up for hours."""
    names = [Name(f"user-{number}") for number in range(1_000)]
    asked = DescribeUserScramCredentialsRequest([UserName(name) for name in [*names, names[0]]])
    response = credentials.describe(asked, ClusterImage())
    codes = {row.user: row.error_code for row in response.results}
    assert codes == dict.fromkeys(names, ResourceNotFound.code) | {names[0]: DuplicateResource.code}
    assert Name.compared < 20 * len(names)
