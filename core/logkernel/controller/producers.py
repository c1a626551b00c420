"""Producer ids: given out in blocks of 1,000, so that the cluster is asked once for a thousand producers.

A block is kept (durably) before the first id of it is used; what is left of it at a crash is lost, and no id
is ever given twice.
"""

from __future__ import annotations

from logkernel.attrs_lite import mutable
from logkernel.contracts import MetadataChange
from logkernel.controller.image import ClusterImage

BLOCK_SIZE = 1_000


def allocate_producer_ids(image: ClusterImage) -> tuple[list[MetadataChange], range]:
    """The next block with the change that takes it; use it only once the change is committed."""
    first = image.next_producer_id
    block = range(first, first + BLOCK_SIZE)
    return [MetadataChange("producer_ids", "", {"next": block.stop})], block


@mutable
class ProducerIds:
    """The block in hand. Soft state: a new incarnation starts empty and takes a new block."""

    block: range = range(0)

    def take(self) -> int | None:
        """An id that nobody has, or None: then commit `allocate_producer_ids`, `refill`, and ask again."""
        if not self.block:
            return None
        taken = self.block[0]
        self.block = self.block[1:]
        return taken

    def refill(self, block: range) -> None:
        self.block = block
