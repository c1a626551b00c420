"""The filter keeps the contract of fetch filters, and tenants apart."""

import acme_tenants
import pytest

from logkernel.contracts import ReadFacts, RequestContext
from logkernel.testing.contracts import FetchFilterContract
from logkernel.vocabulary import Record


class TestTenantFilter(FetchFilterContract):
    name = "tenant"


@pytest.mark.parametrize(
    ("client_id", "offsets"),
    [("ann/billing", [0, 2]), ("bob/", [1]), ("cid/x", []), ("operator", [0, 1, 2, 3]), (None, [0, 1, 2, 3])],
)
def test_a_tenant_gets_its_own_records(client_id, offsets):
    tenant_filter = acme_tenants.TenantFilter("tenant")
    read = ReadFacts("orders", 0, RequestContext(client_id=client_id), "")
    rows = [Record(headers=(("tenant", name),) if name else (), value=b"v") for name in (b"ann", b"bob", b"ann", None)]
    assert [offset for offset, row in enumerate(rows) if tenant_filter.passes(row, read)] == offsets
