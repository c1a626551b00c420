"""How many of 100 messages each misfortune strikes, on each link."""

from __future__ import annotations

from typing import Final

Link = tuple[int, int]
"""(source, target)."""
EVERYWHERE: Final[Link] = (0, 0)


class Weather:
    """`EVERYWHERE` is every link."""

    def __init__(self) -> None:
        self._odds: dict[str, dict[Link, list[int]]] = {}

    def begin(self, kind: str, link: Link, percent: int) -> None:
        self._odds.setdefault(kind, {}).setdefault(link, []).append(percent)

    def end(self, kind: str, link: Link, percent: int) -> None:
        links = self._odds.get(kind, {})
        if link in links:
            links[link].remove(percent)
            if not links[link]:
                del links[link]

    def clear(self) -> None:
        self._odds.clear()

    def odds(self, kind: str, link: Link) -> int:
        links = self._odds.get(kind)
        if not links:
            return 0
        return max((*links.get(link, ()), *links.get(EVERYWHERE, ())), default=0)
