from collections.abc import Sequence
from typing import Any

from logkernel.attrs_lite.classes import Field

def install(cls: type, fields: Sequence[Field], nothing: Any) -> None: ...
