"""How much was used lately, and for how long whoever used too much is held back: the arithmetic of Kafka's quotas.

A `Rate` divides what was recorded by the time of its window: `samples` samples of `size_ms` each, the current one
unfinished. A client that was quiet counts as one that used nothing for the whole window, so that its first burst may
take what `samples - 1` of them allow. Above the quota, the time is that after which the rate would be back at the
quota: (used - quota) / quota * window (KIP-13).

A `TokenBucket` holds what a whole window allows, fills at the quota's rate, and may be overdrawn once; the time is
that until the debt is paid (KIP-599).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, NamedTuple, TypeVar

MOST_MS = 2**31 - 1
"""The longest time that a response can tell."""


class Window(NamedTuple):
    samples: int
    size_ms: int

    @property
    def span_ms(self) -> int:
        """What was used so long ago is forgotten."""
        return self.samples * self.size_ms


class Rate:
    """What was used within the window. Times must not go back."""

    __slots__ = ("_samples",)

    def __init__(self) -> None:
        self._samples: list[list[float]] = []
        """[begun (ms), last used (ms), amount], the oldest first."""

    def record(self, amount: float, now_ms: int, window: Window) -> None:
        samples = self._samples
        if samples and now_ms - samples[-1][0] < window.size_ms:
            current = samples[-1]
            current[1] = now_ms
            current[2] += amount
            return
        samples.append([now_ms, now_ms, amount])

    def per_second(self, now_ms: int, window: Window) -> float:
        return self._used(now_ms, window) * 1000 / self._length_ms(now_ms, window)

    def throttle_ms(self, quota: float, now_ms: int, window: Window) -> int:
        """For how long to hold back; 0 where the rate is within the quota."""
        used = self.per_second(now_ms, window)
        if used <= quota:
            return 0
        return round(min((used - quota) / quota * self._length_ms(now_ms, window), MOST_MS)) if quota else MOST_MS

    def _used(self, now_ms: int, window: Window) -> float:
        samples = self._samples
        span_ms = window.span_ms
        while samples and now_ms - samples[0][1] >= span_ms:
            del samples[0]
        return sum(sample[2] for sample in samples)

    def _length_ms(self, now_ms: int, window: Window) -> float:
        elapsed_ms = now_ms - self._samples[0][0] if self._samples else 0
        missing = window.samples - 1 - elapsed_ms // window.size_ms
        return max(elapsed_ms + max(0, missing) * window.size_ms, window.size_ms)


class TokenBucket:
    """What may be used at once: `quota` a second, saved up over a whole window."""

    __slots__ = ("_filled_ms", "_tokens")

    def __init__(self) -> None:
        self._tokens = float("inf")
        """Cut to what the bucket holds when it is first looked at."""
        self._filled_ms = 0

    def take(self, amount: float, quota: float, now_ms: int, window: Window) -> None:
        self._fill(quota, now_ms, window)
        self._tokens -= amount

    def throttle_ms(self, quota: float, now_ms: int, window: Window) -> int:
        """Until the debt is paid; 0 where there is none."""
        self._fill(quota, now_ms, window)
        if self._tokens >= 0:
            return 0
        return round(min(-self._tokens / quota * 1000, MOST_MS)) if quota else MOST_MS

    def is_overdrawn(self, quota: float, now_ms: int, window: Window) -> bool:
        self._fill(quota, now_ms, window)
        return self._tokens < 0

    def _fill(self, quota: float, now_ms: int, window: Window) -> None:
        gained = quota * (now_ms - self._filled_ms) / 1000
        self._tokens = min(self._tokens + gained, quota * window.span_ms / 1000)
        self._filled_ms = now_ms


M = TypeVar("M", Rate, TokenBucket)

MOST_METERS = 50_000
"""Some 20 MB of them."""


class Meters(Generic[M]):
    """A meter for each client that has used something lately.

    One that was idle for its window is as a new one, and is dropped; so is, where there are more than `most`, the one
    that was idle for longest.
    """

    def __init__(self, make: Callable[[], M], most: int = MOST_METERS) -> None:
        self._make: Callable[[], M] = make
        self._most = most
        self._meters: OrderedDict[Hashable, tuple[M, int]] = OrderedDict()
        """With the time of their last use; that used last is the last."""

    def __len__(self) -> int:
        return len(self._meters)

    def of(self, key: Hashable, now_ms: int, keep_ms: int) -> M:
        """The meter of `key`, for use now; `keep_ms` after its last use a meter is as a new one."""
        meters = self._meters
        found = meters.get(key)
        meter = self._make() if found is None else found[0]
        meters[key] = (meter, now_ms)
        meters.move_to_end(key)
        while meters:
            oldest = next(iter(meters))
            if len(meters) <= self._most and now_ms - meters[oldest][1] < keep_ms:
                break
            del meters[oldest]
        return meter
