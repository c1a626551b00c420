"""Machines of one run: a network namespace each, on one bridge, with a small disk where one is asked for.

The program that makes them runs in namespaces of its own (network, mounts, processes): `inside` says how it is started.
Nothing of it is seen outside, and the kernel takes all of it away when the program ends, even by kill -9.

Where a machine forbids namespaces, all processes share 127.0.0.1: the faults of networks and disks are left out.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
MARK = "LOGKERNEL_CHAOS_INSIDE"
PORT = 9092
DISK_MIB = 256
NOBODY = "02:de:ad:00:00:01"
"""An address that no card has: what is sent there is lost."""


def inside() -> list[str] | None:
    """The words before a command that is to run in namespaces of its own; None where this machine forbids that."""
    if any(shutil.which(tool) is None for tool in ("unshare", "ip", "tc", "mount")):
        return None
    words = [*NAMESPACES] if os.geteuid() == 0 else [*NAMESPACES, "--user", "--map-root-user"]
    probe = "mount -t tmpfs tmpfs /run && ip netns add one && ip link add name switch type bridge"
    done = subprocess.run([*words, "sh", "-c", probe], capture_output=True, timeout=120)
    return words if done.returncode == 0 else None


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True, timeout=120)


class Field:
    """Machines with addresses 10.0.0.N; the caller's own is 10.0.0.254, and nothing cuts it off from all."""

    network = True

    def __init__(self, names: Sequence[str]) -> None:
        self.address = {name: f"10.0.0.{number}" for number, name in enumerate(names, 1)}
        self._ballast: dict[Path, Path] = {}
        run("mount", "-t", "tmpfs", "tmpfs", "/run")
        run("ip", "link", "set", "lo", "up")
        run("ip", "link", "add", "name", "switch", "type", "bridge")
        run("ip", "addr", "add", "10.0.0.254/24", "dev", "switch")
        run("ip", "link", "set", "switch", "up")
        for name, address in self.address.items():
            run("ip", "netns", "add", name)
            run("ip", "link", "add", "name", f"to-{name}", "type", "veth", "peer", "name", "eth0", "netns", name)
            run("ip", "link", "set", f"to-{name}", "master", "switch")
            run("ip", "link", "set", f"to-{name}", "up")
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
            run("ip", "-n", name, "link", "set", "lo", "up")
        self.slowness = self._slowness(names[0])

    def _slowness(self, name: str) -> list[str]:
        """What the kernel has to make a link slow: late and losing packets, or narrow."""
        for words in (
            ["netem", "delay", "60ms", "30ms", "loss", "1%"], ["tbf", "rate", "64kbit", "burst", "8kb", "latency", "1s"]
        ):  # fmt: skip
            try:
                run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", *words)
            except subprocess.CalledProcessError:
                continue
            run("tc", "-n", name, "qdisc", "del", "dev", "eth0", "root")
            return words
        return []

    def port(self, name: str) -> int:
        return PORT

    def command(self, name: str) -> list[str]:
        """The words before a command that is to run on a machine."""
        return ["ip", "netns", "exec", name]

    # ------------------------------------------------------------ disks

    def disk(self, folder: Path) -> None:
        """Put a small disk there."""
        folder.mkdir(parents=True)
        run("mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", str(folder))

    def fill(self, folder: Path) -> None:
        """Leave no room on it."""
        with (folder / "ballast").open("wb", buffering=0) as ballast:
            for size in (1 << 20, 4096):
                try:
                    while True:
                        ballast.write(bytes(size))
                except OSError:
                    continue

    def empty(self, folder: Path) -> None:
        (folder / "ballast").unlink(missing_ok=True)

    # ------------------------------------------------------------ links

    def cut(self, source: str, target: str) -> None:
        """Lose all that `source` sends to `target`."""
        words = (self.address[target], "lladdr", NOBODY, "dev", "eth0", "nud", "permanent")
        run("ip", "-n", source, "neigh", "replace", *words)

    def mend(self, source: str, target: str) -> None:
        run("ip", "-n", source, "neigh", "del", self.address[target], "dev", "eth0")

    def unplug(self, name: str) -> None:
        """Cut a machine off from everybody, clients too."""
        run("ip", "link", "set", f"to-{name}", "down")

    def plug(self, name: str) -> None:
        run("ip", "link", "set", f"to-{name}", "up")

    def slow(self, name: str) -> None:
        """What it sends, and what is sent to it, passes slowly."""
        run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", *self.slowness)
        run("tc", "qdisc", "add", "dev", f"to-{name}", "root", *self.slowness)

    def quicken(self, name: str) -> None:
        run("tc", "-n", name, "qdisc", "del", "dev", "eth0", "root")
        run("tc", "qdisc", "del", "dev", f"to-{name}", "root")


class Plain:
    """Everything on 127.0.0.1: processes can be harmed, links and disks can't."""

    network = False
    slowness: Sequence[str] = ()

    def __init__(self, names: Sequence[str]) -> None:
        from zookeepers import free_ports

        self.address = dict.fromkeys(names, "127.0.0.1")
        self._ports = dict(zip(names, free_ports(len(names)), strict=True))

    def port(self, name: str) -> int:
        return self._ports[name]

    def command(self, name: str) -> list[str]:
        return []

    def disk(self, folder: Path) -> None:
        folder.mkdir(parents=True)
