"""Several processes stop together, whichever of them is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

CODE = """
import os, sys, time
from shoal.query.server import run

def piece():
    os.write(1, b"%d\\n" % os.getpid())
    time.sleep(600)

try:
    run.run_together([piece, piece])
except run.ProcessEndedError:
    sys.exit(2)
"""


@pytest.mark.parametrize(
    ("victim", "number", "status"),
    [
        ("parent", signal.SIGKILL, -signal.SIGKILL),
        ("child", signal.SIGKILL, 2),
        pytest.param("parent", signal.SIGTERM, 0, marks=pytest.mark.slow),
        pytest.param("parent", signal.SIGINT, 0, marks=pytest.mark.slow),
    ],
)
def test_processes_end_together(victim: str, number: int, status: int) -> None:
    process = subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    children = [int(process.stdout.readline()) for _ in range(2)]
    os.kill(process.pid if victim == "parent" else children[0], number)
    # the stream ends when the last process that holds it is gone
    assert process.stdout.read() == ""
    assert process.wait() == status
