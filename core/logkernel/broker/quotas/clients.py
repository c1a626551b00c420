"""What clients have used, and for how long they are held back: the client quotas of Kafka, without connections.

    producer_byte_rate          bytes a second of record batches that are written       rate
    consumer_byte_rate          bytes a second of record batches that are read          rate
    request_percentage          % of the broker's thread                                rate; one sample at most
    controller_mutation_rate    partitions a second that are created and deleted        bucket

The first and the second hold back for as long as the rate needs to come back (KIP-13), the third for one sample at
most (KIP-124), the last as the bucket needs (KIP-599).
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import blake2b
from typing import Final, NamedTuple

from logkernel.broker.quotas.limits import KafkasPrecedence, Quotas
from logkernel.broker.quotas.windows import Meters, Rate, TokenBucket, Window
from logkernel.contracts import ClientLimit, ClientQuotaCallback
from logkernel.controller.quotas import IP
from logkernel.errors import ThrottlingQuotaExceeded
from logkernel.vocabulary import Principal

BUCKET_KEPT_MS = 3_600_000
"""An idle bucket is forgotten with its debt after an hour, as in Kafka."""
MOST_REMEMBERED = 10_000
"""Clients whose limits are remembered."""
MOST_CHARACTERS = 250
"""Of a client id that is kept as it is. Clients choose it, with up to 32 kB, and may have another for each request."""
PERCENT_OF_NS = 100 / 1_000_000_000


def _bounded(limit: ClientLimit | None) -> ClientLimit | None:
    """With a digest in the place of a long name: the meters keep `whose`."""
    if limit is None or all(part is None or len(part) <= MOST_CHARACTERS for part in limit.whose):
        return limit
    parts = (part if part is None or len(part) <= MOST_CHARACTERS else _digest(part) for part in limit.whose)
    return ClientLimit(limit.quota, tuple(parts))


def _digest(text: str) -> str:
    return blake2b(text.encode(errors="surrogatepass"), digest_size=32).hexdigest()


class RateQuota:
    """One kind of quota that is a rate."""

    def __init__(self, window: Window, most_ms: int | None = None) -> None:
        """`most_ms` bounds the time for which a client is held back at once."""
        self._window = window
        self._most_ms = most_ms
        self._meters: Meters[Rate] = Meters(Rate)

    def use(self, limit: ClientLimit, amount: float, now_ms: int) -> int:
        """Record what a client used; return for how many ms it is to be held back."""
        meter = self._meters.of(limit.whose, now_ms, self._window.span_ms)
        meter.record(amount, now_ms, self._window)
        throttle_ms = meter.throttle_ms(limit.quota, now_ms, self._window)
        return throttle_ms if self._most_ms is None else min(throttle_ms, self._most_ms)

    def note(self, limit: ClientLimit, amount: float, now_ms: int) -> None:
        """Record what counts against the client's next request."""
        self._meters.of(limit.whose, now_ms, self._window.span_ms).record(amount, now_ms, self._window)

    def most_at_once(self, limit: ClientLimit) -> int:
        """What a client may use at once without being held back in any case."""
        window = self._window
        return int(limit.quota * max(1, window.samples - 1) * window.size_ms / 1000)


class Mutations:
    """The mutations of one request, against the client's bucket."""

    def __init__(self, bucket: TokenBucket, limit: ClientLimit, window: Window, now_ms: int, *, strict: bool) -> None:
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


class Applied(NamedTuple):
    """The limits that apply to the requests of a client."""

    written: ClientLimit | None
    read: ClientLimit | None
    busy: ClientLimit | None


NOTHING: Final = Applied(None, None, None)
MEASURED: Final = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
"""The types of `Applied`, in its order."""
MUTATIONS: Final = "controller_mutation_rate"


class ClientQuotas:
    """All of them, of one broker."""

    def __init__(self, window: Window, mutation_window: Window, callback: ClientQuotaCallback | None = None) -> None:
        """`callback` says who has which limit, asked for each request; None: Kafka's precedence, whose answers are
        remembered until quotas change."""
        self.written = RateQuota(window)
        self.read = RateQuota(window)
        self.busy = RateQuota(window, most_ms=window.size_ms)
        self._mutation_window = mutation_window
        self._buckets: Meters[TokenBucket] = Meters(TokenBucket)
        self._callback = callback or KafkasPrecedence()
        self._remembers = callback is None
        self._remembered: dict[tuple[str, str], Applied | None] = {}
        self._types: Collection[str] = ()
        self._measures = False

    def configure(self, quotas: Quotas) -> None:
        """Take other quotas into force; what clients have used stays."""
        of_clients = {entity: dict(values) for entity, values in quotas.items() if entity[0][0] != IP}
        self._callback.quotas_changed(of_clients)
        self.ask_types()

    def ask_types(self) -> None:
        """What has to be measured may be another now."""
        self._types = self._callback.limited_types()
        self._measures = any(quota_type in self._types for quota_type in MEASURED)
        self._remembered.clear()

    def __bool__(self) -> bool:
        """Whether there is a quota that every request has to be measured for."""
        return self._measures

    def applied(self, principal: Principal, client_id: str) -> Applied | None:
        """The limits of this client; None where it has none."""
        if not self._remembers or len(client_id) > MOST_CHARACTERS:
            return self._asked(principal, client_id)
        key, remembered = (principal.name, client_id), self._remembered
        try:
            return remembered[key]
        except KeyError:
            if len(remembered) >= MOST_REMEMBERED:
                remembered.clear()
            remembered[key] = found = self._asked(principal, client_id)
            return found

    def _asked(self, principal: Principal, client_id: str) -> Applied | None:
        limit, types = self._callback.limit, self._types
        found = Applied(*(_bounded(limit(one, principal, client_id)) if one in types else None for one in MEASURED))
        return None if found == NOTHING else found

    def mutations(self, principal: Principal, client_id: str, now_ms: int, *, strict: bool) -> Mutations | None:
        """None where no quota applies."""
        asked = self._callback.limit(MUTATIONS, principal, client_id) if MUTATIONS in self._types else None
        limit = _bounded(asked)
        if limit is None:
            return None
        bucket = self._buckets.of(limit.whose, now_ms, BUCKET_KEPT_MS)
        return Mutations(bucket, limit, self._mutation_window, now_ms, strict=strict)
