"""A private PostgreSQL server, started from the installed binaries and removed afterwards.

Used by the tests and by the ledger benchmark. PostgreSQL refuses to run as root, so as root its programs (and nothing
else) run as nobody.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_INSTALL = (
    "PostgreSQL is not installed here: run tests/support/install_system_packages as root (Debian, Ubuntu)"
)


class NoPostgresError(RuntimeError):
    """There are no PostgreSQL server programs on this machine."""

    def __init__(self) -> None:
        super().__init__(_INSTALL)


def programs() -> Path:
    """The folder of initdb and pg_ctl; Debian keeps them out of the search path."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[4]))
    if found:
        return found[-1].parent
    if (initdb := shutil.which("initdb")) is not None:
        return Path(initdb).resolve().parent
    raise NoPostgresError


@contextmanager
def temporary_postgres() -> Iterator[str]:
    """Address of an empty database; reachable by a unix socket only, durable as PostgreSQL is by default."""
    folder = Path(tempfile.mkdtemp(prefix="shoal-pg-", dir="/tmp"))  # a socket's path must be short
    as_nobody: list[str] = []
    if os.geteuid() == 0:
        as_nobody = ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]
        shutil.chown(folder, "nobody", "nogroup")
    else:
        folder.chmod(0o700)

    def run(program: str, *words: str) -> None:
        done = subprocess.run(
            [*as_nobody, str(binaries / program), "-D", str(folder / "data"), *words],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{program} failed: {(folder / 'log').read_text()}")

    try:
        binaries = programs()
        with (folder / "log").open("a") as log:
            run("initdb", "-A", "trust", "-U", "postgres", "--no-sync", "-E", "UTF8", "--locale=C.UTF-8")
            run("pg_ctl", "-w", "-o", f"-c listen_addresses='' -c max_connections=200 -k {folder}", "start")
            try:
                yield f"postgresql://postgres@/postgres?host={folder}"
            finally:
                run("pg_ctl", "-m", "immediate", "stop")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
