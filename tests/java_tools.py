"""What a JDK has beside Java itself."""

from __future__ import annotations

import shutil
import subprocess

from outside_tools import missing


def keytool(*arguments: str, stdin: bytes = b"") -> bytes:
    """Run it and return what it prints; skip without a JDK. Its start takes half a second."""
    program = shutil.which("keytool")
    if program is None:
        missing("keytool is not installed")
    done = subprocess.run([program, *arguments], input=stdin, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
