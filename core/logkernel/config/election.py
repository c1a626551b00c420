"""`election` and `unclean.leader.election.enable` are one setting with two names.

| election | unclean.leader.election.enable | means |
|---|---|---|
| clean | not given, or false | clean |
| unclean | not given, or true | unclean |
| clean | true | a conflict |
| unclean | false | a conflict |
| not given | true / false | unclean / clean |
| a plugin's | not given, true, false | the plugin's, which is told whether unclean is allowed |
"""

from __future__ import annotations

from collections.abc import Mapping

ELECTION = "election"
UNCLEAN = "unclean.leader.election.enable"
_FLAGS = {"clean": "false", "unclean": "true"}
_NAMES = {"false": "clean", "true": "unclean"}


def conflict(settings: Mapping[str, str]) -> bool:
    """Whether the two names say different things."""
    flag = _FLAGS.get(settings.get(ELECTION, ""))
    return flag is not None and settings.get(UNCLEAN, flag).strip().lower() != flag


def twin(name: str, text: str) -> tuple[str, str] | None:
    """What the other name then says: ("election", "unclean") → ("unclean.leader.election.enable", "true")."""
    if name == ELECTION and text in _FLAGS:
        return UNCLEAN, _FLAGS[text]
    if name == UNCLEAN and text.strip().lower() in _NAMES:
        return ELECTION, _NAMES[text.strip().lower()]
    return None


def paired(settings: Mapping[str, str]) -> Mapping[str, str]:
    """The settings with the twin of whichever of the two is given alone."""
    if (ELECTION in settings) == (UNCLEAN in settings):
        return settings
    name = ELECTION if ELECTION in settings else UNCLEAN
    other = twin(name, settings[name])
    return {**settings, other[0]: other[1]} if other else settings


def replace(settings: dict[str, str], name: str) -> None:
    """`name` was just set anew: the other name must not go on saying the opposite."""
    if name in (ELECTION, UNCLEAN) and conflict(settings):
        del settings[UNCLEAN if name == ELECTION else ELECTION]
