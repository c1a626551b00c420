"""What a process tree costs: CPU seconds and resident memory, from /proc (Linux only)."""

from __future__ import annotations

import os
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> tuple[int, int] | None:
    """(parent, CPU ticks of the process and of its reaped children), or None where it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return int(fields[1]), sum(map(int, fields[11:15]))


def tree(pid: int) -> list[int]:
    """The process and its living descendants."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        found = _stat(int(name)) if name.isdigit() else None
        if found:
            children.setdefault(found[0], []).append(int(name))
    todo, members = [pid], []
    while todo:
        current = todo.pop()
        members.append(current)
        todo += children.get(current, [])
    return members


def cpu_s(pid: int) -> float:
    """User and system seconds of the whole tree so far."""
    found = [stat for stat in map(_stat, tree(pid)) if stat]
    return sum(ticks for _, ticks in found) / TICKS_PER_S


def resident_mib(pid: int) -> float:
    """Resident memory of the whole tree; pages that processes share count once each."""
    total_kib = 0
    for member in tree(pid):
        try:
            lines = Path(f"/proc/{member}/status").read_text().splitlines()
        except OSError:
            continue
        total_kib += sum(int(line.split()[1]) for line in lines if line.startswith("VmRSS:"))
    return total_kib / 1024
