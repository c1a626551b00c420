"""What clients have used, and for how long they are held back: the client quotas of Kafka, without connections.

    producer_byte_rate          bytes a second of record batches that are written       rate
    consumer_byte_rate          bytes a second of record batches that are read          rate
    request_percentage          % of the broker's thread                                rate; one sample at most
    controller_mutation_rate    partitions a second that are created and deleted        bucket

The first and the second hold back for as long as the rate needs to come back (KIP-13), the third for one sample at
most (KIP-124), the last as the bucket needs (KIP-599).
"""

from __future__ import annotations

from logkernel.broker.quotas.limits import Limit, Limits, Quotas
from logkernel.broker.quotas.windows import Meters, Rate, TokenBucket, Window
from logkernel.errors import ThrottlingQuotaExceeded

BUCKET_KEPT_MS = 3_600_000
"""An idle bucket is forgotten with its debt after an hour, as in Kafka."""
MOST_CONCERNED = 10_000
"""Clients of which it is remembered whether a quota applies to them."""
PERCENT_OF_NS = 100 / 1_000_000_000


class RateQuota:
    """One kind of quota that is a rate."""

    def __init__(self, name: str, window: Window, most_ms: int | None = None) -> None:
        """`most_ms` bounds the time for which a client is held back at once."""
        self._name = name
        self._window = window
        self._most_ms = most_ms
        self._meters: Meters[Rate] = Meters(Rate)
        self.limits = Limits({}, name)

    def configure(self, quotas: Quotas) -> None:
        self.limits = Limits(quotas, self._name)

    def use(self, user: str, client_id: str, amount: float, now_ms: int) -> int:
        """Record what a client used; return for how many ms it is to be held back."""
        limit = self.limits.of(user, client_id)
        if limit is None:
            return 0
        meter = self._meters.of(limit.whose, now_ms, self._window.span_ms)
        meter.record(amount, now_ms, self._window)
        throttle_ms = meter.throttle_ms(limit.quota, now_ms, self._window)
        return throttle_ms if self._most_ms is None else min(throttle_ms, self._most_ms)

    def note(self, user: str, client_id: str, amount: float, now_ms: int) -> None:
        """Record what counts against the client's next request."""
        limit = self.limits.of(user, client_id)
        if limit is not None:
            self._meters.of(limit.whose, now_ms, self._window.span_ms).record(amount, now_ms, self._window)

    def most_at_once(self, user: str, client_id: str) -> int | None:
        """What a client may use at once without being held back in any case; None: anything."""
        limit = self.limits.of(user, client_id)
        window = self._window
        return None if limit is None else int(limit.quota * max(1, window.samples - 1) * window.size_ms / 1000)


class Mutations:
    """The mutations of one request, against the client's bucket."""

    def __init__(self, bucket: TokenBucket, limit: Limit, window: Window, now_ms: int, *, strict: bool) -> None:
        self._bucket = bucket
        self._limit = limit
        self._window = window
        self._now_ms = now_ms
        self._strict = strict
        self._refused = False

    def spend(self, partitions: int) -> None:
        """Take so many tokens. A bucket may be overdrawn once; while it is, a strict client is refused: raises
        `ThrottlingQuotaExceeded`."""
        quota, now_ms = self._limit.quota, self._now_ms
        if self._strict and self._bucket.is_overdrawn(quota, now_ms, self._window):
            self._refused = True
            raise ThrottlingQuotaExceeded("The throttling quota has been exceeded.")
        self._bucket.take(partitions, quota, now_ms, self._window)

    def throttle_ms(self, now_ms: int) -> int:
        """For how long the client is to be held back. A strict one is not before it was refused."""
        if self._strict and not self._refused:
            return 0
        return self._bucket.throttle_ms(self._limit.quota, now_ms, self._window)


class ClientQuotas:
    """All of them, of one broker."""

    def __init__(self, window: Window, mutation_window: Window) -> None:
        self.written = RateQuota("producer_byte_rate", window)
        self.read = RateQuota("consumer_byte_rate", window)
        self.busy = RateQuota("request_percentage", window, most_ms=window.size_ms)
        self._mutation_limits = Limits({}, "")
        self._mutation_window = mutation_window
        self._buckets: Meters[TokenBucket] = Meters(TokenBucket)
        self._concerned: dict[tuple[str, str], bool] = {}

    def configure(self, quotas: Quotas) -> None:
        """Take other quotas into force; what clients have used stays."""
        for each in (self.written, self.read, self.busy):
            each.configure(quotas)
        self._concerned.clear()
        self._mutation_limits = Limits(quotas, "controller_mutation_rate")

    def __bool__(self) -> bool:
        """Whether there is a quota that every request has to be measured for."""
        return bool(self.written.limits or self.read.limits or self.busy.limits)

    def concern(self, user: str, client_id: str) -> bool:
        """Whether there is one for this client."""
        found = self._concerned.get((user, client_id))
        if found is None:
            if len(self._concerned) >= MOST_CONCERNED:
                self._concerned.clear()
            kinds = (self.written, self.read, self.busy)
            found = any(each.limits.of(user, client_id) is not None for each in kinds)
            self._concerned[user, client_id] = found
        return found

    def mutations(self, user: str, client_id: str, now_ms: int, *, strict: bool) -> Mutations | None:
        """None where no quota applies."""
        limit = self._mutation_limits.of(user, client_id)
        if limit is None:
            return None
        bucket = self._buckets.of(limit.whose, now_ms, BUCKET_KEPT_MS)
        return Mutations(bucket, limit, self._mutation_window, now_ms, strict=strict)
