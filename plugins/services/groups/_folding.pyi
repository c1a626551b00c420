from collections.abc import Callable

from logkernel.record.layout import Columns
from logkernel.vocabulary import Record

from .records import CommittedOffset
from .shard import Shard

made_of: type[CommittedOffset]

def fold_columns(shard: Shard, columns: Columns, replay: Callable[[Record], None]) -> bool: ...
