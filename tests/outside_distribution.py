"""Makes a distribution with one plugin, as an outside author's is installed: a folder for PYTHONPATH."""

from __future__ import annotations

import os
from pathlib import Path


def outside_distribution(site: Path, name: str, plugin: str) -> str:
    """PYTHONPATH with a distribution `name`, whose module has the text `plugin`."""
    module = name.replace("-", "_")
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"{module}.py").write_text(plugin)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[logkernel]\n{name} = {module}\n")
    return os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH")]))
