"""ListTransactions (key 66), versions 0-2: transactions by state, producer, duration (1+) and id pattern (2+)."""

from __future__ import annotations

from logkernel.errors import UnsupportedVersion
from logkernel.requests.transactions import ListTransactionsRequest

from ..api import Api


class ListTransactions(Api):
    def downgrade_request(self, version: int, request: ListTransactionsRequest) -> ListTransactionsRequest:
        if version < 2 and request.transactional_id_pattern:
            raise UnsupportedVersion(f"ListTransactions version {version} knows no pattern")
        if version < 1 and request.duration_filter >= 0:
            raise UnsupportedVersion(f"ListTransactions version {version} knows no duration")
        return request
