"""The callback keeps the contract of client quota callbacks, and its quotas follow the leaders."""

import acme_shares

from logkernel.contracts import ClientLimit, ClusterFacts, LedPartition
from logkernel.testing.contracts import ClientQuotaCallbackContract
from logkernel.vocabulary import Principal

SHOP = Principal("User", "shop")
NODES = (1, 2, 3)
OFFSETS = "__consumer_offsets"


class TestShares(ClientQuotaCallbackContract):
    name = "shares"
    plugins = (acme_shares,)


def led_by(*leaders):
    rows = tuple(LedPartition(leader, NODES, NODES) for leader in leaders)
    return ClusterFacts("c", 1, frozenset(NODES), {"orders": rows, OFFSETS: rows[:1]}, frozenset({OFFSETS}))


def test_a_broker_allows_the_part_that_it_leads():
    callback = acme_shares.Shares()
    callback.quotas_changed({(("user", "shop"),): {"producer_byte_rate": 3e6, "request_percentage": 5}})
    assert callback.limited_types() == (), "it does not know yet what it leads"
    assert callback.update_cluster_metadata(led_by(1, 2, 3))
    assert callback.limited_types() == {"producer_byte_rate"}
    assert callback.limit("producer_byte_rate", SHOP, "") == ClientLimit(1e6, ("shop",))
    assert not callback.update_cluster_metadata(led_by(2, 3, 1))
    assert callback.update_cluster_metadata(led_by(1, 2, 1, -1))
    assert callback.limit("producer_byte_rate", SHOP, "") == ClientLimit(2e6, ("shop",))
    assert callback.limit("request_percentage", SHOP, "") is None
    assert callback.update_cluster_metadata(led_by(2, 3))
    assert callback.limited_types() == ()
