"""When the changes that were kept are replaced by the fewest that fold to the same.

| kept changes | of them needed | replaced |
|---|---|---|
| fewer than 1,000 | any | no: reading them takes a few milliseconds |
| more | a quarter or more | no: too little would be won |
| more | less than a quarter | yes |

So the work done over all replacements grows with the changes made, not with their square.
"""

from __future__ import annotations

MIN_KEPT = 1_000
FACTOR = 4


def due(kept: int, needed: int) -> bool:
    return kept >= MIN_KEPT and kept > FACTOR * needed
