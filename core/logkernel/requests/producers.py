"""Versionless requests and responses: producers."""

from __future__ import annotations

from logkernel.attrs_lite import mutable


@mutable
class InitProducerIdRequest:
    """InitProducerIdRequest (API key 22), versionless."""

    transactional_id: str | None = None
    transaction_timeout_ms: int = 0
    producer_id: int = -1
    producer_epoch: int = -1
    enable2_pc: bool = False
    keep_prepared_txn: bool = False


@mutable
class InitProducerIdResponse:
    """InitProducerIdResponse (API key 22), versionless."""

    throttle_time_ms: int = 0
    error_code: int = 0
    producer_id: int = -1
    producer_epoch: int = 0
    ongoing_txn_producer_id: int = -1
    ongoing_txn_producer_epoch: int = -1
