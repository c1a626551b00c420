"""The guard of `contracts.PasswordChecker`."""

from __future__ import annotations

from typing import Any

from logkernel.contracts import Login, PasswordChecker
from logkernel.errors import PluginError
from logkernel.guards.guard import Guard

LOGIN_REFUSED = "the login is refused"


class GuardedPasswordChecker(Guard[PasswordChecker]):
    """`contracts.PasswordChecker`. It is called on threads, so it holds nobody up and has no budget of time."""

    __slots__ = ()
    kind = "password checker"

    def check(self, login: Login) -> bool | str:
        try:
            answer: Any = self._plugin.check(login)
        except Exception as error:
            raise self._raised(error, login.password.reveal()) from None
        if answer is True or answer is False or (isinstance(answer, str) and answer):
            return answer
        self._faults.misbehaved(self._origin(), self._place, f"answered with a {type(answer).__name__}", LOGIN_REFUSED)
        raise PluginError(
            f"{self._origin()}: {self._place} answered with a {type(answer).__name__}; return True, False or a name"
        )

    def _raised(self, error: Exception, password: str) -> PluginError:
        """Note what it raised, without the text where the password is in it."""
        import traceback

        what = type(error).__name__
        if password in "".join(traceback.format_exception(error)):
            self._faults.misbehaved(
                self._origin(), self._place, f"raised {what} with the password in its text", LOGIN_REFUSED
            )
        else:
            self._faults.raised(self._origin(), self._place, error, LOGIN_REFUSED)
        return PluginError(f"{self._origin()} failed in {self._place}: {what}; {LOGIN_REFUSED}")
