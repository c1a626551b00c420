"""What a broker has loaded when it gave its first answer: nothing that a start could do without."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import socket
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest

SERVE = """
import sys
from logkernel.cli import main
try:
    main(["serve", "--data", sys.argv[1], "--listen", "127.0.0.1:0"])
finally:
    sys.stderr.write(" ".join(["LOADED", *sys.modules]))
"""
NEEDLESS = ("attr", "click", "email", "importlib.metadata", "kio", "rich", "yaml", "zipfile")
OURS = (
    "logkernel.broker.replicas.led", "logkernel.broker.replicas.replica", "logkernel.client", "logkernel.embed",
    "logkernel.inspect", "logkernel.partition.leader", "logkernel.requests.cluster", "logkernel.table",
)  # fmt: skip


@pytest.mark.parametrize("version", [0, 3])
def test_the_first_answer_needs_no_library_of_other_commands_or_requests(tmp_path: Path, version: int) -> None:
    command = [sys.executable, "-c", SERVE, str(tmp_path / "data")]
    frame = struct.pack(">hhi", 18, version, 7) + b"\0\4test" + (b"\0\2a\0021\0" if version == 3 else b"")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().split("127.0.0.1:")[1].split()[0])
            with socket.create_connection(("127.0.0.1", port)) as link:
                link.sendall(struct.pack(">i", len(frame)) + frame)
                size = struct.unpack(">i", link.recv(4, socket.MSG_WAITALL))[0]
                answer = link.recv(size, socket.MSG_WAITALL)
            process.terminate()
            _, told = process.communicate()
        finally:
            process.kill()
    assert struct.unpack(">ih", answer[:6]) == (7, 0)
    loaded = set(told.rpartition("LOADED ")[2].split())
    assert {"logkernel.requests.api_versions", "asyncio"} <= loaded
    assert not [name for name in loaded if name.startswith(OURS) or name in NEEDLESS]


@pytest.mark.parametrize("under_nohup", [False, True])
def test_a_closed_terminal_ends_it_cleanly_unless_under_nohup(tmp_path: Path, under_nohup: bool) -> None:
    ours, its = pty.openpty()
    data = tmp_path / "data"
    command = [sys.executable, "-m", "logkernel", "serve", "--data", str(data), "--listen", "127.0.0.1:0"]

    def own_the_terminal() -> None:
        os.setsid()
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests may be under nohup
        fcntl.ioctl(its, termios.TIOCSCTTY, 0)

    with subprocess.Popen(
        ["nohup", *command] if under_nohup else command,
        stdin=its, stdout=subprocess.PIPE, stderr=None if under_nohup else its, preexec_fn=own_the_terminal, text=True,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            port = int(process.stdout.readline().split("127.0.0.1:")[1].split()[0])
            os.close(its)
            os.close(ours)
            if under_nohup:
                socket.create_connection(("127.0.0.1", port)).close()
                process.terminate()
            assert process.wait(300) == 0
        finally:
            process.kill()
    assert (data / ".kafka_cleanshutdown").exists()
