"""An interceptor sees what a producer sends."""

from __future__ import annotations

from typing import Any, Protocol


class Interceptor(Protocol):
    """Sees a producer's records before they are sent, and their acknowledgements. Its errors are logged and ignored."""

    def on_send(self, record: Any) -> Any:
        """Return the `ProducerRecord` to send in place of `record`, whose key and value are not serialized yet."""
        ...

    def on_acknowledgement(self, metadata: Any, error: Exception | None) -> None:
        """Take the `RecordMetadata` or the error of a record, before the callbacks of `send`.

        Called in the thread that steps the producer."""
        ...

    def close(self) -> None: ...
