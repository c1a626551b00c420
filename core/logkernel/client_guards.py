"""Guards of plugins that judge clients beside the way of a request; see `plugin_guards`.

object                refused where
ClientQuotaCallback   the quota is no finite number over 0; `whose` is no tuple of texts and None; a type of
                      `limited_types` is unknown
PasswordChecker       the answer is neither a bool nor a name
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from math import isfinite
from typing import Any

from logkernel.contracts import QUOTA_TYPES, ClientLimit, ClientQuotaCallback, Login, PasswordChecker, QuotaEntity
from logkernel.errors import LogkernelError, PluginError
from logkernel.plugin_faults import Origin, PluginFaults
from logkernel.plugin_guards import _Guard
from logkernel.vocabulary import Principal

NOT_LIMITED = "the client is not limited"
LOGIN_REFUSED = "the login is refused"


class GuardedPasswordChecker:
    """`contracts.PasswordChecker`. It is called on threads, so it holds nobody up and has no budget of time."""

    __slots__ = ("_checker", "_faults", "_origin", "_place")

    def __init__(self, checker: PasswordChecker, name: str, faults: PluginFaults, origin: Callable[[], Origin]) -> None:
        self._checker = checker
        self._place = f"password checker {name}"
        self._faults = faults
        self._origin = origin

    def check(self, login: Login) -> bool | str:
        try:
            answer: Any = self._checker.check(login)
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


class GuardedClientQuotaCallback(_Guard):
    """`contracts.ClientQuotaCallback`. Whom it fails for is not limited; `told_or_raise` and `judged_…` raise."""

    __slots__ = ("_callback", "_place")

    def __init__(
        self, callback: ClientQuotaCallback, name: str, faults: PluginFaults, origin: Callable[[], Origin]
    ) -> None:
        super().__init__(faults, origin)
        self._callback = callback
        self._place = f"client quota callback {name}"

    def quotas_changed(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        with suppress(LogkernelError):
            self.told_or_raise(quotas)

    def limited_types(self) -> Collection[str]:
        try:
            return self.judged_types()
        except LogkernelError:
            return ()

    def limit(self, quota_type: str, principal: Principal, client_id: str) -> ClientLimit | None:
        try:
            return self.judged_limit(quota_type, principal, client_id)
        except LogkernelError:
            return None

    def told_or_raise(self, quotas: Mapping[QuotaEntity, Mapping[str, float]]) -> None:
        self._call(self._place, "it may not know all quotas", lambda: self._callback.quotas_changed(quotas))

    def judged_types(self) -> Collection[str]:
        def decide() -> Collection[str]:
            answer: Any = self._callback.limited_types()
            if isinstance(answer, str) or not isinstance(answer, Collection) or not set(answer) <= set(QUOTA_TYPES):
                raise self._refused(answer, f"return some of {', '.join(QUOTA_TYPES)}")
            return frozenset(answer)

        return self._call(self._place, "nobody is limited", decide)

    def judged_limit(self, quota_type: str, principal: Principal, client_id: str) -> ClientLimit | None:
        def decide() -> ClientLimit | None:
            answer: Any = self._callback.limit(quota_type, principal, client_id)
            if answer is None:
                return None
            if not isinstance(answer, tuple) or len(answer) != 2:
                raise self._refused(answer, "return ClientLimit(quota, whose) or None")
            quota, whose = answer
            if type(quota) not in (int, float) or not isfinite(quota) or quota <= 0:
                raise self._refused(answer, "the quota is a number over 0")
            if type(whose) is not tuple or not all(part is None or isinstance(part, str) for part in whose):
                raise self._refused(answer, "whose is a tuple of texts")
            return ClientLimit(quota, whose)

        return self._call(self._place, NOT_LIMITED, decide)

    def _refused(self, answer: object, remedy: str) -> PluginError:
        return PluginError(f"{self._origin()}: {self._place} answered {answer!r:.200}; {remedy}")
