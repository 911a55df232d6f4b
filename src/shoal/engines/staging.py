"""Staging folders: private working folders, marked with the process that uses them and removed once it is gone.

A killed driver cannot clean up after itself, and its files hold private values: the next release to the same
folder removes them. A process on this machine is looked up; a process on another machine keeps its marker up to
date, and is considered dead after an hour without an update.
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
# seconds between two updates of a marker, and without one until a remote process is considered dead
_BEAT = 60.0
_LEASE = 3600.0
# maximum bytes per table value in the released files, and between stages before compression
_RELEASED = 8
_BETWEEN = 20

_held: set[Path] = set()
# folders that were created above a claimed one
_above: dict[Path, list[Path]] = {}
_beating = threading.Lock()


def claim(folder: Path) -> None:
    """Create a private working folder, marked with this process until it is given up."""
    mark = private_folder(folder) / _OWNER
    owner = {"machine": _machine(), "process": os.getpid(), "started": _started(os.getpid())}
    private_text(mark, json.dumps(owner))
    unfinished(folder)
    _held.add(mark)
    if _beating.acquire(blocking=False):
        threading.Thread(target=_beat, daemon=True).start()


def give_up(folder: Path) -> None:
    """Remove a claimed folder and its content."""
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
    """A new private folder beside `out` for the frozen input of a release.

    Raises:
        OutputError: it cannot be created.
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
    """Remove what dead processes left of releases into the same folder; return what was removed."""
    above = out.absolute().parent
    found = [(path, path / WORK / _OWNER) for path in above.glob(".*.partial-*")]
    found += [(path, path / _OWNER) for path in above.glob(".*.input-*")]
    return _removed(path for path, mark in found if _abandoned(mark))


def session_folder(base: Path, name: str = "spark") -> Path:
    """A new private folder for the files of a session; remove those of killed sessions."""
    _removed(
        path
        for path in base.glob(f"shoal-{name}-*")
        if not path.is_symlink() and path.stat().st_uid == os.getuid() and _abandoned(path / _OWNER)
    )
    made = Path(tempfile.mkdtemp(prefix=f"shoal-{name}-", dir=base))
    claim(made)
    return made


def _removed(paths: Iterable[Path]) -> list[Path]:
    found = list(paths)
    for path in found:
        shutil.rmtree(path, ignore_errors=True)
    return found


def _abandoned(mark: Path) -> bool:
    """Whether the process that claimed a folder has ended."""
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
    # the number may have been reused by another process
    return bool(owner["started"] != _started(owner["process"]))


def _now(folder: Path) -> float:
    """The time by the clock that stamps files on this file system."""
    with tempfile.TemporaryFile(dir=folder) as file:
        return os.fstat(file.fileno()).st_mtime


def _machine() -> str:
    """An identifier of this machine and its boot, within which process numbers are meaningful."""
    found = [platform.node()]
    with contextlib.suppress(OSError):
        found.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        found.append(os.readlink("/proc/self/ns/pid"))
    return " ".join(found)


def _started(process: int) -> str:
    """When a process started, in the system's units; empty where unknown."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def check_room(values: int, out: Path, work: Sequence[Path]) -> None:
    """Refuse a release that would fill a disk.

    Args:
        values: rows times columns.
        out: the destination of the release.
        work: the folders that hold intermediate results.

    Raises:
        OutputError: with the space needed and the space free.
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
    """Refuse a release of so many values if the file system of its address would run full."""
    _check_free(address, free, _RELEASED * values)


def _check_free(place: str, free: int, size: int) -> None:
    if free < size:
        raise OutputError("no-room", place=place, free=free / 1000000000.0, size=size / 1000000000.0)
