"""Bundles on file systems that Spark reaches, such as `s3a://` and `hdfs://`: written aside, and renamed once complete.

A release is made in a folder that the driver and the workers share, and copied when it is finished: the data by Spark's
own writer, the documents by Hadoop's interface of file systems, which every session has. Before the budget is spent the
same steps are taken with numbers that mean nothing.
"""

from __future__ import annotations

import contextlib
import re
import secrets
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import OutputError

# the folder of the released files in a bundle, and the mark that Spark's writer leaves in it
_DATA = "data"
_SUCCESS = "_SUCCESS"
# rights of a folder that is written to, and of a complete one
_CLOSED, _OPEN = "700", "755"
_PATTERN = re.compile(r"([\[\]{}*?\\])")
_UNTOLD = (1 << 63) - 1


@dataclass(frozen=True, slots=True, eq=False)
class Remote:
    """The place of a bundle on a file system of the session's.

    Attributes:
        made: the folder of this machine that the bundle is made in.
        aside: the address that it is copied to before it is renamed.
    """

    session: Any
    address: str
    made: Path
    aside: str

    def check(self) -> None:
        """Refuse an address that cannot be reached, or where something is."""
        try:
            taken = self._files.exists(self._target)
        except Exception as error:
            raise OutputError("spark-cannot-reach", address=self.address, reason=java_words(error)) from None
        if taken:
            raise OutputError("remote-exists-already", address=self.address)

    def free(self) -> int:
        """Bytes that the file system has left; one that does not say has enough."""
        there = self._target.getParent()
        try:
            while not self._files.exists(there):
                there = there.getParent()
            # a view of several file systems does not know their sizes
            behind = self._files.resolvePath(there)
            return int(behind.getFileSystem(self._settings).getStatus(behind).getRemaining())
        except Exception:
            return _UNTOLD

    def missing(self) -> list[Any]:
        """The folders above the address that are not there yet, the lowest first."""
        found, above = [], self._target.getParent()
        while above is not None and not self._files.exists(above):
            found.append(above)
            above = above.getParent()
        return found

    def try_out(self, parts: int) -> None:
        """Take every step of a delivery, by as many workers as there are parts; nothing of it stays."""
        missing, renamed = self.missing(), f"{self.aside}-renamed"
        try:
            self._begin()
            self.session.range(0, parts, 1, parts).write.parquet(f"{self.aside}/{_DATA}")
            with tempfile.NamedTemporaryFile(dir=self.made.parent, prefix=f".{self.made.name}.") as one:
                self._copy(Path(one.name))
            self._end(parts)
            self._rename(renamed)
        finally:
            self.remove(missing, self.aside, renamed)

    def copy(self, data: Path, rows: int) -> None:
        """Copy the bundle that these data are in beside its address."""
        self._begin()
        self._read(f"file://{data.absolute()}").write.parquet(f"{self.aside}/{_DATA}")
        for document in sorted(path for path in data.parent.iterdir() if path != data):
            self._copy(document)
        self._end(rows)

    def put_in_place(self, begun: threading.Event) -> None:
        """Give what was copied its name; `begun` is set where something of it may be at the address."""
        self.check()
        begun.set()
        self._rename(self.address)
        inside = self._path(f"{self.address}/{self._path(self.aside).getName()}")
        if self._files.exists(inside):
            # another release was there first, and folders are moved into those that exist
            begun.clear()
            self._files.delete(inside, True)
            self.check()
        self._open(self.address)

    def remove(self, missing: Sequence[Any], *addresses: str) -> None:
        """Remove what was written, and those of the folders above that were made for it."""
        for address in addresses:
            with contextlib.suppress(Exception):
                self._files.delete(self._path(address), True)
        for folder in missing:
            with contextlib.suppress(Exception):
                self._files.delete(folder, False)

    def read(self) -> Any:
        return self._read(f"{self.address}/{_DATA}")

    def _begin(self) -> None:
        """Make the folder that is copied to, closed to others."""
        place, rights = self._path(self.aside), self._rights(_CLOSED)
        if not self._files.mkdirs(place, rights):
            raise OutputError("no-folder-can-made-beside", address=self.address)
        self._files.setPermission(place, rights)
        # if this process is killed, that of Java ends in its own way
        self._files.deleteOnExit(place)

    def _copy(self, document: Path) -> None:
        here, there = self._path(f"file://{document.absolute()}"), self._path(f"{self.aside}/{document.name}")
        self._files.copyFromLocalFile(False, False, here, there)

    def _end(self, rows: int) -> None:
        """Count what arrived."""
        self._files.delete(self._path(f"{self.aside}/{_DATA}/{_SUCCESS}"), False)
        if (there := self._read(f"{self.aside}/{_DATA}").count()) != rows:
            raise OutputError("rows-missing-at-address", there=there, rows=rows, aside=self.aside)

    def _rename(self, address: str) -> None:
        place = self._path(self.aside)
        if not self._files.rename(place, self._path(address)):
            raise OutputError("address-not-renamed", aside=self.aside, address=address)
        self._files.cancelDeleteOnExit(place)

    def _open(self, address: str) -> None:
        """Let others read what is complete and has its name."""
        self._files.setPermission(self._path(address), self._rights(_OPEN))

    @property
    def _target(self) -> Any:
        return self._path(self.address)

    @property
    def _files(self) -> Any:
        return self._target.getFileSystem(self._settings)

    @property
    def _settings(self) -> Any:
        """Those that the session's own writer has."""
        return self.session._jsparkSession.sessionState().newHadoopConf()

    def _path(self, address: str) -> Any:
        return _path(self.session, address)

    def _rights(self, rights: str) -> Any:
        return self.session.sparkContext._jvm.org.apache.hadoop.fs.permission.FsPermission(rights)

    def _read(self, address: str) -> Any:
        return self.session.read.parquet(literally(address))


def remote(session: Any, address: str, staging: Path | None) -> Remote:
    """The place of a bundle that is made in a new folder in `staging`, by default the one for temporary files.

    Raises:
        OutputError: nothing can be put there.
    """
    try:
        target = _path(session, address)
    except Exception as error:
        raise OutputError("is-no-address", address=address, reason=java_words(error)) from None
    if target.isRoot():
        raise OutputError("whole-file-system", address=address)
    token = secrets.token_hex(4)
    made = (staging or Path(tempfile.gettempdir())).absolute() / f"shoal-{target.getName()}-{token}"
    aside = f"{target.getParent()}/.{target.getName()}.partial-{token}"
    found = Remote(session, target.toString(), made, aside)
    found.check()
    return found


def literally(address: str) -> str:
    """An address for those who take some signs for patterns."""
    return _PATTERN.sub(r"\\\1", address)


def java_words(error: BaseException) -> str:
    """What an error says, one of Java's without the trace."""
    thrown = getattr(error, "java_exception", None)
    text = str(error) if thrown is None else str(thrown.toString())
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:400].rstrip(".")


def _path(session: Any, address: str) -> Any:
    return session.sparkContext._jvm.org.apache.hadoop.fs.Path(address)
