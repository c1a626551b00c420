"""What a cleanup policy may plan. A plan is a plugin's, so it is judged before any of it is carried out.

    step          refused where
    any           the plan is no sequence of `DropBefore` and `Rewrite`
    DropBefore    `offset` is no int, is negative, or lies above the high watermark
    Rewrite       `start` or `end` is no int; not `0 <= start <= end`; `end` lies above the active segment's
                  base offset; the rule lacks `learn` or `keep`

A policy that wants the active segment gone says so by its next offset, which the high watermark must have reached. An
offset inside a segment drops the segments before it. Nothing of a refused plan is carried out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from logkernel.contracts import DropBefore, KeepRule, LogFacts, Rewrite
from logkernel.errors import PluginError


def judge(policy: str, facts: LogFacts, plan: Any) -> list[DropBefore | Rewrite]:
    """The steps of the plan. Raises `PluginError`, which names the policy, the step and the bound that it breaks."""
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
