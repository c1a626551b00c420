from collections.abc import Callable

from logkernel.record.layout import Columns
from logkernel.vocabulary import Record

from .coordinator import GroupCoordinator
from .records import CommittedOffset

made_of: type[CommittedOffset]

def fold_columns(coordinator: GroupCoordinator, columns: Columns, replay: Callable[[Record], None]) -> bool: ...
