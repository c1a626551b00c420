"""TxnOffsetCommit (key 28), versions 0-5: offsets that hold when their transaction commits.

- Versions 0 to 2 name neither generation nor member; the broker sees -1 and "".
- COORDINATOR_LOAD_IN_PROGRESS is COORDINATOR_NOT_AVAILABLE to versions below 2, whose clients do not retry it.
- Capabilities: "transaction_abortable" (4+), "transactions_v2" (5+: the group's partition need not be added before).
"""

from __future__ import annotations

from logkernel.attrs_lite import evolve
from logkernel.errors import CoordinatorLoadInProgress, CoordinatorNotAvailable
from logkernel.requests.transactions import TxnOffsetCommitResponse, TxnOffsetCommitResponseTopic

from ..api import Api


class TxnOffsetCommit(Api):
    capabilities = (("transaction_abortable", 4), ("transactions_v2", 5))

    def downgrade_response(self, version: int, response: TxnOffsetCommitResponse) -> TxnOffsetCommitResponse:
        return response if version >= 2 else evolve(response, topics=[_patient(topic) for topic in response.topics])


def _patient(topic: TxnOffsetCommitResponseTopic) -> TxnOffsetCommitResponseTopic:
    rows = [
        evolve(row, error_code=CoordinatorNotAvailable.code)
        if row.error_code == CoordinatorLoadInProgress.code
        else row
        for row in topic.partitions
    ]
    return evolve(topic, partitions=rows)
