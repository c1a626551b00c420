"""Schemas that a thread is loading when a fork comes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import os, sys, threading
from importlib.machinery import ModuleSpec
from logkernel.plugins.transport.tcp.messages import schema

WANTED = "init_producer_id", 5, "response", "InitProducerIdResponse"
began, go_on = threading.Event(), threading.Event()

class Slowly:
    def find_spec(self, name, path, target=None):
        return ModuleSpec(name, self) if name == "kio.schema.init_producer_id.v5.response" else None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        began.set()
        assert go_on.wait(30)
        module.InitProducerIdResponse = module.InitProducerIdRequest = "whole"

sys.meta_path.insert(0, Slowly())
threading.Thread(target=schema, args=WANTED, daemon=True).start()
assert began.wait(30)
threading.Timer(0.2, go_on.set).start()
child = os.fork()
if child == 0:
    os._exit(schema(*WANTED) != "whole")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_no_fork_comes_while_a_schema_is_loaded() -> None:
    """Its child met a module without its classes, or waited for ever, and no request went out any more."""
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
