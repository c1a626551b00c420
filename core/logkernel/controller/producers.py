"""Producer ids. A broker takes a block of 1,000 at a time, so that it asks the cluster once for 1,000 producers.

A block is kept (durably) before the first id of it is used; what is left of it at a crash is lost, and no id
is ever given twice.
"""

from __future__ import annotations

from logkernel.attrs_lite import mutable
from logkernel.contracts import MetadataChange
from logkernel.controller.image import ClusterImage

BLOCK_SIZE = 1_000


def allocate_producer_ids(image: ClusterImage) -> tuple[list[MetadataChange], range]:
    """The next block, and the change that takes it. Use the block after the change was committed."""
    first = image.next_producer_id
    block = range(first, first + BLOCK_SIZE)
    return [MetadataChange("producer_ids", "", {"next": block.stop})], block


@mutable
class ProducerIds:
    """The block that this broker gives ids from. Soft state: after a restart it takes a new block."""

    block: range = range(0)

    def take(self) -> int | None:
        """A new id, or None where the block is used up: commit `allocate_producer_ids`, `refill`, and ask again."""
        if not self.block:
            return None
        taken = self.block[0]
        self.block = self.block[1:]
        return taken

    @property
    def left(self) -> int:
        return len(self.block)

    def refill(self, block: range) -> None:
        self.block = block
