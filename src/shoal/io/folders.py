"""Folders and files that appear whole or not at all, and what is removed when a process is told to end."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.errors import OutputError, ShoalError
from shoal.io.common import private_folder

if TYPE_CHECKING:
    pass


# how the path begins that is made of an address such as s3a://bucket/folder
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

# what is being written right now, by any thread; a process that is told to end removes it first
_UNFINISHED: set[Path] = set()

# ways to end what others are doing for this process, such as a cluster
_STOPPING: list[Callable[[], None]] = []

# folders that were made above it
_NEW_PARENTS: set[Path] = set()


def place(out: str | Path) -> Path | str:
    """Where a bundle goes: a folder of this machine, or the address of one on another file system, as text.

    >>> place("release"), place("file:///srv/release"), place("s3a://bucket/release")
    (PosixPath('release'), PosixPath('/srv/release'), 's3a://bucket/release')
    """
    text = str(out)
    if not _ADDRESS.match(text):
        return Path(out)
    scheme, _, rest = text.partition(":")
    if scheme.lower() != "file":
        # a path has lost one of two slashes
        return text if isinstance(out, str) else f"{scheme}:/{rest}"
    if rest.startswith("//") and not rest.startswith("///"):
        raise OutputError("names-another-machine", text=text)
    return Path("/" + rest.lstrip("/"))


def not_an_address(out: Path | str) -> Path:
    """Refuse an address where only a folder of this machine will do."""
    if isinstance(out, str):
        raise OutputError("address-only-engine-spark-writes", out=out)
    return out


def check_output(folder: Path, internal: Path | None = None) -> None:
    """Refuse, before any work is done, what could not be written at the end."""
    if _ADDRESS.match(str(folder)):
        not_an_address(str(folder).replace(":/", "://", 1))
    if folder.exists() and not folder.is_dir():
        raise OutputError("is-a-file", folder=folder)
    if folder.is_dir() and any(folder.iterdir()):
        raise OutputError("folder-not-empty", folder=folder)
    _check_writable(folder)
    if internal is None:
        return
    if folder.resolve() in (internal.resolve(), *internal.resolve().parents):
        raise OutputError("internal-report-would-lie-inside-published", internal=internal, folder=folder)
    check_internal(internal)


def check_internal(internal: Path) -> None:
    """Refuse a place that an internal report could not be written to at the end."""
    if _ADDRESS.match(str(internal)):
        raise OutputError("internal-report-holds-private-facts-stays", internal=internal)
    if internal.is_dir():
        raise OutputError("internal-report-folder", internal=internal)
    if internal.exists():
        raise OutputError("internal-report-exists-already", internal=internal)
    _check_writable(internal)


@contextlib.contextmanager
def staged(folder: Path, rights: int = 0o755) -> Iterator[Path]:
    """A folder to write into that becomes `folder` on success and vanishes on any failure or interruption."""
    try:
        with new_parents(folder):
            aside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.partial-", dir=folder.parent))
            _UNFINISHED.add(aside)
            try:
                yield aside
                aside.chmod(rights)
                os.rename(aside, folder)
            finally:
                shutil.rmtree(aside, ignore_errors=True)
                _UNFINISHED.discard(aside)
    except ShoalError:
        raise
    except OSError as error:
        raise OutputError("bundle-cannot-write", folder=folder, reason=error.strerror or error) from None


@contextlib.contextmanager
def new_parents(path: Path, *, private: bool = False) -> Iterator[None]:
    """Make the folders above a path; those that were made vanish again on failure."""
    above = path.absolute().parent
    missing = [folder for folder in (above, *above.parents) if not folder.exists()]
    _NEW_PARENTS.update(missing)
    private_folder(above) if private else above.mkdir(parents=True, exist_ok=True)
    try:
        yield
    except BaseException:
        _remove_empty(missing)
        raise
    finally:
        _NEW_PARENTS.difference_update(missing)


def _remove_empty(folders: Iterable[Path]) -> None:
    for folder in sorted(folders, key=lambda path: len(path.parts), reverse=True):
        with contextlib.suppress(OSError):
            folder.rmdir()


def unless_done(path: Path) -> Callable[..., None]:
    """An exit callback that removes a file when an error or an interruption passes by."""

    _UNFINISHED.add(path)

    def leave(kind: object, error: object, trace: object) -> None:
        if kind is not None:
            path.unlink(missing_ok=True)
        _UNFINISHED.discard(path)

    return leave


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for private values, gone afterwards, and when the process is told to end."""
    folder = Path(tempfile.mkdtemp(prefix="shoal-"))
    _UNFINISHED.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _UNFINISHED.discard(folder)


def unfinished(path: Path) -> None:
    """Have a path removed when the process is told to end before it is `finished`."""
    _UNFINISHED.add(path)


def finished(path: Path) -> None:
    """What is at a path stays, or is gone already."""
    _UNFINISHED.discard(path)


@contextlib.contextmanager
def stoppable(stop: Callable[[], None]) -> Iterator[None]:
    """Work that others do for this process: it is stopped before what it writes is removed."""
    _STOPPING.append(stop)
    try:
        yield
    finally:
        _STOPPING.remove(stop)


def remove_unfinished() -> None:
    """Remove what is being written at this moment, because the process is about to end."""
    for stop in _STOPPING:
        with contextlib.suppress(Exception):
            stop()
    for path in list(_UNFINISHED):
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    _remove_empty(_NEW_PARENTS)


def _check_writable(path: Path) -> None:
    """The nearest existing folder above a path must take new files."""
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise OutputError("file-so-cannot-written", parent=parent, path=path)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError("no-permission-write", parent=parent)
