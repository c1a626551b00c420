"""A world: real brokers on simulated disks, our real clients, one thread, virtual time, one seed."""

from __future__ import annotations

from logkernel.testing.simulation.world.world import World

__all__ = ["World"]
