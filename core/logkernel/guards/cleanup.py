"""The guard of `contracts.CleanupPolicy`: nothing of a plan is carried out unless all of its steps may be."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from logkernel.contracts import CleanupPolicy, DropBefore, KeepRule, LogFacts, Rewrite
from logkernel.errors import PluginError
from logkernel.guards.guard import TimedGuard


class GuardedPolicy(TimedGuard[CleanupPolicy]):
    """`contracts.CleanupPolicy`."""

    __slots__ = ()
    kind = "cleanup policy"

    def plan(self, log: LogFacts) -> list[DropBefore | Rewrite]:
        return self._call("the log stays as it is", lambda: judged_plan(self.name, log, self._plugin.plan(log)))


def judged_plan(policy: str, facts: LogFacts, plan: Any) -> list[DropBefore | Rewrite]:
    """The steps of a plan. Raises `PluginError`, which names the policy, the step and the bound that it breaks."""
    if not isinstance(plan, Iterable):
        raise PluginError(f"cleanup policy {policy} planned {plan!r}; return a sequence of DropBefore and Rewrite")
    steps = list(plan)
    for step in steps:
        problem = _problem(facts, step)
        if problem is not None:
            raise PluginError(
                f"cleanup policy {policy} planned {_shown(step)} for {facts.topic}-{facts.partition}, {problem};"
                f" nothing of the plan was carried out"
            )
    return steps


def _problem(facts: LogFacts, step: Any) -> str | None:
    if isinstance(step, DropBefore):
        if not _is_offset(step.offset):
            return "which is no offset"
        if step.offset > facts.high_watermark:
            return f"but only records below the high watermark {facts.high_watermark} may go"
    elif isinstance(step, Rewrite):
        active = facts.segments[-1].base_offset
        if not _is_offset(step.start) or not _is_offset(step.end) or step.start > step.end:
            return "which is no range of offsets"
        if step.end > active:
            return f"but only closed segments are rewritten, and the active one begins at {active}"
        if not isinstance(step.rule, KeepRule):
            return "whose rule lacks learn() or keep()"
    else:
        return "which is neither DropBefore nor Rewrite"
    return None


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _shown(step: Any) -> str:
    if isinstance(step, DropBefore):
        return f"DropBefore({step.offset!r})"
    if isinstance(step, Rewrite):
        return f"Rewrite({step.start!r}, {step.end!r})"
    return repr(step)
