"""What `send` returns: a record's place in its batch, and with it the outcome, now or later."""

from __future__ import annotations

from logkernel.client.producer.batches import Batch
from logkernel.client.steps import Steps, WaitForBatch, deadline_of
from logkernel.errors import RequestTimedOut
from logkernel.record import loops
from logkernel.vocabulary import RecordMetadata


class BaseDelivery(loops.Place):
    """See the module. What the producers give differs in how it is waited for.

    A shape for speed: the compiled builder makes it in the step that puts the record in, so that it inherits the place.
    """

    __slots__ = ()

    def done(self) -> bool:
        """Whether the outcome is known."""
        return bool(self.batch.place(self.index)[0].done)

    def _outcome(self) -> tuple[Batch, int] | None:
        """Return (batch with the outcome, the record's number there); None if it is not known yet."""
        batch, index = self.batch.place(self.index)
        return (batch, index) if batch.done and batch.children is None else None

    def _wait_for_outcome(self, timeout_s: float | None) -> Steps[tuple[Batch, int]]:
        """Wait for the outcome. If the waiting thread steps the kernel itself, batches do not linger meanwhile."""
        deadline_s = deadline_of(timeout_s)
        while True:
            found = self._outcome()
            if found is not None:
                return found
            batch, _ = self.batch.place(self.index)
            driver = batch.owner
            accumulator = driver.machine.accumulator
            with driver.lock:
                accumulator.flushing += driver.hurries
            try:
                came = yield WaitForBatch(batch, deadline_s)
            finally:
                with driver.lock:
                    accumulator.flushing -= driver.hurries
            if not came:
                raise RequestTimedOut(f"no outcome within {timeout_s} s; the record may still be written")

    def _metadata(self, found: tuple[Batch, int]) -> RecordMetadata:
        """Return the record's `RecordMetadata`. Raises the error that it failed with."""
        batch, index = found
        error = batch.error_of(index)
        if error is not None:
            raise error
        return batch.metadata(index, self.timestamp_ms)
