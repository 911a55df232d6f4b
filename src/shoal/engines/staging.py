"""Private folders that an engine works in, marked with who works in them, and their removal once nobody does.

A driver that was killed cannot clean up after itself. What it left holds private values: the next release to the same
folder removes it. A process of this machine is looked up; one of another machine shows by the time of its mark that it
is alive, and is taken for dead after an hour without a sign.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import tempfile
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path

from shoal.errors import OutputError
from shoal.io import finished, private_folder, private_text, unfinished

WORK = ".work"
_OWNER = "owner.json"
# seconds between two signs of life, and without one until a process elsewhere is taken for dead
_BEAT = 60.0
_LEASE = 3600.0
# bytes that a value of the table takes, at most, in the released files, and between stages before compression
_RELEASED = 8
_BETWEEN = 20

_held: set[Path] = set()
# folders that were made above a claimed one
_above: dict[Path, list[Path]] = {}
_beating = threading.Lock()


def claim(folder: Path) -> None:
    """Make a private folder for work, marked with this process until it is given up."""
    mark = private_folder(folder) / _OWNER
    owner = {"machine": _machine(), "process": os.getpid(), "started": _started(os.getpid())}
    private_text(mark, json.dumps(owner))
    unfinished(folder)
    _held.add(mark)
    if _beating.acquire(blocking=False):
        threading.Thread(target=_beat, daemon=True).start()


def give_up(folder: Path) -> None:
    """Remove a folder that was claimed, with all that is in it."""
    _held.discard(folder / _OWNER)
    shutil.rmtree(folder, ignore_errors=True)
    finished(folder)
    with contextlib.suppress(OSError):
        for made in _above.pop(folder, ()):
            made.rmdir()


def _beat() -> None:
    wait = threading.Event()
    while True:
        wait.wait(_BEAT)
        for mark in list(_held):
            with contextlib.suppress(OSError):
                os.utime(mark)


def snapshot_folder(out: Path) -> Path:
    """A new private folder beside `out` for what a release into it reads.

    Raises:
        OutputError: it cannot be made.
    """
    above = out.absolute().parent
    missing = [folder for folder in (above, *above.parents) if not folder.exists()]
    try:
        above.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{out.name}.input-", dir=above))
    except OSError as error:
        raise OutputError("folder-not-writable", above=above, reason=error.strerror or error) from None
    _above[made] = missing
    claim(made)
    return made


def remove_abandoned(out: Path) -> list[Path]:
    """Remove what releases into the same folder left whose process is gone; what was removed."""
    above = out.absolute().parent
    found = [(path, path / WORK / _OWNER) for path in above.glob(".*.partial-*")]
    found += [(path, path / _OWNER) for path in above.glob(".*.input-*")]
    return _removed(path for path, mark in found if _abandoned(mark))


def session_folder(base: Path) -> Path:
    """A new private folder for the files of a session; those of sessions that were killed are removed."""
    _removed(
        path
        for path in base.glob("shoal-spark-*")
        if not path.is_symlink() and path.stat().st_uid == os.getuid() and _abandoned(path / _OWNER)
    )
    made = Path(tempfile.mkdtemp(prefix="shoal-spark-", dir=base))
    claim(made)
    return made


def _removed(paths: Iterable[Path]) -> list[Path]:
    found = list(paths)
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    return found


def _abandoned(mark: Path) -> bool:
    """Whether the process that claimed a folder is there no more."""
    try:
        owner = json.loads(mark.read_text("utf-8"))
        if owner["machine"] != _machine():
            return _now(mark.parent) - mark.stat().st_mtime > _LEASE
        os.kill(owner["process"], 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    except (OSError, ValueError, KeyError):
        return False
    # the number may be another process's by now
    return bool(owner["started"] != _started(owner["process"]))


def _now(folder: Path) -> float:
    """The time on the clock that a file system's marks are set by."""
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime


def _machine() -> str:
    """This machine since it was started, as far as numbers of processes reach."""
    found = [platform.node()]
    with contextlib.suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        found.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(found)


def _started(process: int) -> str:
    """When a process began, as the system counts; empty where that is not told."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def check_room(values: int, out: Path, work: Sequence[Path]) -> None:
    """Refuse a release that would fill a disk.

    Args:
        values: rows times columns.
        out: where the release goes.
        work: the folders that what lies between stages is spread over.

    Raises:
        OutputError: with what is needed, and what is free.
    """
    needed: dict[int, tuple[Path, int]] = {}
    share = -(-_BETWEEN * values // max(len(work), 1))
    for place, size in ((out, _RELEASED * values), *((folder, share) for folder in work)):
        there = place.absolute()
        while not there.exists():
            there = there.parent
        first, before = needed.get(there.stat().st_dev, (there, 0))
        needed[there.stat().st_dev] = first, before + size
    for there, size in needed.values():
        _check_free(str(there), shutil.disk_usage(there).free, size)


def check_room_at(address: str, free: int, values: int) -> None:
    """Refuse a release of so many values that would fill the file system of an address."""
    _check_free(address, free, _RELEASED * values)


def _check_free(place: str, free: int, size: int) -> None:
    if free < size:
        raise OutputError("no-room", place=place, free=free / 1000000000.0, size=size / 1000000000.0)
