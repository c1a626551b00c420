"""Whether another broker let this one in, and forbids it what brokers do. Pure."""

from __future__ import annotations

from typing import Any, Final

from logkernel.errors import ClusterAuthorizationFailed, TopicAuthorizationFailed

CODES: Final = frozenset((ClusterAuthorizationFailed.code, TopicAuthorizationFailed.code))
"""Kafka gives a follower the second one."""
REMEDY: Final = (
    "let the principal that its log names do CLUSTER_ACTION on the cluster, or add it to super.users of each broker;"
    " where that is not who this broker is to be, mend its key or login"
)
"""Of what the other broker refuses."""
ROWS: Final = {
    "FetchResponse": ("responses", "partitions"),
    "WriteTxnMarkersResponse": ("markers", "topics", "partitions"),
}
"""Response class → where its errors are, if not in a field of its own. Whom CLUSTER_ACTION is denied finds one in each
row, so the first is enough."""


def is_kept_out(response: Any) -> bool:
    """Whether `response` says that the principal of this broker may not do CLUSTER_ACTION."""
    code = getattr(response, "error_code", 0)
    row = response
    for name in () if code else ROWS.get(type(response).__name__, ()):
        rows = getattr(row, name)
        if not rows:
            return False
        row = rows[0]
    return (code or getattr(row, "error_code", 0)) in CODES
