"""A log in this process, without a socket or thread of its own until it listens.

    with logkernel.open("data") as log:
        log.create_topic("orders", partitions=3, partitioner="keyed")
        log.append("orders", b"value", key=b"key")
        for record in log.read("orders", partition=0):
            ...

The caller steps the kernel: timers (retention, flush, expiry) run inside `append`, `read` and `step`. While the log
listens, an event loop in a thread owns the broker, and runs the calls of other threads.

    log         the door, which users see      appending   records into batches, a batch a partition
    listening   that loop and its thread       reading     batches into records
"""

from logkernel.embed.log import EmbeddedLog, open

__all__ = ["EmbeddedLog", "open"]
