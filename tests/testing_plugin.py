"""How pytest in a process of its own gets the testing product's plugin."""

from __future__ import annotations

from importlib.metadata import distributions

PLUGIN = "logkernel.testing.pytest_plugin"


def words() -> list[str]:
    """Of a pytest command, where no installed distribution brings the plugin. pytest looks at all distributions, also
    at one that another of the same name hides from `entry_points`."""
    points = (point for distribution in distributions() for point in distribution.entry_points)
    return [] if any((point.group, point.value) == ("pytest11", PLUGIN) for point in points) else ["-p", PLUGIN]
