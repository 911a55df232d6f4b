"""Write folders and files completely or not at all, and clean up when the process is terminated."""

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


# pattern of a path made from an address such as s3a://bucket/folder
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")

# paths being written by any thread; removed first when the process is terminated
_UNFINISHED: set[Path] = set()

# callbacks that stop work done for this process elsewhere, such as on a cluster
_STOPPING: list[Callable[[], None]] = []

# parent folders that were created for them
_NEW_PARENTS: set[Path] = set()


def place(out: str | Path) -> Path | str:
    """The target of a bundle: a local folder, or, as text, the address of one on another file system.

    >>> place("release"), place("file:///srv/release"), place("s3a://bucket/release")
    (PosixPath('release'), PosixPath('/srv/release'), 's3a://bucket/release')
    """
    text = str(out)
    if not _ADDRESS.match(text):
        return Path(out)
    scheme, _, rest = text.partition(":")
    if scheme.lower() != "file":
        # a path has lost one of the two slashes
        return text if isinstance(out, str) else f"{scheme}:/{rest}"
    if rest.startswith("//") and not rest.startswith("///"):
        raise OutputError("names-another-machine", text=text)
    return Path("/" + rest.lstrip("/"))


def not_an_address(out: Path | str) -> Path:
    """Refuse an address where only a local folder works."""
    if isinstance(out, str):
        raise OutputError("address-only-engine-spark-writes", out=out)
    return out


def check_output(folder: Path, internal: Path | None = None) -> None:
    """Refuse, before any work is done, a target that could not be written at the end."""
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
    """Refuse a target for the internal report that could not be written at the end."""
    if _ADDRESS.match(str(internal)):
        raise OutputError("internal-report-holds-private-facts-stays", internal=internal)
    if internal.is_dir():
        raise OutputError("internal-report-folder", internal=internal)
    if internal.exists():
        raise OutputError("internal-report-exists-already", internal=internal)
    _check_writable(internal)


@contextlib.contextmanager
def staged(folder: Path, rights: int = 0o755) -> Iterator[Path]:
    """A folder to write into that is renamed to `folder` on success, and removed on failure or interruption."""
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
    """Create the parent folders of a path; on failure, those created are removed again."""
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
    """An exit callback that removes a file after an error or an interruption."""

    _UNFINISHED.add(path)

    def leave(kind: object, error: object, trace: object) -> None:
        if kind is not None:
            path.unlink(missing_ok=True)
        _UNFINISHED.discard(path)

    return leave


@contextlib.contextmanager
def scratch() -> Iterator[Path]:
    """A folder for private values, removed afterwards or when the process is terminated."""
    folder = Path(tempfile.mkdtemp(prefix="shoal-"))
    _UNFINISHED.add(folder)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        _UNFINISHED.discard(folder)


def unfinished(path: Path) -> None:
    """Have a path removed if the process is terminated before it is `finished`."""
    _UNFINISHED.add(path)


def finished(path: Path) -> None:
    """Keep the path from now on (or it is gone already)."""
    _UNFINISHED.discard(path)


@contextlib.contextmanager
def stoppable(stop: Callable[[], None]) -> Iterator[None]:
    """Register work done for this process elsewhere: it is stopped before its output is removed."""
    _STOPPING.append(stop)
    try:
        yield
    finally:
        _STOPPING.remove(stop)


def remove_unfinished() -> None:
    """Remove everything being written, because the process is about to end."""
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
    """Check that the nearest existing parent folder of a path is writable."""
    parent = path.absolute().parent
    while not parent.exists():
        parent = parent.parent
    if not parent.is_dir():
        raise OutputError("file-so-cannot-written", parent=parent, path=path)
    if not os.access(parent, os.W_OK | os.X_OK):
        raise OutputError("no-permission-write", parent=parent)
