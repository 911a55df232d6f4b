"""What an engine leaves while it works: a folder comes in, marked with who works in it; abandoned ones are removed.

A driver that was killed cannot clean up after itself. What it left holds private values: the next release to the same
place removes it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
from pathlib import Path

from shoal.io.private import private_folder, private_text

WORK = ".work"
_OWNER = "owner.json"


def claim(folder: Path) -> None:
    """Make a folder for work, marked with this process."""
    private_folder(folder)
    owner = {"host": platform.node(), "process": os.getpid(), "started": _started(os.getpid())}
    private_text(folder / _OWNER, json.dumps(owner))


def remove_abandoned(out: Path) -> list[Path]:
    """Remove what releases to the same place left whose process is gone; what was removed."""
    found = []
    for aside in out.absolute().parent.glob(f".{out.name}.partial-*"):
        if _abandoned(aside / WORK / _OWNER):
            shutil.rmtree(aside, ignore_errors=True)
            found.append(aside)
    return found


def _abandoned(mark: Path) -> bool:
    """Whether a folder was claimed by a process of this machine that is there no more."""
    try:
        owner = json.loads(mark.read_text("utf-8"))
        if owner["host"] != platform.node():
            return False
        os.kill(owner["process"], 0)
    except ProcessLookupError:
        return True
    except (OSError, ValueError, KeyError):
        return False
    # the number may be another process's by now
    return bool(owner["started"] != _started(owner["process"]))


def _started(process: int) -> str:
    """When a process began, as the system counts; empty where that is not told."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
