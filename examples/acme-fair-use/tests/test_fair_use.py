"""The quota keeps the contract of quotas, and counts by client and minute."""

import acme_fair_use

from logkernel.contracts import RequestContext, Usage
from logkernel.testing.contracts import QuotaContract


class TestFairUse(QuotaContract):
    name = "fair-use"


def test_a_client_waits_for_the_next_minute():
    quota = acme_fair_use.FairUse(2)

    def write(client_id, mono_ms):
        return quota.throttle(Usage("t", 0, RequestContext(client_id=client_id), 100, 0, mono_ms))

    assert [write("a", 60_000), write("a", 70_000), write("b", 71_000), write("a", 75_000)] == [0, 50_000, 0, 45_000]
    assert write("a", 120_000) == 0
    assert quota.throttle(Usage("t", 0, RequestContext(client_id="a"), 0, 100, 121_000)) == 0, "it limits writes"
