"""Requests to the coordinator of a group, in a cluster in which nobody knows who that is."""

from __future__ import annotations

import contextlib
import itertools
import time
from typing import Any

from logkernel.cluster.cluster import Cluster
from logkernel.errors import NetworkException
from logkernel.plugins.transport.tcp.channel import TcpChannel

PASSING = (14, 15, 16)
"""Codes of a coordinator that is not there yet, or elsewhere."""
WAIT_S = 180.0


class Door:
    """Asks one broker after another, until the one that coordinates the group answers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        with cluster.admin() as admin:
            admin.list_consumer_group_offsets("none")  # the groups' topic comes with the first question

    def ask(self, request: Any) -> Any:
        deadline, answer = time.monotonic() + WAIT_S, None
        for address in itertools.cycle(self._cluster.bootstrap_servers.split(",")):
            host, port = address.rsplit(":", 1)
            with contextlib.suppress(OSError, NetworkException), TcpChannel(host, int(port), {}) as channel:
                answer = channel.call(request)
                if answer.error_code not in PASSING:
                    return answer
            assert time.monotonic() < deadline, answer
