"""Private files and folders: what is written about the original records is readable by its owner only."""

from __future__ import annotations

import os
from pathlib import Path

_FILE, _FOLDER = 0o600, 0o700


def private_file(path: str | Path, *, new: bool = False) -> Path:
    """Make a file that only its owner can read, and tighten one that exists; whoever writes to it then keeps that.

    Args:
        new: refuse a file that exists.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = private_file(Path(folder) / "facts.json")
    ...     oct(path.stat().st_mode & 0o777)
    '0o600'
    """
    path = Path(path)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | (os.O_EXCL if new else 0), _FILE))
    # the mode of a file that was there, and what the umask took away
    path.chmod(_FILE)
    return path


def private_text(path: str | Path, text: str) -> None:
    """Write a text that only its owner can read."""
    private_file(path).write_text(text, "utf-8")


def private_folder(path: str | Path) -> Path:
    """Make a folder, and those above it that are missing, for their owner only; folders that exist stay as they are."""
    path = Path(path)
    missing = [folder for folder in (path, *path.absolute().parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(_FOLDER, exist_ok=True)
        folder.chmod(_FOLDER)
    if not path.is_dir():
        path.mkdir()
    return path
